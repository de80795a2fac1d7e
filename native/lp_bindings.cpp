#include "lp_bindings.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <deque>
#include <stdexcept>

#include "lp_average.hpp"
#include "lp_batch.hpp"
#include "lp_factor.hpp"
#include "lp_fans.hpp"
#include "lp_inputs.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace cobre::lp {

namespace {

// A stage and the arrays that its numbers lie in, which it does not copy.
struct BoundStage {
    StageModel model;
    nb::dict parts;

    template <typename T>
    void read(const char* name, Part<T>& part) const {
        part = Array<T>(parts[name], name).span();
    }

    explicit BoundStage(nb::dict given) : parts(std::move(given)) {
        read("cost", model.cost);
        read("column_lower", model.column_lower);
        read("column_upper", model.column_upper);
        read("row_lower", model.row_lower);
        read("row_upper", model.row_upper);
        read("row_start", model.row_start);
        read("column_index", model.column_index);
        read("value", model.value);
        read("state_column", model.state_column);
        read("state_scale", model.state_scale);
        read("autoregression", model.autoregression);
        read("lag_from", model.lag_from);
        read("lag_share", model.lag_share);
        read("passed_from", model.passed_from);
        read("input_row", model.input_row);
        read("input_index", model.input_index);
        read("input_value", model.input_value);
        read("load_row", model.load_row);
        read("load_bus", model.load_bus);
        read("load_factor", model.load_factor);
        read("source_column", model.source_column);
        read("source_index", model.source_index);
        read("source_factor", model.source_factor);
        read("source_is_pinned", model.source_is_pinned);
        model.states = nb::cast<Int>(parts["states"]);
        model.hydros = nb::cast<Int>(parts["hydros"]);
        model.order = nb::cast<Int>(parts["order"]);
        model.future_cost = nb::cast<Int>(parts["future_cost"]);
        model.truncates = nb::cast<bool>(parts["truncates"]);
        model.finish();
    }
};

// How many rows the chunks of a stage must have. rows: by component, its row; none: all components have one.
size_t height_of_chunks(Int dimension, const nb::object& rows) {
    if (rows.is_none()) return 1 + static_cast<size_t>(dimension);
    const Array<Int> row_of(rows, "rows");
    require(row_of.size() == static_cast<size_t>(dimension), "rows and components of cuts differ in number");
    Int most = 0;
    for (const Int row : row_of.span()) {
        require(row == -1 || row > 0, "a component of cuts has no row of its own");
        most = std::max(most, row);
    }
    return 1 + static_cast<size_t>(most);
}

CutView view_of(Int dimension, const nb::list& chunks, Int cuts, const nb::object& rows, nb::handle in_play) {
    const size_t height = height_of_chunks(dimension, rows);
    std::vector<CutChunk> places;
    size_t room = 0;
    for (const nb::handle chunk : chunks) {
        const Array<double> array(chunk, "chunks");
        require(array.height() >= height && array.width() % kCutsPerBlock == 0, "a chunk of cuts has another size");
        places.push_back({array.data(), static_cast<Int>(array.width())});
        room += array.width();
    }
    const Array<uint8_t> flags(in_play, "in_play");
    require(static_cast<size_t>(cuts) <= room && flags.size() >= static_cast<size_t>(cuts), "more cuts than chunks hold");
    return {std::move(places), cuts, rows.is_none() ? nullptr : Array<Int>(rows, "rows").data(), flags.data()};
}

void read_realisations(Work& work, const StageModel& stage, const Array<Int>& items, nb::handle inflow, nb::handle load,
                       nb::handle availability) {
    const Array<double> inflows(inflow, "inflow"), loads(load, "load"), available(availability, "availability");
    work.inflow = inflows.data();
    work.load = loads.data();
    work.availability = available.data();
    work.buses = static_cast<Int>(loads.width());
    work.sources = static_cast<Int>(available.width());
    require(inflows.size() == inflows.height() * static_cast<size_t>(stage.hydros), "inflows and hydros differ in number");
    require(loads.height() == inflows.height() && available.height() == inflows.height(), "realisations differ in number");
    const auto realisations = static_cast<Int>(inflows.height());
    for (const Int item : items.span())
        require(0 <= item && item < realisations, "a chain asks for a realisation that there is not");
    work.chain_items = items.data();
}

void read_bases(Work& work, const StageModel& stage, nb::handle status, nb::handle cuts, std::span<const Int> index) {
    const Array<int8_t> statuses(status, "start_status");
    const Array<Int> tight(cuts, "start_cuts");
    const auto bases = static_cast<Int>(statuses.height());
    require(statuses.size() == statuses.height() * static_cast<size_t>(stage.columns + stage.rows) &&
                tight.size() == statuses.height() * static_cast<size_t>(stage.states + 1),
            "bases have another size");
    for (const Int base : index) require(base < bases, "a chain starts from a basis that there is not");
    work.start_status = statuses.data();
    work.start_cuts = tight.data();
    work.start_index = index.data();
}

void read_chains(Work& work, const StageModel& stage, const Array<double>& states, const Array<Int>& start,
                 const Array<Int>& items, size_t indices) {
    require(start.size() > 0 && states.size() == (start.size() - 1) * static_cast<size_t>(stage.dimension()) &&
                indices == start.size() - 1,
            "states, chains and bases differ in number");
    work.units = static_cast<Int>(start.size()) - 1;
    work.states = states.data();
    work.chain_start = start.data();
    require(start.data()[0] == 0 && static_cast<size_t>(start.data()[work.units]) == items.size(),
            "the chains do not end where their items do");
    for (Int unit = 0; unit < work.units; ++unit) require(start.data()[unit] <= start.data()[unit + 1], "a chain ends before it starts");
}

void read_places(Work& work, const nb::object& places, size_t items) {
    if (places.is_none()) return;
    const Array<Int> array(places, "places");
    require(array.size() == items, "places and items differ in number");
    for (const Int place : array.span()) require(0 <= place && static_cast<size_t>(place) < items, "a place lies outside");
    work.places = array.data();
}

// Results as Python sees them.
struct BoundBatch {
    nb::object objective, future_cost, gradient, decided, inflow, primal, dual, iterations, basis_status, basis_cuts;
    Count count;

