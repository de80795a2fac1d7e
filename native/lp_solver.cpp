// What goes into a chain of solves, and the solves of our own dual simplex.
#include "lp_solver.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace cobre::lp {

void SolveCounts::add(const SolveCounts& other) {
    SimplexCounts::add(other);
    solves += other.solves;
    library_solves += other.library_solves;
    retries += other.retries;
    solve_seconds += other.solve_seconds;
}

Solver::Solver(const HighsApi& api, const SimplexOptions& options, StopPoint stop)
    : api_(api), options_(options), stop_(stop), highs_(api.create()) {
    set_defaults();
    take_interrupts();
    dense_.stop_at(&stop_);
    sparse_.stop_at(&stop_);
}

Solver::~Solver() { api_.destroy(highs_); }

// Take over a stage: bounds start from the fixed ones, and the simplex from slacks, whatever this thread solved before.
void Solver::load(const StageModel& stage, const CutView& cuts, size_t solves) {
    stage_ = &stage;
    cuts_ = &cuts;
    // The dense kernel has no primal pivots, by which reduced costs of the wrong sign are corrected: with small costs
    // such errors hide better solutions.
    const bool is_dense = stage.rows <= options_.max_dense_rows && !stage.has_small_costs;
    simplex_ = is_dense ? static_cast<DualSimplex*>(&dense_) : &sparse_;
    simplex_->load(stage, cuts, options_.tolerances.simplex_feasibility, options_.tolerances.violation);
    point_starts_.clear();
    // The sparse kernel updates the values of all cuts, and needs them exactly.
    cut_rhs_.load(cuts, is_dense && cuts.numbers() >= kManyCutNumbers && solves >= kSolvesPerCopy);
    row_lower_.assign(stage.row_lower.begin(), stage.row_lower.end());
    row_upper_.assign(stage.row_upper.begin(), stage.row_upper.end());
    column_lower_.assign(stage.column_lower.begin(), stage.column_lower.end());
    column_upper_.assign(stage.column_upper.begin(), stage.column_upper.end());
    inflow_.resize(stage.num_hydros);
    inflow_gradient_.resize(stage.num_hydros);
    decided_.resize(stage.num_decided);
    passed_.resize(stage.passed());
}

// What is the same for all solves of a chain: what the incoming state adds to right-hand sides of rows and cuts.
void Solver::begin_chain(Int chain, const ChainBatch& batch, const double* state) {
    const StageModel& stage = *stage_;
    state_rhs_.assign(stage.rows, 0.0);
    for (size_t entry = 0; entry < stage.input_row.size(); ++entry)
        if (!stage.is_inflow(stage.input_index[entry]))
            state_rhs_[stage.input_row[entry]] +=
                stage.input_value[entry] * state[stage.component_of(stage.input_index[entry])];
    compute_inflows(chain, batch, state);
    cut_rhs_.begin_chain(static_cast<size_t>(batch.chain_start[chain + 1] - batch.chain_start[chain]));
    add_known_state(state);
}

// What is known of the outgoing state adds to right-hand sides of cuts: lags, and states that the stage only passes on.
void Solver::add_known_state(const double* state) {
    const StageModel& stage = *stage_;
    const Int n = stage.num_hydros;
    // The outgoing lag l + 1 is the incoming lag l; the outgoing lag 1 is this stage's inflow and comes later.
    if (stage.shifts_lags() && stage.num_lags > 1)
        cut_rhs_.add(stage.num_decided + n, (stage.num_lags - 1) * n, state + stage.num_decided);
    for (size_t lag = 0; lag < stage.lag_from.size(); ++lag)
        if (stage.lag_from[lag] >= 0)
            cut_rhs_.add(stage.lag(static_cast<Int>(lag)), n, state + stage.lag(stage.lag_from[lag]));
    outgoing_passed(state, passed_.data());
    if (stage.passed()) cut_rhs_.add(stage.first_passed(), stage.passed(), passed_.data());
    if (stage.num_lags > 0 && stage.shifts_lags()) cut_rhs_.add_each(stage.num_decided, n, inflows_.data());
    share_.resize(inflows_.size());
    for (size_t lag = 0; lag < stage.lag_share.size(); ++lag) {
        if (stage.lag_share[lag] == 0.0) continue;
        for (size_t at = 0; at < inflows_.size(); ++at) share_[at] = stage.lag_share[lag] * inflows_[at];
        cut_rhs_.add_each(stage.lag(static_cast<Int>(lag)), n, share_.data());
    }
}

