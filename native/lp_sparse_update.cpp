// One pivot: BTRAN, FTRAN and FTRAN of the bound flips update values, reduced costs, weights and the factorisation.
#include <algorithm>
#include <cmath>

#include "lp_sparse_simplex.hpp"

namespace cobre::lp {

// All bound flips of a pivot change the basic variables by one FTRAN.
void SparseDualSimplex::flip_bounds() {
    if (flips_.empty()) return;
    flip_column_.clear();
    for (const Int variable : flips_) {
        const double before = x_[variable];
        status_[variable] = status_[variable] == at_lower ? at_upper : at_lower;
        move_to_bound(variable);
        update_dual_bounds(variable);
        load_column(variable, before - x_[variable], flip_column_);
    }
    factorisation_.ftran(flip_column_);
    for (const Int slot : flip_column_.index()) {
        x_[head_[slot]] += flip_column_.value[slot];
        update_infeasibility(slot);
    }
}

// No pivot after all: variables that were going to flip or to enter stay at their bounds.
void SparseDualSimplex::undo_flips(Int entering) {
    if (entering >= 0) flips_.push_back(entering);
    for (const Int variable : flips_) {
        move_to_bound(variable);
        update_dual_bounds(variable);
    }
}

void SparseDualSimplex::update_reduced_costs(Int entering, Int leaving) {
    const double step = reduced_cost_of(entering) / pivot_entry_of(entering);
    if (step != 0.0) {
        for (const Int column : pivot_row_.index()) reduced_[column] -= step * pivot_row_.value[column];
        for (const Int row : inverse_row_.index())
            if (status_[slack(row)] != basic) reduced_[slack(row)] += step * inverse_row_.value[row];
    }
    reduced_[entering] = 0.0;
    reduced_[leaving] = -step;
}

// Dual Devex (Forrest and Goldfarb): estimates of steepest-edge weights that need no FTRAN of their own. They only grow
// along a chain of solves. With many production planes they grow out of all proportion (to 1e40 and more), and
// rows of the inverse with hundreds of entries are taken too often: there the power of a ratio is 1.5 instead of 2.
void SparseDualSimplex::update_weights(Int slot, Int entering) {
    const double pivot = pivot_column_.value[slot], weight = weight_[head_[slot]];
    const auto update = [&](auto power) {
        for (const Int at : pivot_column_.index()) {
            double& other = weight_[head_[at]];
            other = std::max(other, power(pivot_column_.value[at] / pivot) * weight);
        }
    };
    const auto square = [](double ratio) { return ratio * ratio; };
    const auto between = [](double ratio) { return std::abs(ratio) * std::sqrt(std::abs(ratio)); };
    const bool prefers_short_rows = stage_->has_many_planes();
    if (prefers_short_rows) update(between);
    else update(square);
    weight_[head_[slot]] = 1.0;
    weight_[entering] = std::max(1.0, weight / (prefers_short_rows ? between(pivot) : square(pivot)));
}

// The primal step, and the exchange of the entering and the leaving variable.
void SparseDualSimplex::update_basis(Int slot, Int entering, double infeasibility) {
    const Int leaving = head_[slot];
    const double bound = infeasibility > 0.0 ? lower_[leaving] : upper_[leaving];
    const double step = (x_[leaving] - bound) / pivot_column_.value[slot];
    x_[entering] += step;
    set_basic(entering, slot);
    status_[entering] = basic;
    direction_[entering] = 0.0;
    status_[leaving] = infeasibility > 0.0 ? at_lower : at_upper;
    move_to_bound(leaving);
    update_dual_bounds(entering);
    update_dual_bounds(leaving);
    if (entering < columns_) move_entries(entering, true);
    if (leaving < columns_) move_entries(leaving, false);
    for (const Int at : pivot_column_.index()) {
        if (at != slot) x_[head_[at]] -= step * pivot_column_.value[at];
        update_infeasibility(at);
    }
    factorisation_.update(slot);
    is_freshly_factorised_ = false;
}

SparseDualSimplex::PivotResult SparseDualSimplex::pivot(const Leaving& leaving) {
    compute_pivot_row(leaving.slot);
    Int entering = -1;
    if (!ratio_test(leaving.infeasibility, entering)) return undo_flips(entering), PivotResult::no_entering;
    pivot_column_.clear();
    load_column(entering, 1.0, pivot_column_);
    factorisation_.ftran(pivot_column_, Factorisation::Purpose::update);
    const double by_row = pivot_entry_of(entering), by_column = pivot_column_.value[leaving.slot];
    if (!(std::abs(by_row - by_column) <= kPivotAgreement * std::min(std::abs(by_row), std::abs(by_column))))
        return undo_flips(entering), PivotResult::inaccurate;
    flip_bounds();
    update_reduced_costs(entering, head_[leaving.slot]);
    update_weights(leaving.slot, entering);
    update_basis(leaving.slot, entering, leaving.infeasibility);
    ++counts_.pivots;
    return PivotResult::done;
}

// Factorise from scratch, and recompute what was updated.
bool SparseDualSimplex::refactor() {
    if (!factorise()) return false;
    compute_reduced_costs();
    compute_primal();
    return true;
}

SimplexStatus SparseDualSimplex::optimise(const Bounds& bounds) {
    const int64_t limit = pivot_limit();
    if (!remove_inactive_rows()) return SimplexStatus::gave_up;
    load_bounds(bounds);
    if (!has_reduced_costs_) compute_reduced_costs();
    reset_nonbasic();
    compute_primal();
    return pivot_to_optimum(limit);
}

// Pivot until no basic variable is infeasible and no deferred row or cut is violated; then compute the solution from
// scratch and check it.
//
// Reduced costs from scratch may have the wrong sign. In the first rounds boxed variables then go to their other bound,
// which is dual feasible at once, and dual pivots follow. On LPs with costs over twelve decades these pivots may lead
// back to the same basis, round after round, so later rounds factorise anew and make primal pivots instead.
//
// It ends: pivots are limited, every round adds a row or a cut that stays or counts as a failed check, and failed
// checks are limited.
SimplexStatus SparseDualSimplex::pivot_to_optimum(int64_t limit) {
    for (int failed_checks = 0; counts_.pivots < limit;) {
        pass_stop();
        Leaving leaving;
        if (find_leaving(leaving)) {
            const PivotResult step = pivot(leaving);
            if (step == PivotResult::done) {
                if (factorisation_.needs_refactor() && !refactor()) return SimplexStatus::gave_up;
                continue;
            }
            if (is_freshly_factorised_ || ++failed_checks > kMaxFailedChecks || !refactor())
                return SimplexStatus::gave_up;
            continue;
        }
        if (add_violated_rows() || add_violated_cut()) continue;
        const bool flips = failed_checks < kMaxFlipRounds;
        if (!flips && !is_freshly_factorised_ && !factorise()) return SimplexStatus::gave_up;
        compute_reduced_costs();
        const bool has_moved = flips && reset_nonbasic();
        compute_primal();
        if (!infeasible_.empty()) {
            // Values from scratch may be infeasible although updated ones were not. Without an end to that the basis is
            // worthless: whoever calls starts from slacks.
            if (failed_checks++ < kMaxFailedChecks) continue;
            return SimplexStatus::gave_up;
        }
        if (!flips && failed_checks < kMaxPrimalRounds && primal_pivots(limit)) {
            if (failed_checks++ >= kMaxFailedChecks || !refactor()) return SimplexStatus::gave_up;
            continue;
        }
        // A start that is not dual feasible (a cost without a bound to hold it) gets here with variables at the wrong
        // bound. When they move, so do the states, and rows and cuts that held may be violated.
        if (has_moved && (add_violated_rows() || add_violated_cut())) {
            if (failed_checks++ < kMaxFailedChecks) continue;
            return SimplexStatus::gave_up;
        }
        if (is_consistent()) {
            counts_.active_rows +=
                row_count() - std::count(status_.begin() + columns_, status_.end(), static_cast<int8_t>(basic));
            return SimplexStatus::optimal;
        }
        if (++failed_checks > kMaxFailedChecks || is_freshly_factorised_ || !refactor()) return SimplexStatus::gave_up;
    }
    return SimplexStatus::gave_up;
}

}  // namespace cobre::lp