    Results make(const StageModel& stage, size_t units, size_t solves, bool basis, bool solution, bool slopes) {
        Results to;
        const auto n = static_cast<Py_ssize_t>(solves), chains = static_cast<Py_ssize_t>(basis ? units : 0);
        const Py_ssize_t solved = solution ? n : 0;
        objective = make_array(to.objective, {n});
        future_cost = make_array(to.future_cost, {n});
        iterations = make_array(to.iterations, {n});
        decided = make_array(to.decided, {n, stage.states});
        inflow = make_array(to.inflow, {n, stage.hydros});
        gradient = make_array(to.gradient, {slopes ? n : 0, stage.dimension()});
        primal = make_array(to.primal, {solved, stage.columns});
        dual = make_array(to.dual, {solved, stage.rows});
        basis_status = make_array(to.basis_status, {chains, stage.columns + stage.rows});
        basis_cuts = make_array(to.basis_cuts, {chains, stage.states + 1});
        if (!basis) to.basis_status = nullptr;
        if (!solution) to.primal = to.dual = nullptr;
        if (!slopes) to.gradient = nullptr;
        return to;
    }

    // Costs and slopes go into tables that other processes see; nothing else is kept.
    Results place(const StageModel& stage, const nb::tuple& tables, size_t solves) {
        objective = nb::borrow(tables[0]);
        gradient = nb::borrow(tables[1]);
        const Array<double> costs(objective, "objective", true), slopes(gradient, "gradient", true);
        require(costs.size() == solves && (slopes.size() == 0 || slopes.size() == solves * static_cast<size_t>(stage.dimension())),
                "common tables have another size");
        Results to;
        to.objective = costs.data();
        if (slopes.size()) to.gradient = slopes.data();
        return to;
    }
};

// The counter from which several processes take their units; none: this process does all of them.
Crew::Counter* counter_of(const nb::object& counter) {
    if (counter.is_none()) return nullptr;
    const Array<int64_t> array(counter, "counter", true);
    require(array.size() == 1, "a counter is one number");
    return reinterpret_cast<Crew::Counter*>(array.data());
}

BoundBatch solve(Engine& engine, const BoundStage& bound, const nb::list& chunks, Int cuts, const nb::object& rows,
                 nb::handle in_play, nb::handle states, nb::handle chain_start, nb::handle chain_items, const nb::object& places, nb::handle inflow,
                 nb::handle load, nb::handle availability, nb::handle start_status, nb::handle start_cuts,
                 nb::handle start_index, bool keeps_basis, bool keeps_solution, bool keeps_gradient, const nb::object& counter,
                 const nb::object& tables) {
    const StageModel& stage = bound.model;
    const CutView view = view_of(stage.dimension(), chunks, cuts, rows, in_play);
    const Array<Int> items(chain_items, "chain_items"), index(start_index, "start_index");
    Work work;
    read_chains(work, stage, Array<double>(states, "states"), Array<Int>(chain_start, "chain_start"), items, index.size());
    read_realisations(work, stage, items, inflow, load, availability);
    read_bases(work, stage, start_status, start_cuts, index.span());
    read_places(work, places, items.size());
    BoundBatch batch;
    Crew::Counter* const common = counter_of(counter);
    const Results results =
        common ? batch.place(stage, nb::cast<nb::tuple>(tables), items.size())
               : batch.make(stage, static_cast<size_t>(work.units), items.size(), keeps_basis, keeps_solution, keeps_gradient);
    {
        const nb::gil_scoped_release release;
        batch.count = engine.solve(stage, view, work, results, common);
    }
    return batch;
}

// Paths through all stages as Python sees them; rows of tables are stages.
struct BoundWalk {
    nb::object states, objective, future_cost;
    nb::list basis_status, basis_cuts;
    Count count;