// Inflows of all solves of a chain: the noise plus the autoregressive part of the lags; negative ones become zero where
// the study says so.
void Solver::compute_inflows(Int chain, const ChainBatch& batch, const double* state) {
    const StageModel& stage = *stage_;
    const Int n = stage.num_hydros, first = batch.chain_start[chain], end = batch.chain_start[chain + 1];
    inflows_.resize(static_cast<size_t>(end - first) * n);
    for (Int item = first; item < end; ++item)
        for (Int hydro = 0; hydro < n; ++hydro) {
            double inflow = batch.inflow[static_cast<size_t>(batch.realisation_index[item]) * n + hydro];
            for (Int lag = 0; lag < stage.num_lags; ++lag)
                inflow += stage.autoregression[static_cast<size_t>(lag) * n + hydro] *
                          state[stage.num_decided + lag * n + hydro];
            inflows_[static_cast<size_t>(item - first) * n + hydro] = stage.truncates && inflow < 0.0 ? 0.0 : inflow;
        }
}

// Inflows of one item, and the right-hand sides that follow from them.
void Solver::load_realisation(const ChainBatch& batch, Int realisation, Int item) {
    const StageModel& stage = *stage_;
    const auto* inflow = inflows_.data() + static_cast<size_t>(item) * stage.num_hydros;
    inflow_.assign(inflow, inflow + stage.num_hydros);
    cut_rhs_.choose(static_cast<size_t>(item));
    rhs_ = state_rhs_;
    for (size_t entry = 0; entry < stage.input_row.size(); ++entry)
        if (stage.is_inflow(stage.input_index[entry]))
            rhs_[stage.input_row[entry]] +=
                stage.input_value[entry] * inflow_[stage.input_index[entry] - stage.num_decided];
    for (size_t entry = 0; entry < stage.load_row.size(); ++entry)
        rhs_[stage.load_row[entry]] +=
            stage.load_factor[entry] *
            batch.load[static_cast<size_t>(realisation) * batch.buses + stage.load_bus[entry]];
}

// Only rows and columns that depend on inputs change from one realisation to the next.
void Solver::set_bounds(const ChainBatch& batch, Int realisation) {
    const StageModel& stage = *stage_;
    for (const Int row : stage.moving_rows) {
        row_lower_[row] = stage.row_lower[row] + rhs_[row];
        row_upper_[row] = stage.row_upper[row] + rhs_[row];
    }
    for (size_t entry = 0; entry < stage.source_column.size(); ++entry) {
        const double available =
            stage.source_factor[entry] *
            batch.availability[static_cast<size_t>(realisation) * batch.sources + stage.source_index[entry]];
        column_upper_[stage.source_column[entry]] = available;
        column_lower_[stage.source_column[entry]] = stage.source_is_pinned[entry] ? available : 0.0;
    }
    for (size_t hydro = 0; hydro < stage.correction_column.size(); ++hydro) {
        if (stage.correction_column[hydro] < 0) continue;
        const double missing = inflow_[hydro] < 0.0 ? -inflow_[hydro] * stage.correction_factor[hydro] : 0.0;
        column_upper_[stage.correction_column[hydro]] = missing;
        column_lower_[stage.correction_column[hydro]] = stage.fixes_corrections ? missing : 0.0;
    }
}

// The basis of the forward pass is far from every opening: cuts that were added since move the optimum. So the chains
// of a large stage start from the optimum of one opening of their trial point, the first, which every thread computes
// once: it is a function of the point, whoever computes it.
bool Solver::shares_start(const ChainBatch& batch, Int chain) const {
    const Int first = chain - chain % batch.chains_per_point;
    return (batch.first_realisation || batch.chains_per_point > 1) && simplex_ == &sparse_ &&
           stage_->rows > kMaxDenseRows && batch.basis_index[first] >= 0 &&
           batch.chain_start[first] < batch.chain_start[first + 1];
}

