#include "lp_results.hpp"

#include "lp_arrays.hpp"

namespace nb = nanobind;

namespace cobre::lp {

Results ChainResults::allocate(const StageModel& stage, size_t chains, size_t solves, Outputs outputs) {
    Results to;
    const auto n = static_cast<Py_ssize_t>(solves), bases = static_cast<Py_ssize_t>(outputs.basis ? chains : 0);
    const Py_ssize_t solved = outputs.solution ? n : 0;
    objective = make_array(to.objective, {n});
    future_cost = make_array(to.future_cost, {n});
    decided = make_array(to.decided, {n, stage.num_decided});
    inflow = make_array(to.inflow, {n, stage.num_hydros});
    gradient = make_array(to.gradient, {outputs.gradient ? n : 0, stage.dimension()});
    primal = make_array(to.primal, {solved, stage.columns});
    dual = make_array(to.dual, {solved, stage.rows});
    basis_status = make_array(to.basis_status, {bases, stage.columns + stage.rows});
    basis_cuts = make_array(to.basis_cuts, {bases, stage.num_decided + 1});
    if (!outputs.basis) to.basis_status = nullptr;
    if (!outputs.solution) to.primal = to.dual = nullptr;
    if (!outputs.gradient) to.gradient = nullptr;
    return to;
}

Results ChainResults::use_shared(const StageModel& stage, const nb::tuple& tables, size_t chains, size_t solves) {
    require(tables.size() == 9, "tables: expected one for each kind of result");
    Results to;
    size_t at = 0;
    // A table that is not wanted is None, or has no rows.
    const auto use = [&]<typename Value>(Value*& target, nb::object& kept, size_t rows, Int width) {
        kept = nb::borrow(tables[at++]);
        if (kept.is_none()) return;
        const Array<Value> table(kept, "tables", true);
        require(table.size() == 0 || table.size() == rows * static_cast<size_t>(width),
                "tables: not the size of the results");
        if (table.size()) target = table.data();
    };
    use(to.objective, objective, solves, 1);
    use(to.gradient, gradient, solves, stage.dimension());
    use(to.future_cost, future_cost, solves, 1);
    use(to.decided, decided, solves, stage.num_decided);
    use(to.inflow, inflow, solves, stage.num_hydros);
    use(to.primal, primal, solves, stage.columns);
    use(to.dual, dual, solves, stage.rows);
    use(to.basis_status, basis_status, chains, stage.columns + stage.rows);
    use(to.basis_cuts, basis_cuts, chains, stage.num_decided + 1);
    require(to.objective || solves == 0, "tables: not the size of the results");
    require(!to.basis_status == !to.basis_cuts, "tables: half of a basis");
    return to;
}

void PathResults::allocate(const std::vector<PathStage>& stages, Py_ssize_t paths, Py_ssize_t dimension) {
    const auto count = static_cast<Py_ssize_t>(stages.size());
    double* numbers;
    Int* cuts;
    int8_t* status;
    states = make_array(numbers, {count, paths, dimension});
    objective = make_array(numbers, {count, paths});
    future_cost = make_array(numbers, {count, paths});
    for (const PathStage& stage : stages) {
        basis_status.append(make_array(status, {paths, stage.model->columns + stage.model->rows}));
        basis_cuts.append(make_array(cuts, {paths, stage.model->num_decided + 1}));
    }
}

void PathResults::use_shared(const nb::tuple& tables) {
    states = nb::borrow(tables[0]);
    objective = nb::borrow(tables[1]);
    future_cost = nb::borrow(tables[2]);
    basis_status = nb::cast<nb::list>(tables[3]);
    basis_cuts = nb::cast<nb::list>(tables[4]);
}

double* PathResults::point(std::vector<PathStage>& stages, size_t paths, size_t dimension) const {
    const Array<double> state(states, "states", true), cost(objective, "objective", true);
    const Array<double> future(future_cost, "future_cost", true);
    const size_t count = stages.size();
    require(state.size() == count * paths * dimension && cost.size() == count * paths && future.size() == cost.size() &&
                basis_status.size() == count && basis_cuts.size() == count,
            "tables: not the size of the results");
    for (size_t at = 0; at < count; ++at) {
        PathStage& stage = stages[at];
        const Array<int8_t> status(basis_status[at], "basis_status", true);
        const Array<Int> cuts(basis_cuts[at], "basis_cuts", true);
        require(status.size() == paths * static_cast<size_t>(stage.model->columns + stage.model->rows) &&
                    cuts.size() == paths * static_cast<size_t>(stage.model->num_decided + 1),
                "tables: not the size of the bases");
        stage.batch.states = state.data() + at * paths * dimension;
        stage.results.objective = cost.data() + at * paths;
        stage.results.future_cost = future.data() + at * paths;
        stage.results.basis_status = status.data();
        stage.results.basis_cuts = cuts.data();
    }
    return state.data();
}

}  // namespace cobre::lp