    void make(const std::vector<Step>& steps, Py_ssize_t paths, Py_ssize_t dimension) {
        const auto stages = static_cast<Py_ssize_t>(steps.size());
        double* numbers;
        Int* cuts;
        int8_t* status;
        states = make_array(numbers, {stages, paths, dimension});
        objective = make_array(numbers, {stages, paths});
        future_cost = make_array(numbers, {stages, paths});
        for (const Step& step : steps) {
            basis_status.append(make_array(status, {paths, step.stage->columns + step.stage->rows}));
            basis_cuts.append(make_array(cuts, {paths, step.stage->states + 1}));
        }
    }

    // (states, objective, future_cost, basis_status, basis_cuts), which other processes see.
    void take(const nb::tuple& tables) {
        states = nb::borrow(tables[0]);
        objective = nb::borrow(tables[1]);
        future_cost = nb::borrow(tables[2]);
        basis_status = nb::cast<nb::list>(tables[3]);
        basis_cuts = nb::cast<nb::list>(tables[4]);
    }

    // Tell every step where its results go; gives where states do.
    double* aim(std::vector<Step>& steps, size_t paths, size_t dimension) const {
        const Array<double> state(states, "states", true), cost(objective, "objective", true), future(future_cost, "future_cost", true);
        require(state.size() == steps.size() * paths * dimension && cost.size() == steps.size() * paths && future.size() == cost.size() &&
                    basis_status.size() == steps.size() && basis_cuts.size() == steps.size(),
                "common tables have another size");
        for (size_t at = 0; at < steps.size(); ++at) {
            Step& step = steps[at];
            const Array<int8_t> status(basis_status[at], "basis_status", true);
            const Array<Int> cuts(basis_cuts[at], "basis_cuts", true);
            require(status.size() == paths * static_cast<size_t>(step.stage->columns + step.stage->rows) &&
                        cuts.size() == paths * static_cast<size_t>(step.stage->states + 1),
                    "common tables of bases have another size");
            step.work.states = state.data() + at * paths * dimension;
            step.results.objective = cost.data() + at * paths;
            step.results.future_cost = future.data() + at * paths;
            step.results.basis_status = status.data();
            step.results.basis_cuts = cuts.data();
        }
        return state.data();
    }
};

// The paths of a walk: path p is the chain of item p, and starts from basis 0 where there is one.
struct Paths {
    std::vector<Int> start, from_basis, from_nothing;