void Solver::solve_first_opening(const ChainBatch& batch, Int point, const double* state) {
    if (point_starts_.size() <= static_cast<size_t>(point)) point_starts_.resize(static_cast<size_t>(point) + 1);
    PointStart& start = point_starts_[point];
    if (std::exchange(start.is_tried, true)) return;
    const Int chain = point * batch.chains_per_point;
    const Int realisation =
        batch.first_realisation ? batch.first_realisation[point] : batch.realisation_index[batch.chain_start[chain]];
    const Int one_chain[] = {0, 1};  // a chain of this realisation
    ChainBatch first = batch;
    first.chain_start = one_chain;
    first.realisation_index = &realisation;
    begin_chain(0, first, state);
    load_realisation(first, realisation, 0);
    set_bounds(first, realisation);
    load_basis(batch, chain);
    start.is_solved = solve_by_simplex(options_.tolerances.duality_gap, /*improves_duals=*/false);
    start.counts = simplex_->take_counts();
    if (!start.is_solved) return;
    start.status.resize(static_cast<size_t>(stage_->columns + stage_->rows));
    start.cuts.resize(static_cast<size_t>(stage_->num_decided + 1));
    simplex_->basis(start.status.data(), start.cuts.data());
}

void Solver::load_start_basis(const ChainBatch& batch, Int chain) {
    if (!shares_start(batch, chain)) return load_basis(batch, chain);
    const PointStart& start = point_starts_[chain / batch.chains_per_point];
    if (chain % batch.chains_per_point == 0) counts.add(start.counts);
    if (!start.is_solved) return load_basis(batch, chain);
    simplex_->start(start.status.data(), start.cuts.data(), stage_->num_decided + 1);
}

void Solver::load_basis(const ChainBatch& batch, Int chain) {
    const Int basis = batch.basis_index[chain];
    if (basis < 0) return simplex_->start_from_slacks();
    const auto width = static_cast<size_t>(stage_->columns + stage_->rows),
               max_cuts = static_cast<size_t>(stage_->num_decided + 1);
    simplex_->start(batch.basis_status + basis * width, batch.basis_cuts + basis * max_cuts, stage_->num_decided + 1);
}

bool Solver::solve_by_simplex(double gap, bool improves_duals) {
    const Bounds bounds{column_lower_.data(), column_upper_.data(), row_lower_.data(), row_upper_.data(), &cut_rhs_};
    if (simplex_->optimise(bounds) != SimplexStatus::optimal) return false;
    simplex_->solution(column_value_, column_dual_, row_dual_, cuts_with_dual_);
    if (is_accurate(gap)) return true;
    if (!improves_duals || !simplex_->improve_duals()) return false;
    simplex_->solution(column_value_, column_dual_, row_dual_, cuts_with_dual_);
    return is_accurate(options_.tolerances.duality_gap);
}

// The starting basis may be to blame: numerically bad, or a cycle that began there. Duals are improved only here and
// after HiGHS, so that solves which a start from slacks repairs keep their bits.
bool Solver::solve_from_slacks() {
    ++counts.retries;
    simplex_->start_from_slacks();
    return solve_by_simplex(options_.tolerances.duality_gap, /*improves_duals=*/true);
}

// Small pivots may be to blame: the basis that they lead to is singular, or nearly. Reduced costs get more wrong this
// way, and are corrected sooner.
bool Solver::solve_carefully() {
    if (!simplex_->start_carefully()) return false;
    ++counts.retries;
    return solve_by_simplex(options_.tolerances.careful_gap, /*improves_duals=*/true);
}

