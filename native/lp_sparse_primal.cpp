// Primal pivots at a primal feasible basis whose duals do not prove it.
//
// Harris's ratio test lets reduced costs get the wrong sign by a tolerance, and a later pivot may multiply that. A
// boxed variable then goes to its other bound, after which dual pivots may lead back to where it was; and one without
// another bound cannot. Here both enter the basis, and every step lowers the cost.
#include <algorithm>
#include <cmath>

#include "lp_sparse_simplex.hpp"

namespace cobre::lp {

// The nonbasic variable whose reduced cost is wrong by most, and the direction in which it lowers the cost.
bool SparseDualSimplex::find_wrong_reduced_cost(Int& entering, double& direction) const {
    double most = kZeroReducedCost;
    entering = -1;
    for (Int variable = 0; variable < static_cast<Int>(status_.size()); ++variable) {
        const int8_t status = status_[variable];
        if (status == basic || (direction_[variable] == 0.0 && status != at_zero)) continue;
        if (std::find(passed_over_.begin(), passed_over_.end(), variable) != passed_over_.end()) continue;
        const Int row = variable < columns_ ? stage_->singleton_row[variable] : -1;
        const double reduced =
            row >= 0 && working_row_of_[row] < 0 ? stage_->cost[variable] : reduced_cost_of(variable);
        const double wrong = status == at_zero ? std::abs(reduced) : -reduced * direction_[variable];
        if (wrong > most) most = wrong, entering = variable, direction = reduced > 0.0 ? -1.0 : 1.0;
    }
    return entering >= 0;
}

// The slot of the basic variable that reaches a bound first when a variable moves; -1: the variable reaches its own
// other bound before. False when nothing holds it, or only entries too small to be pivots. Harris's two passes, with
// the tolerance of bounds; entries too small to be pivots limit the step as well, or it would leave their variables
// infeasible, and dual pivots would have to take them.
bool SparseDualSimplex::primal_ratio_test(Int entering, double direction, Int& slot, double& side) const {
    const auto room_of = [&](Int at, double& bound) {
        const Int variable = head_[at];
        const bool falls = direction * pivot_column_.value[at] > 0.0;
        bound = falls ? lower_[variable] : upper_[variable];
        return std::max(0.0, falls ? x_[variable] - bound : bound - x_[variable]);
    };
    double limit = kInfinity, bound = 0.0;
    for (const Int at : pivot_column_.index()) {
        const double size = std::abs(pivot_column_.value[at]);
        if (size < kSmallestPivot) continue;
        const double room = room_of(at, bound);
        if (!std::isinf(bound)) limit = std::min(limit, (room + allowance(feasibility_, bound)) / size);
    }
    slot = -1;
    const double range = upper_[entering] - lower_[entering];
    if (range <= limit) return range < kInfinity;
    double largest = 0.0;
    for (const Int at : pivot_column_.index()) {
        const double size = std::abs(pivot_column_.value[at]);
        if (size < kSmallestPrimalPivot || size <= largest) continue;
        const double room = room_of(at, bound);
        if (std::isinf(bound) || room > limit * size) continue;
        largest = size, slot = at, side = direction * pivot_column_.value[at] > 0.0 ? 1.0 : -1.0;
    }
    return slot >= 0;
}

// One variable enters, or moves to its other bound. False when that cannot be done accurately.
bool SparseDualSimplex::primal_pivot(Int entering, double direction) {
    pivot_column_.clear();
    load_column(entering, 1.0, pivot_column_);
    factorisation_.ftran(pivot_column_, Factorisation::Purpose::update);
    Int slot = -1;
    double side = 0.0;
    if (!primal_ratio_test(entering, direction, slot, side)) return false;
    flips_.clear();
    if (slot < 0) {
        flips_.push_back(entering);
        flip_bounds();
        return true;
    }
    compute_pivot_row(slot);
    const double by_row = pivot_entry_of(entering), by_column = pivot_column_.value[slot];
    if (!(std::abs(by_row - by_column) <= kPivotAgreement * std::min(std::abs(by_row), std::abs(by_column))))
        return false;
    update_reduced_costs(entering, head_[slot]);
    update_weights(slot, entering);
    update_basis(slot, entering, side);
    ++counts_.pivots;
    return true;
}

// Let variables with reduced costs of the wrong sign enter, the most wrong one first, until there is none. One that
// could enter only by a small pivot, or by none, is passed over: its reduced cost stays wrong, and the duality gap
// tells whether that matters. Returns whether the basis or a bound changed. It ends, because steps are limited: each is
// a pivot, a bound flip, or takes a variable out.
bool SparseDualSimplex::primal_pivots(int64_t limit) {
    Int entering = -1;
    double direction = 0.0;
    bool has_changed = false;
    passed_over_.clear();
    for (int64_t steps = counts_.pivots; steps < limit && find_wrong_reduced_cost(entering, direction); ++steps) {
        if (primal_pivot(entering, direction)) has_changed = true;
        else passed_over_.push_back(entering);
        if (factorisation_.needs_refactor() && !refactor()) break;
    }
    return has_changed;
}

// Each round ends with a basis that is optimal for the dual method, and the number of pivots is limited.
bool SparseDualSimplex::improve_duals() {
    const int64_t limit = counts_.pivots + kLeastPrimalPivotLimit + row_count() / kRowsPerPrimalPivot;
    for (int round = 0; round < kMaxImprovements; ++round) {
        if (!primal_pivots(limit)) return round > 0;
        if (!refactor() || pivot_to_optimum(pivot_limit()) != SimplexStatus::optimal) return false;
    }
    return true;
}

}  // namespace cobre::lp