    explicit Paths(size_t count) : from_basis(count, 0), from_nothing(count, -1) {
        for (size_t path = 0; path <= count; ++path) start.push_back(static_cast<Int>(path));
    }
};

// A stage of a walk: (stage, chunks, cuts, rows, in_play, items, inflow, load, availability, status and cuts of the basis,
// whether paths go on from the bases of the stage before).
Step read_step(const nb::tuple& given, std::deque<CutView>& views, const Paths& paths) {
    Step step;
    step.stage = &nb::cast<const BoundStage&>(given[0]).model;
    step.cuts = &views.emplace_back(
        view_of(step.stage->dimension(), nb::cast<nb::list>(given[1]), nb::cast<Int>(given[2]), nb::borrow(given[3]), given[4]));
    const Array<Int> items(given[5], "items");
    require(items.size() + 1 == paths.start.size(), "a step has not as many items as there are paths");
    step.work.units = static_cast<Int>(items.size());
    step.work.chain_start = paths.start.data();
    read_realisations(step.work, *step.stage, items, given[6], given[7], given[8]);
    read_bases(step.work, *step.stage, given[9], given[10], {});
    const bool has_basis = Array<int8_t>(given[9], "status").height() > 0;
    step.work.start_index = (has_basis ? paths.from_basis : paths.from_nothing).data();
    step.follows = nb::cast<bool>(given[11]);
    return step;
}

BoundWalk walk(Engine& engine, const nb::list& given, nb::handle first_states, const nb::object& counter, const nb::object& tables) {
    const Array<double> first(first_states, "first_states");
    const Paths paths(first.height());
    std::deque<CutView> views;
    std::vector<Step> steps;
    for (const nb::handle step : given) {
        const StageModel* const before = steps.empty() ? nullptr : steps.back().stage;
        steps.push_back(read_step(nb::cast<nb::tuple>(step), views, paths));
        const StageModel& stage = *steps.back().stage;
        require(static_cast<size_t>(stage.dimension()) == first.width(), "states differ in size from stage to stage");
        require(!steps.back().follows || (before && before->has_shape_of(stage)), "a step follows one of another shape");
    }
    Crew::Counter* const common = counter_of(counter);
    BoundWalk bound;
    if (common) bound.take(nb::cast<nb::tuple>(tables));
    else bound.make(steps, static_cast<Py_ssize_t>(first.height()), static_cast<Py_ssize_t>(first.width()));
    double* const states = bound.aim(steps, first.height(), first.width());
    {
        const nb::gil_scoped_release release;
        bound.count = engine.walk(steps, first.data(), states, common);
    }
    return bound;
}

// The values of cuts at states (rows), added component by component; cuts that are not in play have their intercept.
nb::object values_at(const nb::list& chunks, Int cuts, const nb::object& rows, nb::handle in_play, nb::handle states) {
    const Array<double> points(states, "states");
    const CutView view = view_of(static_cast<Int>(points.width()), chunks, cuts, rows, in_play);
    double* values;
    const nb::object table = make_array(values, {static_cast<Py_ssize_t>(points.height()), static_cast<Py_ssize_t>(cuts)});
    const nb::gil_scoped_release release;
    for (size_t point = 0; point < points.height(); ++point) {
        view.intercepts(values + point * static_cast<size_t>(cuts));
        view.add_products(0, static_cast<Int>(points.width()), points.data() + point * points.width(),
                          values + point * static_cast<size_t>(cuts));
    }
    return table;
}

// Rows of intercept and coefficients, one for each trial point.
nb::object average(nb::handle costs, nb::handle weights, nb::handle slopes, nb::handle states) {
    const Array<double> cost(costs, "costs"), weight(weights, "weights"), slope(slopes, "slopes"), state(states, "states");
    const Openings from{state.height(), cost.width(), state.width(), cost.data(), weight.data(), slope.data(), state.data()};
    require(cost.height() == from.points && weight.height() == from.points && weight.width() == from.openings &&
                slope.size() == cost.size() * from.dimension,
            "costs, weights, slopes and states differ in number");
    double* cuts;
    auto table = make_array(cuts, {static_cast<Py_ssize_t>(from.points), static_cast<Py_ssize_t>(1 + from.dimension)});
    average_cuts(from, cuts);
    return table;
}

// (states, start, items, basis_index, places) of the chains of a backward pass, two for each trial point.
nb::tuple fan(nb::handle order, nb::handle met, nb::handle states) {
    const Array<Int> openings(order, "order"), places(met, "met");
    const Array<double> points_states(states, "states");
    require(points_states.height() == places.size(), "states and paths differ in number");
    for (const Int place : places.span())
        require(0 <= place && static_cast<size_t>(place) < openings.size(), "a path met an opening that there is not");
    const auto points = static_cast<Py_ssize_t>(places.size()), solves = points * static_cast<Py_ssize_t>(openings.size());
    FanOut out;
    const nb::object start = make_array(out.start, {2 * points + 1}), items = make_array(out.items, {solves}),
                     index = make_array(out.basis_index, {2 * points}), rows = make_array(out.places, {solves});
    fan_out(openings.span(), places.span(), out);
    const auto width = static_cast<Py_ssize_t>(points_states.width());
    double* twice;
    const nb::object repeated = make_array(twice, {2 * points, width});
    for (Py_ssize_t unit = 0; unit < 2 * points; ++unit)
        std::copy_n(points_states.data() + unit / 2 * width, width, twice + unit * width);
    return nb::make_tuple(repeated, start, items, index, rows);
}

// Write cuts into the chunks of a stage, from a slot on.
void place(nb::handle table, const nb::list& chunks, size_t slot) {
    const Array<double> cuts(table, "table");
    const size_t width = cuts.width();
    size_t cut = 0, start = 0;
    for (const nb::handle part : chunks) {
        const Array<double> chunk(part, "chunks", true);
        require(chunk.height() == width, "cuts and chunks differ in size");
        const size_t end = start + chunk.width();
        if (slot + cut < end && cut < cuts.height()) {
            const size_t fitting = std::min(cuts.height() - cut, end - slot - cut);
            place_cuts(cuts.data() + cut * width, fitting, width, chunk.data(), chunk.width(), slot + cut - start);
            cut += fitting;
        }
        start = end;
    }
    require(cut == cuts.height(), "there is no chunk for these cuts");
}

PyObject* lp_failure = nullptr;

void translate(const std::exception_ptr& thrown, void*) {
    try {
        std::rethrow_exception(thrown);
    } catch (const LpFailure& failure) {
        PyErr_SetObject(lp_failure, nb::make_tuple(failure.unit, failure.item, failure.status, failure.what()).ptr());
    }
}

template <typename Bound>
void bind_count(nb::class_<Bound>& bound) {
    bound.def_prop_ro("solves", [](const Bound& results) { return results.count.solves; });
    bound.def_prop_ro("pivots", [](const Bound& results) { return results.count.pivots; });
    bound.def_prop_ro("library_solves", [](const Bound& results) { return results.count.library_solves; });
    bound.def_prop_ro("retries", [](const Bound& results) { return results.count.retries; });
    bound.def_prop_ro("refactorisations", [](const Bound& results) { return results.count.refactorisations; });
    bound.def_prop_ro("active_rows", [](const Bound& results) { return results.count.active_rows; });
    bound.def_prop_ro("nucleus", [](const Bound& results) { return results.count.nucleus; });
    bound.def_prop_ro("solve_seconds", [](const Bound& results) { return results.count.solve_seconds; });
    bound.def_prop_ro("busy_seconds", [](const Bound& results) { return results.count.busy_seconds; });
}

void bind_results(nb::module_& module) {
    nb::class_<BoundBatch> batch(module, "LpBatch");
    batch.def_ro("objective", &BoundBatch::objective)
        .def_ro("future_cost", &BoundBatch::future_cost)
        .def_ro("gradient", &BoundBatch::gradient)
        .def_ro("decided", &BoundBatch::decided)
        .def_ro("inflow", &BoundBatch::inflow)
        .def_ro("primal", &BoundBatch::primal)
        .def_ro("dual", &BoundBatch::dual)
        .def_ro("iterations", &BoundBatch::iterations)
        .def_ro("basis_status", &BoundBatch::basis_status)
        .def_ro("basis_cuts", &BoundBatch::basis_cuts);
    bind_count(batch);
    nb::class_<BoundWalk> paths(module, "LpWalk");
    paths.def_ro("states", &BoundWalk::states)
        .def_ro("objective", &BoundWalk::objective)
        .def_ro("future_cost", &BoundWalk::future_cost)
        .def_ro("basis_status", &BoundWalk::basis_status)
        .def_ro("basis_cuts", &BoundWalk::basis_cuts);
    bind_count(paths);
}

// A factorised basis alone, on dense vectors: for tests.
struct BoundFactorisation {
    Factorisation factorisation;
    SparseVector work;

