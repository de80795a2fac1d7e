#include "lp_bindings.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <deque>
#include <stdexcept>

#include "lp_arguments.hpp"
#include "lp_engine.hpp"
#include "lp_factorisation.hpp"
#include "lp_results.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace cobre::lp {

StopSignal::Ask ask_python(const nb::object& ask) {
    return [&ask] {
        const nb::gil_scoped_acquire held;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (!ask.is_none()) ask();
    };
}

namespace {

ChainResults solve_chains(Engine& engine, const BoundStage& bound, const nb::list& chunks, Int cuts,
                          const nb::object& rows, nb::handle selected, nb::handle states, Int chains_per_point,
                          nb::handle chain_start, nb::handle realisation_index, const nb::object& result_index,
                          nb::handle inflow, nb::handle load, nb::handle availability, nb::handle basis_status,
                          nb::handle basis_cuts, nb::handle basis_index, bool wants_basis, bool wants_solution,
                          bool wants_gradient, const nb::object& counter, const nb::object& tables,
                          const nb::object& new_cuts, const nb::object& finished, const nb::object& ask) {
    const StageModel& stage = bound.model;
    const CutView view = read_cuts(stage.dimension(), chunks, cuts, rows, selected);
    const Array<Int> realisations(realisation_index, "realisation_index"), bases(basis_index, "basis_index");
    const size_t solves = realisations.size();
    ChainBatch batch;
    read_chains(batch, stage, Array<double>(states, "states"), chains_per_point, Array<Int>(chain_start, "chain_start"),
                realisations, bases.size());
    read_realisations(batch, stage, realisations, inflow, load, availability);
    read_bases(batch, stage, basis_status, basis_cuts, bases.span());
    read_result_index(batch, result_index, solves);
    ChainResults results;
    WorkCounter* const shared_counter = read_counter(counter);
    const Outputs outputs{wants_basis, wants_solution, wants_gradient};
    const auto chains = static_cast<size_t>(batch.chains);
    const Results to = shared_counter ? results.use_shared(stage, nb::cast<nb::tuple>(tables), chains, solves)
                                      : results.allocate(stage, chains, solves, outputs);
    const auto target = read_cut_target(new_cuts, finished, stage, batch, to);
    {
        const nb::gil_scoped_release release;
        results.counts = engine.solve_chains(stage, view, batch, to, ask_python(ask), shared_counter, target.get());
    }
    results.has_stray_coefficients = target && target->has_stray_coefficients();
    return results;
}

// Path p is a chain with the one item p. It starts from basis 0 where the stage has one.
struct PathIndices {
    std::vector<Int> chain_start, first_basis, no_basis;

