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

CutView read_cuts(Int dimension, const CutRows& cuts) {
    const size_t height = chunk_height(dimension, cuts.rows);
    std::vector<CutChunk> views;
    size_t capacity = 0;
    for (const nb::handle chunk : cuts.chunks) {
        const Array<double> array(chunk, "chunks");
        require(array.height() >= height && array.width() % kCutsPerBlock == 0,
                "chunks: too few rows, or not a multiple of CUTS_PER_BLOCK columns");
        views.push_back({array.data(), static_cast<Int>(array.width())});
        capacity += array.width();
    }
    const Array<uint8_t> flags(cuts.active, "active");
    require(static_cast<size_t>(cuts.count) <= capacity && flags.size() >= static_cast<size_t>(cuts.count),
            "active, chunks: fewer entries than cuts");
    return {std::move(views), height, cuts.count, cuts.rows.is_none() ? nullptr : Array<Int>(cuts.rows, "rows").data(),
            flags.data()};
}

namespace {

void read_result_index(ChainBatch& batch, nb::handle result_index, size_t solves) {
    if (result_index.is_none()) return;
    const Array<Int> array(result_index, "result_index");
    require(array.size() == solves, "result_index: expected one for each solve");
    for (const Int row : array.span())
        require(0 <= row && static_cast<size_t>(row) < solves, "result_index: no such row of the results");
    batch.result_index = array.data();
}

void read_first_realisation(ChainBatch& batch, const Chains& chains, size_t realisations) {
    if (chains.first_realisation.is_none()) return;
    const Array<Int> array(chains.first_realisation, "first_realisation");
    require(array.size() * static_cast<size_t>(chains.chains_per_point) == static_cast<size_t>(batch.chains),
            "first_realisation: expected one for each trial point");
    for (const Int row : array.span())
        require(0 <= row && static_cast<size_t>(row) < realisations, "first_realisation: no such realisation");
    batch.first_realisation = array.data();
}

}  // namespace

ChainBatch read_chains(const StageModel& stage, const Chains& chains) {
    const Array<double> states(chains.states, "states");
    const Array<Int> start(chains.start, "start"), realisation_index(chains.realisation_index, "realisation_index"),
        basis_index(chains.basis_index, "basis_index");
    const size_t count = basis_index.size();
    require(chains.chains_per_point > 0 && start.size() == count + 1 &&
                states.size() * static_cast<size_t>(chains.chains_per_point) ==
                    count * static_cast<size_t>(stage.dimension()),
            "states, chains and starting bases differ in number");
    require(start.data()[0] == 0 && static_cast<size_t>(start.data()[count]) == realisation_index.size(),
            "start: expected to end at the length of realisation_index");
    for (size_t chain = 0; chain < count; ++chain)
        require(start.data()[chain] <= start.data()[chain + 1], "start: expected ascending numbers");
    ChainBatch batch;
    batch.chains = static_cast<Int>(count);
    batch.chains_per_point = chains.chains_per_point;
    batch.states = states.data();
    batch.chain_start = start.data();
    const auto& realisations = record_of<Realisations>(chains.realisations, "realisations");
    read_realisations(batch, stage, realisations, realisation_index);
    read_first_realisation(batch, chains, Array<double>(realisations.inflow_m3s, "inflow_m3s").height());
    read_bases(batch, stage, record_of<Bases>(chains.bases, "bases"), basis_index.span());
    read_result_index(batch, chains.result_index, realisation_index.size());
    return batch;
}

void read_realisations(ChainBatch& batch, const StageModel& stage, const Realisations& realisations,
                       const Array<Int>& index) {
    const Array<double> inflows(realisations.inflow_m3s, "inflow_m3s"), loads(realisations.load_mw, "load_mw"),
        available(realisations.availability, "availability");
    batch.inflow = inflows.data();
    batch.load = loads.data();
    batch.availability = available.data();
    batch.buses = static_cast<Int>(loads.width());
    batch.sources = static_cast<Int>(available.width());
    require(inflows.size() == inflows.height() * static_cast<size_t>(stage.num_hydros),
            "inflow_m3s: expected one column for each hydro");
    require(loads.height() == inflows.height() && available.height() == inflows.height(),
            "inflow_m3s, load_mw and availability differ in number of realisations");
    const auto count = static_cast<Int>(inflows.height());
    for (const Int row : index.span()) require(0 <= row && row < count, "realisation_index: no such realisation");
    batch.realisation_index = index.data();
}

void read_bases(ChainBatch& batch, const StageModel& stage, const Bases& bases, std::span<const Int> index) {
    const Array<int8_t> statuses(bases.status, "basis_status");
    const Array<Int> active_cuts(bases.cuts, "basis_cuts");
    const auto count = static_cast<Int>(statuses.height());
    require(statuses.size() == statuses.height() * static_cast<size_t>(stage.columns + stage.rows) &&
                active_cuts.size() == statuses.height() * static_cast<size_t>(stage.num_decided + 1),
            "basis_status, basis_cuts: not the size of this stage's bases");
    for (const Int basis : index) require(basis < count, "basis_index: no such basis");
    batch.basis_status = statuses.data();
    batch.basis_cuts = active_cuts.data();
    batch.basis_index = index.data();
}

WorkCounter* read_counter(nb::handle counter) {
    const Array<int64_t> array(counter, "counter", true);
    require(array.size() == 1, "counter: expected one number");
    return reinterpret_cast<WorkCounter*>(array.data());
}

std::unique_ptr<CutTarget> read_cut_target(const Outputs& outputs, const StageModel& stage, const ChainBatch& batch,
                                           const Results& results) {
    if (outputs.cuts.is_none()) return nullptr;
    const NewCuts& given = record_of<NewCuts>(outputs.cuts, "cuts");
    const Array<double> weights(given.spectral_weights, "spectral_weights");
    const auto dimension = static_cast<size_t>(stage.dimension());
    const auto solves = static_cast<size_t>(batch.chain_start[batch.chains]);
    require(weights.size() > 0 && solves % weights.size() == 0, "spectral_weights: expected one for each opening");
    const size_t points = solves / weights.size();
    require(points * static_cast<size_t>(batch.chains_per_point) == static_cast<size_t>(batch.chains),
            "spectral_weights: expected one for each opening");
    require(solves == 0 || (results.objective && (results.gradient || dimension == 0)), "cuts: they need gradients");
    std::vector<CutTarget::Chunk> chunks;
    size_t capacity = 0;
    const size_t height = chunk_height(stage.dimension(), given.rows);
    for (const nb::handle part : given.chunks) {
        const Array<double> chunk(part, "chunks", true);
        require(chunk.height() >= height, "chunks: too few rows");
        chunks.push_back({chunk.data(), chunk.width()});
        capacity += chunk.width();
    }
    require(given.first_slot + points <= capacity, "chunks: too small for these cuts");
    const std::span<const Int> row_of =
        given.rows.is_none() ? std::span<const Int>() : Array<Int>(given.rows, "rows").span();
    WorkCounter* shared = nullptr;
    if (!outputs.shared.is_none()) {
        const Array<int64_t> counters(record_of<SharedBatch>(outputs.shared, "shared").finished, "finished", true);
        require(counters.size() >= points, "finished: expected a counter for each trial point");
        shared = reinterpret_cast<WorkCounter*>(counters.data());
    }
    return std::make_unique<CutTarget>(weights.span(), points, shared, std::move(chunks), given.first_slot, row_of,
                                       dimension);
}

}  // namespace cobre::lp