    std::vector<Int> factor(const std::vector<uint8_t>& slack_is_basic, const std::vector<Int>& start, const std::vector<Int>& row,
                            const std::vector<double>& value) {
        work.resize(slack_is_basic.size());
        std::vector<Int> slots;
        if (!factorisation.factor(slack_is_basic, {start, row, value}, slots)) throw std::domain_error("the basis is singular");
        return slots;
    }
    void load(const std::vector<double>& right) {
        work.resize(right.size());
        for (size_t at = 0; at < right.size(); ++at)
            if (right[at] != 0.0) work.set(static_cast<Int>(at), right[at]);
    }
    std::vector<double> ftran(const std::vector<double>& right) {
        load(right);
        factorisation.ftran(work);
        return work.value;
    }
    std::vector<double> btran(const std::vector<double>& right) {
        load(right);
        factorisation.btran(work);
        return work.value;
    }
    void update(Int slot, const std::vector<double>& column) {
        work.resize(column.size());
        work.set(slot, 1.0);
        factorisation.btran(work, Factorisation::For::update);
        load(column);
        factorisation.ftran(work, Factorisation::For::update);
        factorisation.update(slot);
    }
    void append_row(const std::vector<double>& entries) {
        load(entries);
        factorisation.append_row(static_cast<Int>(entries.size()), work);
    }
};

}  // namespace

