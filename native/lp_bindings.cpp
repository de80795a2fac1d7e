#include "lp_bindings.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <stdexcept>
#include <unordered_map>
#include <utility>

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

// An engine and the stages that were loaded into it, by number.
struct LpEngine {
    Engine engine;
    std::unordered_map<Int, std::shared_ptr<const BoundStage>> stages;

    const StageModel& stage(Int number) const {
        const auto found = stages.find(number);
        require(found != stages.end(), "stage: none was loaded under this number");
        return found->second->model;
    }

    void load(Int number, nb::dict parts) {
        stages.insert_or_assign(number, std::make_shared<const BoundStage>(std::move(parts)));
    }

    // The same program as that of another stage: what is derived from it is kept once.
    void load_same(Int number, Int loaded) {
        stage(loaded);  // which must be there
        stages.insert_or_assign(number, stages.at(loaded));
    }

    ChainResults solve(Int number, const CutRows& cuts, const Chains& chains, const Outputs& outputs,
                       const nb::object& ask) {
        const StageModel& model = stage(number);
        const CutView view = read_cuts(model.dimension(), cuts);
        ChainBatch batch = read_chains(model, chains);
        batch.stage = number;
        const auto solves = static_cast<size_t>(batch.chain_start[batch.chains]);
        ChainResults results;
        WorkCounter* counter = nullptr;
        Results to;
        if (outputs.shared.is_none()) {
            to = results.allocate(model, solves, outputs);
        } else {
            const auto& shared = record_of<SharedBatch>(outputs.shared, "shared");
            counter = read_counter(shared.counter);
            to = results.use(model, solves, shared);
        }
        const auto target = read_cut_target(outputs, model, batch, to);
        {
            const nb::gil_scoped_release release;
            results.counts = engine.solve_chains(model, view, batch, to, ask_python(ask), counter, target.get());
        }
        results.has_stray_coefficients = target && target->has_stray_coefficients();
        return results;
    }

    PathResults solve_paths(const nb::list& steps, nb::handle states, const PathOutputs& outputs,
                            const nb::object& ask);
};

// Path p is a chain with the one item p. It starts from the basis that its step names, else from basis 0 if the stage
// has one.
struct PathIndices {
    std::vector<Int> chain_start, first_basis, no_basis;

    explicit PathIndices(size_t paths) : first_basis(paths, 0), no_basis(paths, -1) {
        for (size_t path = 0; path <= paths; ++path) chain_start.push_back(static_cast<Int>(path));
    }
};

PathStage read_step(const StageModel& model, const Step& step, const CutView& cuts, const PathIndices& paths) {
    PathStage stage{&model, &cuts, {}, {}, step.carries_basis, nullptr};
    const Array<Int> realisation_index(step.realisation_index, "realisation_index");
    require(realisation_index.size() + 1 == paths.chain_start.size(), "realisation_index: expected one for each path");
    stage.batch.stage = step.stage;
    stage.batch.chains = static_cast<Int>(realisation_index.size());
    stage.batch.chain_start = paths.chain_start.data();
    read_realisations(stage.batch, model, record_of<Realisations>(step.realisations, "realisations"),
                      realisation_index);
    const auto& bases = record_of<Bases>(step.bases, "bases");
    const bool has_basis = Array<int8_t>(bases.status, "basis_status").height() > 0;
    std::span<const Int> index(has_basis ? paths.first_basis : paths.no_basis);
    if (!step.basis_index.is_none()) index = Array<Int>(step.basis_index, "basis_index").span();
    require(index.size() == realisation_index.size(), "basis_index: expected one for each path");
    read_bases(stage.batch, model, bases, index);
    return stage;
}

// Where statuses of a carried basis come from; null: both stages have the same columns and rows.
const Int* read_carried(const Step& step, const StageModel& model, const StageModel* before) {
    if (!step.carries_basis) return nullptr;
    require(before, "carries_basis: there is no stage before");
    if (step.carried_from.is_none()) {
        require(before->has_shape_of(model), "carries_basis: the stage before has another shape");
        return nullptr;
    }
    const Array<Int> from(step.carried_from, "carried_from");
    require(from.size() == static_cast<size_t>(model.columns + model.rows),
            "carried_from: expected one entry for each column and row");
    for (const Int at : from.span())
        require(-1 <= at && at < before->columns + before->rows,
                "carried_from: not a column or row of the stage before");
    return from.data();
}

PathResults LpEngine::solve_paths(const nb::list& steps, nb::handle states, const PathOutputs& outputs,
                                  const nb::object& ask) {
    const Array<double> first(states, "states");
    const PathIndices paths(first.height());
    std::deque<CutView> views;  // stages point into it: a deque moves nothing when it grows
    std::vector<PathStage> stages;
    for (const nb::handle given : steps) {
        const auto& step = record_of<Step>(given, "steps");
        const StageModel& model = stage(step.stage);
        const StageModel* const before = stages.empty() ? nullptr : stages.back().model;
        require(static_cast<size_t>(model.dimension()) == first.width(),
                "states: not the dimension of the state of every stage");
        views.push_back(read_cuts(model.dimension(), record_of<CutRows>(step.cuts, "cuts")));
        stages.push_back(read_step(model, step, views.back(), paths));
        stages.back().carried_from = read_carried(step, model, before);
    }
    PathResults results;
    WorkCounter* counter = nullptr;
    if (outputs.shared.is_none()) {
        results.allocate(stages, first.height(), first.width(), outputs);
    } else {
        const auto& shared = record_of<SharedPaths>(outputs.shared, "shared");
        counter = read_counter(shared.counter);
        results.use(shared);
    }
    results.point(stages, first.height());
    const PathStates to{first.data(), results.table(results.states, "states", stages.size() * first.size()),
                        results.table(results.leaving, "leaving", first.size())};
    {
        const nb::gil_scoped_release release;
        results.counts = engine.solve_paths(stages, to, ask_python(ask), counter);
    }
    return results;
}