    explicit PathIndices(size_t paths) : first_basis(paths, 0), no_basis(paths, -1) {
        for (size_t path = 0; path <= paths; ++path) chain_start.push_back(static_cast<Int>(path));
    }
};

// (stage, chunks, cuts, rows, selected, realisation_index, inflow, load, availability, basis_status, basis_cuts,
// carries_basis)
PathStage read_path_stage(const nb::tuple& given, std::deque<CutView>& views, const PathIndices& paths) {
    PathStage stage;
    stage.model = &nb::cast<const BoundStage&>(given[0]).model;
    stage.cuts = &views.emplace_back(read_cuts(stage.model->dimension(), nb::cast<nb::list>(given[1]),
                                               nb::cast<Int>(given[2]), nb::borrow(given[3]), given[4]));
    const Array<Int> realisation_index(given[5], "realisation_index");
    require(realisation_index.size() + 1 == paths.chain_start.size(), "realisation_index: expected one for each path");
    stage.batch.chains = static_cast<Int>(realisation_index.size());
    stage.batch.chain_start = paths.chain_start.data();
    read_realisations(stage.batch, *stage.model, realisation_index, given[6], given[7], given[8]);
    read_bases(stage.batch, *stage.model, given[9], given[10], {});
    const bool has_basis = Array<int8_t>(given[9], "basis_status").height() > 0;
    stage.batch.basis_index = (has_basis ? paths.first_basis : paths.no_basis).data();
    stage.carries_basis = nb::cast<bool>(given[11]);
    return stage;
}

PathResults solve_paths(Engine& engine, const nb::list& given, nb::handle first_states, const nb::object& counter,
                        const nb::object& tables, const nb::object& ask) {
    const Array<double> first(first_states, "first_states");
    const PathIndices paths(first.height());
    std::deque<CutView> views;  // stages point into it: a deque moves nothing when it grows
    std::vector<PathStage> stages;
    for (const nb::handle tuple : given) {
        const StageModel* const before = stages.empty() ? nullptr : stages.back().model;
        stages.push_back(read_path_stage(nb::cast<nb::tuple>(tuple), views, paths));
        const StageModel& model = *stages.back().model;
        require(static_cast<size_t>(model.dimension()) == first.width(),
                "first_states: not the dimension of the state of every stage");
        require(!stages.back().carries_basis || (before && before->has_shape_of(model)),
                "carries_basis: the stage before has another shape, or there is none");
    }
    WorkCounter* const shared_counter = read_counter(counter);
    PathResults results;
    if (shared_counter) results.use_shared(nb::cast<nb::tuple>(tables));
    else results.allocate(stages, static_cast<Py_ssize_t>(first.height()), static_cast<Py_ssize_t>(first.width()));
    double* const states = results.point(stages, first.height(), first.width());
    {
        const nb::gil_scoped_release release;
        results.counts = engine.solve_paths(stages, first.data(), states, ask_python(ask), shared_counter);
    }
    return results;
}

PyObject* lp_failure = nullptr;

void translate(const std::exception_ptr& thrown, void*) {
    try {
        std::rethrow_exception(thrown);
    } catch (const LpFailure& failure) {
        PyErr_SetObject(lp_failure, nb::make_tuple(failure.chain, failure.item, failure.status, failure.what()).ptr());
    }
}

template <typename Bound>
void bind_counts(nb::class_<Bound>& bound) {
    bound.def_prop_ro("solves", [](const Bound& results) { return results.counts.solves; });
    bound.def_prop_ro("pivots", [](const Bound& results) { return results.counts.pivots; });
    bound.def_prop_ro("library_solves", [](const Bound& results) { return results.counts.library_solves; });
    bound.def_prop_ro("retries", [](const Bound& results) { return results.counts.retries; });
    bound.def_prop_ro("refactorisations", [](const Bound& results) { return results.counts.refactorisations; });
    bound.def_prop_ro("active_rows", [](const Bound& results) { return results.counts.active_rows; });
    bound.def_prop_ro("nucleus", [](const Bound& results) { return results.counts.nucleus; });
    bound.def_prop_ro("solve_seconds", [](const Bound& results) { return results.counts.solve_seconds; });
}

void bind_results(nb::module_& module) {
    nb::class_<ChainResults> chains(module, "LpChainResults");
    chains.def_ro("objective", &ChainResults::objective)
        .def_ro("future_cost", &ChainResults::future_cost)
        .def_ro("gradient", &ChainResults::gradient)
        .def_ro("decided", &ChainResults::decided)
        .def_ro("inflow", &ChainResults::inflow)
        .def_ro("primal", &ChainResults::primal)
        .def_ro("dual", &ChainResults::dual)
        .def_ro("basis_status", &ChainResults::basis_status)
        .def_ro("basis_cuts", &ChainResults::basis_cuts)
        .def_ro("has_stray_coefficients", &ChainResults::has_stray_coefficients);
    bind_counts(chains);
    nb::class_<PathResults> paths(module, "LpPathResults");
    paths.def_ro("states", &PathResults::states)
        .def_ro("objective", &PathResults::objective)
        .def_ro("future_cost", &PathResults::future_cost)
        .def_ro("basis_status", &PathResults::basis_status)
        .def_ro("basis_cuts", &PathResults::basis_cuts);
    bind_counts(paths);
}

// A factorised basis alone, on dense vectors: for tests.
struct BoundFactorisation {
    Factorisation factorisation;
    SparseVector vector;