void bind(nb::module_& module) {
    lp_failure = PyErr_NewException("cobre._native.LpFailure", PyExc_Exception, nullptr);
    module.attr("LpFailure") = nb::borrow(lp_failure);
    nb::register_exception_translator(translate, nullptr);
    module.attr("CUTS_PER_BLOCK") = kCutsPerBlock;
    module.def("average_cuts", &average, "costs"_a, "weights"_a, "slopes"_a, "states"_a);
    module.def("cut_values", &values_at, "chunks"_a, "cuts"_a, "rows"_a.none(), "in_play"_a, "states"_a);
    module.def("fan_chains", &fan, "order"_a, "met"_a, "states"_a);
    module.def("place_cuts", &place, "table"_a, "chunks"_a, "slot"_a);

    nb::class_<BoundStage>(module, "LpStage")
        .def(nb::init<nb::dict>(), "parts"_a)
        .def_prop_ro("columns", [](const BoundStage& stage) { return stage.model.columns; })
        .def_prop_ro("rows", [](const BoundStage& stage) { return stage.model.rows; })
        .def_prop_ro("dimension", [](const BoundStage& stage) { return stage.model.dimension(); });
    bind_results(module);

    nb::class_<BoundFactorisation>(module, "LpFactorisation")
        .def(nb::init<>())
        .def("factor", &BoundFactorisation::factor, "slack_is_basic"_a, "start"_a, "row"_a, "value"_a)
        .def("ftran", &BoundFactorisation::ftran, "right"_a)
        .def("btran", &BoundFactorisation::btran, "right"_a)
        .def("update", &BoundFactorisation::update, "slot"_a, "column"_a)
        .def("append_row", &BoundFactorisation::append_row, "entries"_a)
        .def_prop_ro("nucleus", [](const BoundFactorisation& bound) { return bound.factorisation.nucleus(); });

    nb::class_<Engine>(module, "LpEngine")
        .def("__init__",
             [](Engine* place, const std::string& library, Int threads, double feasibility, double violation, Int max_added, Int attempts,
                Int most_dense_rows) {
                 Settings settings;
                 settings.tolerances.feasibility = feasibility;
                 settings.tolerances.violation = violation;
                 settings.max_added_per_round = max_added;
                 settings.most_dense_rows = most_dense_rows;
                 settings.retry_attempts = attempts;
                 new (place) Engine(library, threads, settings);
             },
             "library"_a, "threads"_a, "feasibility_tolerance"_a, "violation_tolerance"_a,
             "max_added_per_round"_a, "retry_attempts"_a, "most_dense_rows"_a)
        .def("solve", &solve, "stage"_a, "chunks"_a, "cuts"_a, "rows"_a.none(), "in_play"_a, "states"_a, "chain_start"_a,
             "chain_items"_a, "places"_a.none(), "inflow"_a, "load"_a, "availability"_a, "start_status"_a, "start_cuts"_a,
             "start_index"_a, "keeps_basis"_a, "keeps_solution"_a, "keeps_gradient"_a, "counter"_a.none(), "tables"_a.none())
        .def("walk", &walk, "steps"_a, "first_states"_a, "counter"_a.none(), "tables"_a.none())
        .def("save_failed", &Engine::save_failed, "path"_a, "columns"_a, "rows"_a)
        .def_prop_ro("threads", &Engine::threads)
        .def_prop_ro("version", [](const Engine& engine) { return std::string(engine.version()); });
}

}  // namespace cobre::lp
