// Bounds, primal values and reduced costs of the current basis, computed from scratch.
#include <algorithm>
#include <cmath>

#include "lp_sparse_simplex.hpp"

namespace cobre::lp {

void SparseDualSimplex::set_row_bounds(Int row) {
    const WorkingRow& working = rows_[row];
    lower_[slack(row)] = working.is_cut() ? bounds_.cut_rhs->at(working.index) : bounds_.row_lower[working.index];
    upper_[slack(row)] = working.is_cut() ? kInfinity : bounds_.row_upper[working.index];
}

void SparseDualSimplex::load_bounds(const Bounds& bounds) {
    bounds_ = substitution_.exchanged(bounds);
    std::copy(bounds_.column_lower, bounds_.column_lower + columns_, lower_.begin());
    std::copy(bounds_.column_upper, bounds_.column_upper + columns_, upper_.begin());
    for (Int row = 0; row < row_count(); ++row) set_row_bounds(row);
}

// Bounds may have changed since the last solve: nonbasic variables go to a finite one, on the side of their reduced
// cost's sign. Whether one of them has another value now: however small its reduced cost, rows that are not part of the
// working LP may be violated by it.
bool SparseDualSimplex::reset_nonbasic() {
    free_.clear();
    bool has_moved = false;
    for (size_t variable = 0; variable < status_.size(); ++variable) {
        int8_t& status = status_[variable];
        if (status == basic) continue;
        const int8_t before = status;
        const bool has_lower = !std::isinf(lower_[variable]), has_upper = !std::isinf(upper_[variable]);
        if (!has_lower && !has_upper) status = at_zero;
        else if (status == at_zero || (status == at_lower ? !has_lower : !has_upper))
            status = has_lower ? at_lower : at_upper;
        if (status == at_lower && reduced_[variable] < -kZeroReducedCost && has_upper) status = at_upper;
        else if (status == at_upper && reduced_[variable] > kZeroReducedCost && has_lower) status = at_lower;
        move_to_bound(static_cast<Int>(variable));
        has_moved |= status != before && lower_[variable] != upper_[variable];
    }
    for (Int row = 0; row < row_count(); ++row) compute_dual_bounds(row);
    return has_moved;
}

void SparseDualSimplex::move_to_bound(Int variable) {
    const int8_t status = status_[variable];
    x_[variable] = status == at_lower ? lower_[variable] : status == at_upper ? upper_[variable] : 0.0;
    const bool is_fixed = lower_[variable] == upper_[variable];
    direction_[variable] = is_fixed || status == at_zero ? 0.0 : status == at_lower ? 1.0 : -1.0;
    if (status == at_zero && std::find(free_.begin(), free_.end(), variable) == free_.end()) free_.push_back(variable);
}

// The range of a row's dual within which the reduced costs of its slack and of its singletons keep their signs. With
// coefficient a and cost c, the reduced cost c - a y is zero at the dual y = c / a; a slack has a = -1 and c = 0.
void SparseDualSimplex::compute_dual_bounds(Int row) {
    DualBounds& bounds = dual_bounds_[row];
    bounds = {};
    const auto consider = [&](Int variable, double coefficient, double cost) {
        if (direction_[variable] == 0.0) return;
        const bool is_above = (coefficient > 0.0) == (direction_[variable] > 0.0);
        const double dual = cost / coefficient;
        DualBound& bound = bounds[is_above];
        if (bound.variable < 0 || (is_above ? dual < bound.dual : dual > bound.dual))
            bound = {variable, dual, std::abs(coefficient)};
    };
    consider(slack(row), -1.0, 0.0);
    if (rows_[row].is_cut()) return;
    const StageModel& stage = *stage_;
    for (Int at = stage.singleton_start[rows_[row].index]; at < stage.singleton_start[rows_[row].index + 1]; ++at) {
        const Int column = stage.singleton_column[at];
        consider(column, stage.column_value[stage.column_start[column]], stage.cost[column]);
    }
}

// A variable has moved to a bound, or off one.
void SparseDualSimplex::update_dual_bounds(Int variable) {
    if (variable >= columns_) return compute_dual_bounds(variable - columns_);
    const Int row = stage_->singleton_row[variable];
    if (row >= 0 && working_row_of_[row] >= 0) compute_dual_bounds(working_row_of_[row]);
}

// FTRAN: B x_B = -N x_N.
void SparseDualSimplex::compute_primal() {
    pivot_column_.clear();
    for (size_t variable = 0; variable < status_.size(); ++variable)
        if (status_[variable] != basic && x_[variable] != 0.0)
            load_column(static_cast<Int>(variable), -x_[variable], pivot_column_);
    factorisation_.ftran(pivot_column_);
    for (Int slot = 0; slot < row_count(); ++slot) x_[head_[slot]] = pivot_column_.value[slot];
    list_infeasible();
}

// BTRAN: B' y = c_B, then d = c - A' y. The slack of a row has the row's dual as its reduced cost.
void SparseDualSimplex::compute_reduced_costs() {
    inverse_row_.clear();
    for (Int slot = 0; slot < row_count(); ++slot)
        if (head_[slot] < columns_ && stage_->cost[head_[slot]] != 0.0)
            inverse_row_.set(slot, stage_->cost[head_[slot]]);
    factorisation_.btran(inverse_row_);
    std::copy(stage_->cost.begin(), stage_->cost.end(), reduced_.begin());
    for (Int row = 0; row < row_count(); ++row) {
        const double dual = inverse_row_.value[row];
        reduced_[slack(row)] = dual;
        if (dual != 0.0) for_each_in_row(row, [&](Int column, double value) { reduced_[column] -= dual * value; });
    }
    for (const Int variable : head_) reduced_[variable] = 0.0;
    has_reduced_costs_ = true;
}

void SparseDualSimplex::list_infeasible() {
    for (const Int slot : infeasible_) is_listed_[slot] = 0;
    infeasible_.clear();
    for (Int slot = 0; slot < row_count(); ++slot) update_infeasibility(slot);
}

// Whether the rows hold for the values that the factorisation gave. A row cannot be more accurate than its largest
// term.
bool SparseDualSimplex::is_consistent() const {
    for (Int row = 0; row < row_count(); ++row) {
        double value = 0.0, size = 1.0;
        for_each_in_row(row, [&](Int column, double coefficient) {
            const double term = coefficient * x_[column];
            value += term;
            size = std::max(size, std::abs(term));
        });
        const double activity = x_[slack(row)];
        if (!(std::abs(value - activity) <= feasibility_ * std::max(size, std::abs(activity)))) return false;
    }
    return true;
}

}  // namespace cobre::lp
