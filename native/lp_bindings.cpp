#include "lp_bindings.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "lp_batch.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace cobre::lp {

namespace {

template <typename T>
using In = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;

template <typename T>
std::vector<T> copy_of(const In<T>& array) {
    return {array.data(), array.data() + array.size()};
}

template <typename T>
void read(const nb::dict& parts, const char* name, std::vector<T>& target) {
    target = copy_of<T>(nb::cast<In<T>>(parts[name]));
}

std::unique_ptr<StageModel> make_stage(const nb::dict& parts) {
    auto stage = std::make_unique<StageModel>();
    read(parts, "cost", stage->cost);
    read(parts, "column_lower", stage->column_lower);
    read(parts, "column_upper", stage->column_upper);
    read(parts, "row_lower", stage->row_lower);
    read(parts, "row_upper", stage->row_upper);
    read(parts, "row_start", stage->row_start);
    read(parts, "column_index", stage->column_index);
    read(parts, "value", stage->value);
    read(parts, "storage_column", stage->storage_column);
    read(parts, "storage_scale", stage->storage_scale);
    read(parts, "autoregression", stage->autoregression);
    read(parts, "input_row", stage->input_row);
    read(parts, "input_index", stage->input_index);
    read(parts, "input_value", stage->input_value);
    read(parts, "load_row", stage->load_row);
    read(parts, "load_bus", stage->load_bus);
    read(parts, "load_factor", stage->load_factor);
    read(parts, "source_column", stage->source_column);
    read(parts, "source_index", stage->source_index);
    read(parts, "source_factor", stage->source_factor);
    read(parts, "source_is_pinned", stage->source_is_pinned);
    stage->hydros = nb::cast<Int>(parts["hydros"]);
    stage->order = nb::cast<Int>(parts["order"]);
    stage->future_cost = nb::cast<Int>(parts["future_cost"]);
    stage->truncates = nb::cast<bool>(parts["truncates"]);
    stage->finish();
    return stage;
}

// A batch with the shape of its tables, which must be right when there is nothing in them, too.
struct BoundBatch {
    std::unique_ptr<Batch> batch;
    size_t units, solves, dimension, hydros, columns, rows;
};

// An array over the batch's memory, which lives as long as the array.
template <typename T>
nb::object vector_of(nb::handle owner, std::vector<T>& data) {
    return nb::cast(nb::ndarray<nb::numpy, T>(data.data(), {data.size()}, owner));
}

template <typename T>
nb::object table_of(nb::handle owner, std::vector<T>& data, size_t height, size_t width) {
    return nb::cast(nb::ndarray<nb::numpy, T>(data.data(), {data.empty() && width ? 0 : height, width}, owner));
}

std::unique_ptr<BoundBatch> solve(Engine& engine, const StageModel& stage, const nb::list& chunks, Int cuts,
                                  const In<uint8_t>& in_play, const In<double>& states,
                                  const In<Int>& chain_start, const In<Int>& chain_items, const In<double>& inflow,
                                  const In<double>& load, const In<double>& availability, const In<int8_t>& start_status,
                                  const In<Int>& start_cuts, const In<Int>& start_index, bool keeps_basis,
                                  bool keeps_solution, bool keeps_gradient) {
    std::vector<const double*> places;
    for (const nb::handle chunk : chunks) {
        const auto array = nb::cast<In<double>>(chunk);
        if (array.size() < static_cast<size_t>((1 + stage.dimension()) * kCutsPerChunk))
            throw std::invalid_argument("a chunk of cuts is too small");
        places.push_back(array.data());
    }
    if (static_cast<size_t>(cuts) > places.size() * kCutsPerChunk || in_play.size() < static_cast<size_t>(cuts))
        throw std::invalid_argument("more cuts than chunks hold");
    Work work;
    work.units = static_cast<Int>(chain_start.size()) - 1;
    if (work.units < 0 || states.size() != static_cast<size_t>(work.units) * stage.dimension() ||
        start_index.size() != static_cast<size_t>(work.units))
        throw std::invalid_argument("states, chains and bases differ in number");
    work.states = states.data();
    work.chain_start = chain_start.data();
    work.chain_items = chain_items.data();
    if (static_cast<size_t>(work.chain_start[work.units]) != chain_items.size())
        throw std::invalid_argument("the chains do not end where their items do");
    work.inflow = inflow.data();
    work.load = load.data();
    work.availability = availability.data();
    work.buses = static_cast<Int>(load.ndim() == 2 ? load.shape(1) : 0);
    work.sources = static_cast<Int>(availability.ndim() == 2 ? availability.shape(1) : 0);
    const auto realisations = static_cast<Int>(inflow.shape(0));
    for (size_t item = 0; item < chain_items.size(); ++item)
        if (chain_items.data()[item] < 0 || chain_items.data()[item] >= realisations)
            throw std::invalid_argument("a chain asks for a realisation that there is not");
    work.start_status = start_status.data();
    work.start_cuts = start_cuts.data();
    work.start_index = start_index.data();
    const auto bases = static_cast<Int>(start_status.shape(0));
    for (size_t unit = 0; unit < start_index.size(); ++unit)
        if (start_index.data()[unit] >= bases) throw std::invalid_argument("a chain starts from a basis that there is not");
    work.keeps_basis = keeps_basis;
    work.keeps_solution = keeps_solution;
    work.keeps_gradient = keeps_gradient;
    const CutView view(std::move(places), cuts, stage.dimension(), in_play.data());
    auto bound = std::make_unique<BoundBatch>();
    bound->units = static_cast<size_t>(work.units);
    bound->solves = chain_items.size();
    bound->dimension = static_cast<size_t>(stage.dimension());
    bound->hydros = static_cast<size_t>(stage.hydros);
    bound->columns = static_cast<size_t>(stage.columns);
    bound->rows = static_cast<size_t>(stage.rows);
    {
        const nb::gil_scoped_release release;
        bound->batch = engine.solve(stage, view, work);
    }
    return bound;
}

PyObject* lp_failure = nullptr;

void translate(const std::exception_ptr& thrown, void*) {
    try {
        std::rethrow_exception(thrown);
    } catch (const LpFailure& failure) {
        PyErr_SetObject(lp_failure, nb::make_tuple(failure.unit, failure.item, failure.status, failure.what()).ptr());
    }
}

}  // namespace