PyObject* lp_failure = nullptr;

template <typename T>
nb::object to_array(const std::vector<T>& numbers) {
    T* data;
    nb::object array = make_array(data, {static_cast<Py_ssize_t>(numbers.size())});
    std::copy(numbers.begin(), numbers.end(), data);
    return array;
}

void translate(const std::exception_ptr& thrown, void*) {
    try {
        std::rethrow_exception(thrown);
    } catch (const LpFailure& failure) {
        nb::object error = nb::borrow(lp_failure)(failure.what());
        error.attr("stage") = failure.stage;
        error.attr("chain") = failure.chain;
        error.attr("item") = failure.item;
        error.attr("status") = failure.status;
        error.attr("realisation") = failure.realisation;
        error.attr("solved_before") = failure.solved_before;
        error.attr("state") = to_array(failure.state);
        error.attr("basis_status") = failure.basis_status.empty() ? nb::none() : to_array(failure.basis_status);
        error.attr("basis_cuts") = to_array(failure.basis_cuts);
        PyErr_SetObject(lp_failure, error.ptr());
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
        .def_ro("leaving", &PathResults::leaving)
        .def_ro("basis_status", &PathResults::basis_status)
        .def_ro("basis_cuts", &PathResults::basis_cuts)
        .def_ro("inflow", &PathResults::inflow)
        .def_ro("primal", &PathResults::primal)
        .def_ro("dual", &PathResults::dual);
    bind_counts(paths);
}

// A factorised basis by itself, on dense vectors: for tests.
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

void bind_options(nb::module_& module) {
    const SimplexOptions defaults;
    module.attr("MAX_DENSE_ROWS") = kMaxDenseRows;
    nb::class_<SimplexOptions>(module, "SimplexOptions")
        .def(
            "__init__",
            [](SimplexOptions* self, double highs_feasibility, double violation, Int max_added, Int attempts,
               Int max_dense_rows) {
                new (self) SimplexOptions;
                self->tolerances.highs_feasibility = highs_feasibility;
                self->tolerances.violation = violation;
                self->max_added_per_round = max_added;
                self->retry_attempts = attempts;
                self->max_dense_rows = max_dense_rows;
            },
            nb::kw_only(), "highs_feasibility_tolerance"_a = defaults.tolerances.highs_feasibility,
            "violation_tolerance"_a = defaults.tolerances.violation,
            "max_added_per_round"_a = defaults.max_added_per_round, "retry_attempts"_a = defaults.retry_attempts,
            "max_dense_rows"_a = defaults.max_dense_rows)
        .def_prop_ro("highs_feasibility_tolerance",
                     [](const SimplexOptions& s) { return s.tolerances.highs_feasibility; })
        .def_prop_ro("violation_tolerance", [](const SimplexOptions& s) { return s.tolerances.violation; })
        .def_ro("max_added_per_round", &SimplexOptions::max_added_per_round)
        .def_ro("retry_attempts", &SimplexOptions::retry_attempts)
        .def_ro("max_dense_rows", &SimplexOptions::max_dense_rows);
}

}  // namespace

void bind_engine(nb::module_& module) {
    bind_options(module);
    bind_records(module);
    lp_failure = PyErr_NewException("cobre._native.LpFailure", PyExc_Exception, nullptr);
    module.attr("LpFailure") = nb::borrow(lp_failure);
    nb::register_exception_translator(translate, nullptr);
    bind_results(module);
    bind_factorisation(module);
    // The number of the next unit of work; for units that are solved by a call each.
    module.def(
        "take_unit",
        [](const nb::object& counter) {
            // relaxed: it hands out numbers, nothing else
            return read_counter(counter)->fetch_add(1, std::memory_order_relaxed);
        },
        "counter"_a);

    nb::class_<LpEngine>(module, "LpEngine")
        .def(
            "__init__",
            [](LpEngine* self, const std::string& library, Int threads, Int cores, const SimplexOptions& options) {
                new (self) LpEngine{Engine(library, threads, cores, options), {}};
            },
            "library"_a, "threads"_a, "cores"_a, "settings"_a)
        .def("load", &LpEngine::load, "stage"_a, "parts"_a)
        .def("load_same", &LpEngine::load_same, "stage"_a, "loaded"_a)
        .def("solve", &LpEngine::solve, "stage"_a, "cuts"_a, "chains"_a, "out"_a, "ask"_a.none() = nb::none())
        .def("solve_paths", &LpEngine::solve_paths, "steps"_a, "states"_a, "out"_a, "ask"_a.none() = nb::none())
        .def(
            "save_failed",
            [](LpEngine& bound, const std::string& path, const std::vector<std::string>& columns,
               const std::vector<std::string>& rows) { bound.engine.save_failed(path, columns, rows); },
            "path"_a, "columns"_a, "rows"_a)
        .def_prop_ro("solves_done", [](const LpEngine& bound) { return bound.engine.solves_done(); })
        .def_prop_ro("version", [](const LpEngine& bound) { return std::string(bound.engine.version()); });
}

}  // namespace cobre::lp