    std::vector<Int> factorise(const std::vector<uint8_t>& slack_is_basic, const std::vector<Int>& start,
                               const std::vector<Int>& row, const std::vector<double>& value) {
        vector.resize(slack_is_basic.size());
        std::vector<Int> slots;
        if (!factorisation.factorise(slack_is_basic, {start, row, value}, slots))
            throw std::domain_error("the basis is singular");
        return slots;
    }
    void load(const std::vector<double>& rhs) {
        vector.resize(rhs.size());
        for (size_t at = 0; at < rhs.size(); ++at)
            if (rhs[at] != 0.0) vector.set(static_cast<Int>(at), rhs[at]);
    }
    std::vector<double> ftran(const std::vector<double>& rhs) {
        load(rhs);
        factorisation.ftran(vector);
        return vector.value;
    }
    std::vector<double> btran(const std::vector<double>& rhs) {
        load(rhs);
        factorisation.btran(vector);
        return vector.value;
    }
    void update(Int slot, const std::vector<double>& column) {
        vector.resize(column.size());
        vector.set(slot, 1.0);
        factorisation.btran(vector, Factorisation::Purpose::update);
        load(column);
        factorisation.ftran(vector, Factorisation::Purpose::update);
        factorisation.update(slot);
    }
    void append_row(const std::vector<double>& entries) {
        load(entries);
        factorisation.append_row(static_cast<Int>(entries.size()), vector);
    }
};

void bind_factorisation(nb::module_& module) {
    nb::class_<BoundFactorisation>(module, "LpFactorisation")
        .def(nb::init<>())
        .def("factorise", &BoundFactorisation::factorise, "slack_is_basic"_a, "start"_a, "row"_a, "value"_a)
        .def("ftran", &BoundFactorisation::ftran, "rhs"_a)
        .def("btran", &BoundFactorisation::btran, "rhs"_a)
        .def("update", &BoundFactorisation::update, "slot"_a, "column"_a)
        .def("append_row", &BoundFactorisation::append_row, "entries"_a)
        .def_prop_ro("nucleus", [](const BoundFactorisation& bound) { return bound.factorisation.nucleus(); });
}

}  // namespace

void bind_engine(nb::module_& module) {
    lp_failure = PyErr_NewException("cobre._native.LpFailure", PyExc_Exception, nullptr);
    module.attr("LpFailure") = nb::borrow(lp_failure);
    nb::register_exception_translator(translate, nullptr);
    nb::class_<BoundStage>(module, "LpStage").def(nb::init<nb::dict>(), "parts"_a);
    bind_results(module);
    bind_factorisation(module);
    // The number of the next unit of work; for units that are solved by a call each.
    module.def(
        "take_unit",
        [](const nb::object& counter) {
            WorkCounter* const shared = read_counter(counter);
            require(shared != nullptr, "counter: expected one number");
            return shared->fetch_add(1, std::memory_order_relaxed);  // relaxed: it hands out numbers, nothing else
        },
        "counter"_a.none());

    nb::class_<Engine>(module, "LpEngine")
        .def(
            "__init__",
            [](Engine* self, const std::string& library, Int threads, Int cores, double highs_feasibility,
               double violation, Int max_added, Int attempts, Int max_dense_rows) {
                Settings settings;
                settings.tolerances.highs_feasibility = highs_feasibility;
                settings.tolerances.violation = violation;
                settings.max_added_per_round = max_added;
                settings.max_dense_rows = max_dense_rows;
                settings.retry_attempts = attempts;
                new (self) Engine(library, threads, cores, settings);
            },
            "library"_a, "threads"_a, "cores"_a, "highs_feasibility_tolerance"_a, "violation_tolerance"_a,
            "max_added_per_round"_a, "retry_attempts"_a, "max_dense_rows"_a)
        .def("solve_chains", &solve_chains, "stage"_a, "chunks"_a, "cuts"_a, "rows"_a.none(), "selected"_a, "states"_a,
             "chains_per_point"_a, "chain_start"_a, "realisation_index"_a, "result_index"_a.none(), "inflow"_a,
             "load"_a, "availability"_a, "basis_status"_a, "basis_cuts"_a, "basis_index"_a, "wants_basis"_a,
             "wants_solution"_a, "wants_gradient"_a, "counter"_a.none(), "tables"_a.none(), "new_cuts"_a.none(),
             "finished"_a.none(), "ask"_a.none() = nb::none())
        .def("solve_paths", &solve_paths, "stages"_a, "first_states"_a, "counter"_a.none(), "tables"_a.none(),
             "ask"_a.none() = nb::none())
        .def("save_failed", &Engine::save_failed, "path"_a, "columns"_a, "rows"_a)
        .def_prop_ro("solves_done", &Engine::solves_done)
        .def_prop_ro("version", [](const Engine& engine) { return std::string(engine.version()); });
}

}  // namespace cobre::lp