// Reduced costs as the duals of rows and cuts give them. A simplex method calls those of basic columns zero; here they
// are the error of its factorisation.
void Solver::compute_reduced_costs() {
    const StageModel& stage = *stage_;
    reduced_cost_.assign(stage.cost.begin(), stage.cost.end());
    for (Int row = 0; row < stage.rows; ++row) {
        const double dual = row_dual_[row];
        if (dual == 0.0) continue;
        for (Int at = stage.row_start[row]; at < stage.row_start[row + 1]; ++at)
            reduced_cost_[stage.column_index[at]] -= dual * stage.value[at];
    }
    for (size_t row = 0; row < cuts_with_dual_.size(); ++row) {
        const double dual = row_dual_[stage.rows + row];
        if (dual == 0.0) continue;
        reduced_cost_[stage.future_cost] -= dual;
        for (Int state = 0; state < stage.num_decided; ++state)
            reduced_cost_[stage.state_column[state]] +=
                dual * cuts_->coefficient(cuts_with_dual_[row], state) * stage.state_scale[state];
    }
}

// The dual solution must prove the primal one, because cuts are made of duals: no dual of a method that points at an
// infinite bound, and a small duality gap. Smaller duals that do so, and what rounding makes of basic columns, count in
// the gap as if the bound were as far from the value as the value is large.
bool Solver::is_accurate(double tolerance) {
    const StageModel& stage = *stage_;
    double dual_objective = 0.0, sign_error = 0.0;
    const auto bound_of = [](double dual, double lower, double upper) { return dual > 0.0 ? lower : upper; };
    const auto add = [&](double dual, double value, double lower, double upper) {
        if (dual == 0.0) return;
        const double bound = bound_of(dual, lower, upper);
        dual_objective += std::isfinite(bound) ? dual * bound : dual * value - std::abs(dual) * (1.0 + std::abs(value));
    };
    const auto check_sign = [&](double dual, double lower, double upper) {
        if (dual != 0.0 && !std::isfinite(bound_of(dual, lower, upper)))
            sign_error = std::max(sign_error, std::abs(dual));
    };
    const auto add_row = [&](double dual, double lower, double upper) {
        check_sign(dual, lower, upper);
        add(dual, std::isfinite(lower) ? lower : std::isfinite(upper) ? upper : 0.0, lower, upper);
    };
    for (Int row = 0; row < stage.rows; ++row) add_row(row_dual_[row], row_lower_[row], row_upper_[row]);
    for (size_t row = 0; row < cuts_with_dual_.size(); ++row)
        add_row(row_dual_[stage.rows + row], cut_rhs_.at(cuts_with_dual_[row]), kInfinity);
    compute_reduced_costs();
    objective_ = 0.0;
    for (Int column = 0; column < stage.columns; ++column) {
        check_sign(column_dual_[column], column_lower_[column], column_upper_[column]);
        add(reduced_cost_[column], column_value_[column], column_lower_[column], column_upper_[column]);
        objective_ += stage.cost[column] * column_value_[column];
    }
    const double gap = std::abs(objective_ - dual_objective);
    return sign_error <= options_.tolerances.dual_sign && gap <= tolerance * (1.0 + std::abs(objective_));
}

// The order of attempts is fixed, and so are the results: own simplex from the last basis, own simplex from slacks,
// the same without small pivots, HiGHS.
void Solver::solve_chain(Int chain, const ChainBatch& batch, const Results& results) {
    const Int first = batch.chain_start[chain], end = batch.chain_start[chain + 1];
    if (first == end) return;
    const double* state = batch.states + static_cast<size_t>(chain / batch.chains_per_point) * stage_->dimension();
    if (shares_start(batch, chain)) {
        const auto began = std::chrono::steady_clock::now();
        solve_first_opening(batch, chain / batch.chains_per_point, state);
        counts.solve_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    }
    begin_chain(chain, batch, state);
    for (Int item = first; item < end; ++item) {
        load_realisation(batch, batch.realisation_index[item], item - first);
        set_bounds(batch, batch.realisation_index[item]);
        const auto began = std::chrono::steady_clock::now();
        if (item == first) load_start_basis(batch, chain);
        if (!solve_by_simplex(options_.tolerances.duality_gap, /*improves_duals=*/false) && !solve_from_slacks() &&
            !solve_carefully())
            solve_by_highs(chain, item);
        counts.solve_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
        const SimplexCounts done = simplex_->take_counts();
        counts.add(done);
        ++counts.solves;
        const auto row = static_cast<size_t>(batch.result_index ? batch.result_index[item] : item);
        store(row, results);
        if (results.basis_status) store_basis(row, results);
    }
}

}  // namespace cobre::lp
