#include "lp_results.hpp"

#include <string>

#include "lp_arrays.hpp"

namespace nb = nanobind;

namespace cobre::lp {

Results ChainResults::allocate(const StageModel& stage, size_t solves, const Outputs& outputs) {
    Results to;
    const auto n = static_cast<Py_ssize_t>(solves);
    const Py_ssize_t bases = outputs.basis ? n : 0;
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

Results ChainResults::use(const StageModel& stage, size_t solves, const SharedBatch& shared) {
    Results to;
    // A table that is not wanted is None, or has no rows.
    const auto take = [solves]<typename T>(T*& target, const nb::object& given, const char* name, Int width) {
        if (given.is_none()) return given;
        const Array<T> table(given, name, true);
        require(table.size() == 0 || table.size() == solves * static_cast<size_t>(width),
                (std::string(name) + ": not the size of the results").c_str());
        if (table.size()) target = table.data();
        return given;
    };
    objective = take(to.objective, shared.objective, "objective", 1);
    gradient = take(to.gradient, shared.gradient, "gradient", stage.dimension());
    require(to.objective || solves == 0, "objective: not the size of the results");
    basis_status = take(to.basis_status, shared.basis_status, "basis_status", stage.columns + stage.rows);
    basis_cuts = take(to.basis_cuts, shared.basis_cuts, "basis_cuts", stage.num_decided + 1);
    require(!to.basis_status == !to.basis_cuts, "basis_status, basis_cuts: half of a basis");
    future_cost = decided = inflow = primal = dual = nb::none();
    return to;
}

void PathResults::allocate(const std::vector<PathStage>& stages, size_t paths, size_t dimension,
                           const PathOutputs& outputs) {
    const auto count = static_cast<Py_ssize_t>(stages.size()), rows = static_cast<Py_ssize_t>(paths),
               width = static_cast<Py_ssize_t>(dimension);
    double* numbers;
    Int* cuts;
    int8_t* status;
    states = make_array(numbers, {count, rows, width});
    objective = make_array(numbers, {count, rows});
    future_cost = make_array(numbers, {count, rows});
    leaving = make_array(numbers, {rows, width});
    for (const PathStage& stage : stages) {
        const StageModel& model = *stage.model;
        if (outputs.basis) {
            basis_status.append(make_array(status, {rows, model.columns + model.rows}));
            basis_cuts.append(make_array(cuts, {rows, model.num_decided + 1}));
        }
        if (!outputs.solution) continue;
        inflow.append(make_array(numbers, {rows, model.num_hydros}));
        primal.append(make_array(numbers, {rows, model.columns}));
        dual.append(make_array(numbers, {rows, model.rows}));
    }
}

void PathResults::use(const SharedPaths& shared) {
    states = shared.states;
    objective = shared.objective;
    future_cost = shared.future_cost;
    leaving = shared.leaving;
    basis_status = shared.basis_status;
    basis_cuts = shared.basis_cuts;
    inflow = shared.inflow;
    primal = shared.primal;
    dual = shared.dual;
}

namespace {

// The numbers of one array, which must be of this size; null for None.
template <typename T>
T* numbers_of(nb::handle array, const char* name, size_t size) {
    if (array.is_none()) return nullptr;
    const Array<T> found(array, name, true);
    require(found.size() == size, (std::string(name) + ": not the size of the results").c_str());
    return found.data();
}

// The same of a stage's entry in a list; null for an empty list.
template <typename T>
T* numbers_of(const nb::list& by_stage, size_t stage, const char* name, size_t size) {
    return by_stage.size() ? numbers_of<T>(by_stage[stage], name, size) : nullptr;
}

}  // namespace

double* PathResults::table(const nb::object& array, const char* name, size_t size) {
    return numbers_of<double>(array, name, size);
}

void PathResults::point(std::vector<PathStage>& stages, size_t paths) const {
    const size_t count = stages.size();
    double* const costs = numbers_of<double>(objective, "objective", count * paths);
    double* const future = numbers_of<double>(future_cost, "future_cost", count * paths);
    for (const nb::list* list : {&basis_status, &basis_cuts, &inflow, &primal, &dual})
        require(list->size() == 0 || list->size() == count, "path tables: expected one for each step, or none");
    require(basis_status.size() == basis_cuts.size(), "basis_status, basis_cuts: half of a basis");
    for (size_t at = 0; at < count; ++at) {
        const StageModel& model = *stages[at].model;
        const auto size = [paths](Int width) { return paths * static_cast<size_t>(width); };
        Results& to = stages[at].results;
        to.objective = costs + at * paths;
        to.future_cost = future + at * paths;
        to.basis_status = numbers_of<int8_t>(basis_status, at, "basis_status", size(model.columns + model.rows));
        to.basis_cuts = numbers_of<Int>(basis_cuts, at, "basis_cuts", size(model.num_decided + 1));
        to.inflow = numbers_of<double>(inflow, at, "inflow", size(model.num_hydros));
        to.primal = numbers_of<double>(primal, at, "primal", size(model.columns));
        to.dual = numbers_of<double>(dual, at, "dual", size(model.rows));
        require(!stages[at].carries_basis || (at > 0 && stages[at - 1].results.basis_status),
                "carries_basis: the bases of the step before are not kept");
    }
}

}  // namespace cobre::lp