void bind(nb::module_& module) {
    lp_failure = PyErr_NewException("cobre._native.LpFailure", PyExc_Exception, nullptr);
    module.attr("LpFailure") = nb::borrow(lp_failure);
    nb::register_exception_translator(translate, nullptr);
    module.attr("CUTS_PER_CHUNK") = kCutsPerChunk;

    nb::class_<StageModel>(module, "LpStage")
        .def("__init__", [](StageModel* place, const nb::dict& parts) { new (place) StageModel(*make_stage(parts)); })
        .def_prop_ro("columns", [](const StageModel& stage) { return stage.columns; })
        .def_prop_ro("rows", [](const StageModel& stage) { return stage.rows; })
        .def_prop_ro("dimension", &StageModel::dimension);

    auto bound = nb::class_<BoundBatch>(module, "LpBatch");
#define COBRE_VECTOR(name) \
    bound.def_prop_ro(#name, [](nb::handle_t<BoundBatch> self) { \
        return vector_of(self, nb::cast<BoundBatch&>(self).batch->name); })
    COBRE_VECTOR(objective);
    COBRE_VECTOR(future_cost);
    COBRE_VECTOR(iterations);
#undef COBRE_VECTOR
#define COBRE_TABLE(name, height, width) \
    bound.def_prop_ro(#name, [](nb::handle_t<BoundBatch> self) { \
        auto& batch = nb::cast<BoundBatch&>(self); \
        return table_of(self, batch.batch->name, batch.height, width); })
    COBRE_TABLE(gradient, solves, batch.dimension);
    COBRE_TABLE(storage, solves, batch.hydros);
    COBRE_TABLE(inflow, solves, batch.hydros);
    COBRE_TABLE(primal, solves, batch.columns);
    COBRE_TABLE(dual, solves, batch.rows);
    COBRE_TABLE(basis_status, units, batch.columns + batch.rows);
    COBRE_TABLE(basis_cuts, units, batch.hydros + 1);
#undef COBRE_TABLE
    bound.def_prop_ro("library_solves", [](const BoundBatch& batch) { return batch.batch->library_solves; });
    bound.def_prop_ro("retries", [](const BoundBatch& batch) { return batch.batch->retries; });
    bound.def_prop_ro("solve_seconds", [](const BoundBatch& batch) { return batch.batch->solve_seconds; });
    bound.def_prop_ro("busy_seconds", [](const BoundBatch& batch) { return batch.batch->busy_seconds; });

    nb::class_<Engine>(module, "LpEngine")
        .def("__init__",
             [](Engine* place, const std::string& library, Int threads, double feasibility, double violation, Int max_added, Int attempts) {
                 Settings settings;
                 settings.tolerances.feasibility = feasibility;
                 settings.tolerances.violation = violation;
                 settings.max_added_per_round = max_added;
                 settings.retry_attempts = attempts;
                 new (place) Engine(library, threads, settings);
             },
             "library"_a, "threads"_a, "feasibility_tolerance"_a, "violation_tolerance"_a,
             "max_added_per_round"_a, "retry_attempts"_a)
        .def("solve", &solve, "stage"_a, "chunks"_a, "cuts"_a, "in_play"_a, "states"_a, "chain_start"_a,
             "chain_items"_a, "inflow"_a, "load"_a, "availability"_a, "start_status"_a, "start_cuts"_a, "start_index"_a,
             "keeps_basis"_a, "keeps_solution"_a, "keeps_gradient"_a)
        .def("save_failed", &Engine::save_failed, "path"_a, "columns"_a, "rows"_a)
        .def_prop_ro("threads", &Engine::threads)
        .def_prop_ro("version", [](const Engine& engine) { return std::string(engine.version()); });
}

}  // namespace cobre::lp
