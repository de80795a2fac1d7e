#include "lp_arguments.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace nb = nanobind;

namespace cobre::lp {

namespace {

template <typename T>
void read(const nb::dict& parts, const char* name, View<T>& part) {
    part = Array<T>(parts[name], name).span();
}

// How many rows the chunks of a stage must have.
size_t chunk_height(Int dimension, const nb::object& rows) {
    if (rows.is_none()) return 1 + static_cast<size_t>(dimension);
    const Array<Int> row_of(rows, "rows");
    require(row_of.size() == static_cast<size_t>(dimension), "rows: expected one for each component of the state");
    Int last = 0;
    for (const Int row : row_of.span()) {
        require(row == -1 || row > 0, "rows: row 0 holds the intercepts; a component needs a row of its own, or -1");
        last = std::max(last, row);
    }
    return 1 + static_cast<size_t>(last);
}

}  // namespace

BoundStage::BoundStage(nb::dict given) : parts(std::move(given)) {
    read(parts, "cost", model.cost);
    read(parts, "column_lower", model.column_lower);
    read(parts, "column_upper", model.column_upper);
    read(parts, "row_lower", model.row_lower);
    read(parts, "row_upper", model.row_upper);
    read(parts, "row_start", model.row_start);
    read(parts, "column_index", model.column_index);
    read(parts, "value", model.value);
    read(parts, "state_column", model.state_column);
    read(parts, "state_scale", model.state_scale);
    read(parts, "autoregression", model.autoregression);
    read(parts, "lag_from", model.lag_from);
    read(parts, "lag_share", model.lag_share);
    read(parts, "passed_from", model.passed_from);
    read(parts, "input_row", model.input_row);
    read(parts, "input_index", model.input_index);
    read(parts, "input_value", model.input_value);
    read(parts, "load_row", model.load_row);
    read(parts, "load_bus", model.load_bus);
    read(parts, "load_factor", model.load_factor);
    read(parts, "source_column", model.source_column);
    read(parts, "source_index", model.source_index);
    read(parts, "source_factor", model.source_factor);
    read(parts, "source_is_pinned", model.source_is_pinned);
    read(parts, "correction_column", model.correction_column);
    read(parts, "correction_factor", model.correction_factor);
    model.num_decided = nb::cast<Int>(parts["num_decided"]);
    model.num_hydros = nb::cast<Int>(parts["num_hydros"]);
    model.num_lags = nb::cast<Int>(parts["num_lags"]);
    model.future_cost = nb::cast<Int>(parts["future_cost"]);
    model.truncates = nb::cast<bool>(parts["truncates"]);
    model.fixes_corrections = nb::cast<bool>(parts["fixes_corrections"]);
    model.finish();
}

CutView read_cuts(Int dimension, const nb::list& chunks, Int cuts, const nb::object& rows, nb::handle selected) {
    const size_t height = chunk_height(dimension, rows);
    std::vector<CutChunk> views;
    size_t capacity = 0;
    for (const nb::handle chunk : chunks) {
        const Array<double> array(chunk, "chunks");
        require(array.height() >= height && array.width() % kCutsPerBlock == 0,
                "chunks: too few rows, or not a multiple of CUTS_PER_BLOCK columns");
        views.push_back({array.data(), static_cast<Int>(array.width())});
        capacity += array.width();
    }
    const Array<uint8_t> flags(selected, "selected");
    require(static_cast<size_t>(cuts) <= capacity && flags.size() >= static_cast<size_t>(cuts),
            "selected, chunks: fewer entries than cuts");
    return {std::move(views), cuts, rows.is_none() ? nullptr : Array<Int>(rows, "rows").data(), flags.data()};
}

void read_chains(ChainBatch& batch, const StageModel& stage, const Array<double>& states, Int chains_per_point,
                 const Array<Int>& start, const Array<Int>& realisation_index, size_t bases) {
    require(chains_per_point > 0 && start.size() > 0 && bases == start.size() - 1 &&
                states.size() * static_cast<size_t>(chains_per_point) == bases * static_cast<size_t>(stage.dimension()),
            "states, chains and starting bases differ in number");
    batch.chains = static_cast<Int>(start.size()) - 1;
    batch.chains_per_point = chains_per_point;
    batch.states = states.data();
    batch.chain_start = start.data();
    require(start.data()[0] == 0 && static_cast<size_t>(start.data()[batch.chains]) == realisation_index.size(),
            "chain_start: expected to end at the length of realisation_index");
    for (Int chain = 0; chain < batch.chains; ++chain)
        require(start.data()[chain] <= start.data()[chain + 1], "chain_start descends");
}

void read_realisations(ChainBatch& batch, const StageModel& stage, const Array<Int>& realisation_index,
                       nb::handle inflow, nb::handle load, nb::handle availability) {
    const Array<double> inflows(inflow, "inflow"), loads(load, "load"), available(availability, "availability");
    batch.inflow = inflows.data();
    batch.load = loads.data();
    batch.availability = available.data();
    batch.buses = static_cast<Int>(loads.width());
    batch.sources = static_cast<Int>(available.width());
    require(inflows.size() == inflows.height() * static_cast<size_t>(stage.num_hydros),
            "inflow: expected one column a hydro");
    require(loads.height() == inflows.height() && available.height() == inflows.height(),
            "inflow, load and availability differ in number of realisations");
    const auto realisations = static_cast<Int>(inflows.height());
    for (const Int index : realisation_index.span())
        require(0 <= index && index < realisations, "realisation_index: no such realisation");
    batch.realisation_index = realisation_index.data();
}

void read_bases(ChainBatch& batch, const StageModel& stage, nb::handle status, nb::handle cuts,
                std::span<const Int> index) {
    const Array<int8_t> statuses(status, "basis_status");
    const Array<Int> active_cuts(cuts, "basis_cuts");
    const auto bases = static_cast<Int>(statuses.height());
    require(statuses.size() == statuses.height() * static_cast<size_t>(stage.columns + stage.rows) &&
                active_cuts.size() == statuses.height() * static_cast<size_t>(stage.num_decided + 1),
            "basis_status, basis_cuts: not the size of this stage's bases");
    for (const Int basis : index) require(basis < bases, "basis_index: no such basis");
    batch.basis_status = statuses.data();
    batch.basis_cuts = active_cuts.data();
    batch.basis_index = index.data();
}

void read_result_index(ChainBatch& batch, const nb::object& result_index, size_t solves) {
    if (result_index.is_none()) return;
    const Array<Int> array(result_index, "result_index");
    require(array.size() == solves, "result_index: expected one for each solve");
    for (const Int row : array.span())
        require(0 <= row && static_cast<size_t>(row) < solves, "result_index: no such row of the results");
    batch.result_index = array.data();
}

WorkCounter* read_counter(const nb::object& counter) {
    if (counter.is_none()) return nullptr;
    const Array<int64_t> array(counter, "counter", true);
    require(array.size() == 1, "counter: expected one number");
    return reinterpret_cast<WorkCounter*>(array.data());
}

std::unique_ptr<CutTarget> read_cut_target(const nb::object& given, const nb::object& finished, const StageModel& stage,
                                           const ChainBatch& batch, const Results& results) {
    if (given.is_none()) return nullptr;
    const auto parts = nb::cast<nb::tuple>(given);
    require(parts.size() == 4, "new_cuts: expected four parts");
    const Array<double> weights(parts[0], "spectral_weights");
    const nb::object rows = nb::borrow(parts[3]);
    const auto dimension = static_cast<size_t>(stage.dimension());
    const auto solves = static_cast<size_t>(batch.chain_start[batch.chains]);
    require(weights.size() > 0 && solves % weights.size() == 0, "spectral_weights: expected one for each opening");
    const size_t points = solves / weights.size();
    require(points * static_cast<size_t>(batch.chains_per_point) == static_cast<size_t>(batch.chains),
            "spectral_weights: expected one for each opening");
    require(solves == 0 || (results.objective && (results.gradient || dimension == 0)),
            "new_cuts: there is no cut without gradients");
    std::vector<CutTarget::Chunk> chunks;
    size_t capacity = 0;
    const size_t height = chunk_height(stage.dimension(), rows);
    for (const nb::handle part : nb::cast<nb::list>(parts[1])) {
        const Array<double> chunk(part, "chunks", true);
        require(chunk.height() >= height, "chunks: too few rows");
        chunks.push_back({chunk.data(), chunk.width()});
        capacity += chunk.width();
    }
    const auto first_slot = nb::cast<size_t>(parts[2]);
    require(first_slot + points <= capacity, "chunks: too small for these cuts");
    const std::span<const Int> row_of = rows.is_none() ? std::span<const Int>() : Array<Int>(rows, "rows").span();
    WorkCounter* shared = nullptr;
    if (!finished.is_none()) {
        const Array<int64_t> counters(finished, "finished", true);
        require(counters.size() >= points, "finished: expected a counter for each trial point");
        shared = reinterpret_cast<WorkCounter*>(counters.data());
    }
    return std::make_unique<CutTarget>(weights.span(), points, shared, std::move(chunks), first_slot, row_of,
                                       dimension);
}

}  // namespace cobre::lp
