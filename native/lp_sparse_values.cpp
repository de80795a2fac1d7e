// Bounds, values and reduced costs of the present basis, computed from scratch.
#include <algorithm>
#include <cmath>
#include <limits>

#include "lp_sparse_simplex.hpp"

namespace cobre::lp {

namespace {

constexpr double kNoise = 1e-12;  // of a reduced cost: its sign means nothing below
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double allowance(double tolerance, double size) { return tolerance * std::max(1.0, std::abs(size)); }

}  // namespace

void SparseDualSimplex::bound_row(Int row) {
    const WorkingRow& working = rows_[row];
    lower_[slack(row)] = working.is_cut() ? bounds_.cut_right[working.index] : bounds_.row_lower[working.index];
    upper_[slack(row)] = working.is_cut() ? kInfinity : bounds_.row_upper[working.index];
}

void SparseDualSimplex::take_bounds(const Bounds& bounds) {
    bounds_ = bounds;
    std::copy(bounds.column_lower, bounds.column_lower + columns_, lower_.begin());
    std::copy(bounds.column_upper, bounds.column_upper + columns_, upper_.begin());
    for (Int row = 0; row < row_count(); ++row) bound_row(row);
}

// Nonbasic variables sit at a bound that the present bounds have, on the side that their reduced cost wants.
void SparseDualSimplex::place_nonbasic() {
    has_free_ = false;
    for (size_t variable = 0; variable < status_.size(); ++variable) {
        int8_t& status = status_[variable];
        if (status == basic) continue;
        const bool has_lower = !std::isinf(lower_[variable]), has_upper = !std::isinf(upper_[variable]);
        if (!has_lower && !has_upper) status = at_zero;
        else if (status == at_zero || (status == at_lower ? !has_lower : !has_upper)) status = has_lower ? at_lower : at_upper;
        if (status == at_lower && reduced_[variable] < -kNoise && has_upper) status = at_upper;
        else if (status == at_upper && reduced_[variable] > kNoise && has_lower) status = at_lower;
        put_at_bound(static_cast<Int>(variable));
    }
    for (Int row = 0; row < row_count(); ++row) bound_dual(row);
}

void SparseDualSimplex::put_at_bound(Int variable) {
    const int8_t status = status_[variable];
    x_[variable] = status == at_lower ? lower_[variable] : status == at_upper ? upper_[variable] : 0.0;
    const bool is_fixed = lower_[variable] == upper_[variable];
    way_[variable] = is_fixed || status == at_zero ? 0.0 : status == at_lower ? 1.0 : -1.0;
    has_free_ |= status == at_zero;
}

// The duals that a row may have: as far as the reduced costs of its slack and of its singletons keep their signs. With the
// coefficient a and the cost c, the reduced cost c - a y is zero at the price y = c / a; a slack has a = -1 and c = 0.
void SparseDualSimplex::bound_dual(Int row) {
    DualBounds& bounds = dual_bounds_[row];
    bounds = {};
    const auto consider = [&](Int variable, double coefficient, double cost) {
        if (way_[variable] == 0.0) return;
        const bool is_above = (coefficient > 0.0) == (way_[variable] > 0.0);
        const double price = cost / coefficient;
        DualBound& bound = bounds[is_above];
        if (bound.variable < 0 || (is_above ? price < bound.price : price > bound.price))
            bound = {variable, price, std::abs(coefficient)};
    };
    consider(slack(row), -1.0, 0.0);
    if (rows_[row].is_cut()) return;
    const StageModel& stage = *stage_;
    for (Int at = stage.singleton_start[rows_[row].index]; at < stage.singleton_start[rows_[row].index + 1]; ++at) {
        const Int column = stage.singleton_column[at];
        consider(column, stage.column_value[stage.column_start[column]], stage.cost[column]);
    }
}

// A variable came to a bound, or left one.
void SparseDualSimplex::bound_dual_again(Int variable) {
    if (variable >= columns_) return bound_dual(variable - columns_);
    const Int row = stage_->singleton_row[variable];
    if (row >= 0 && place_of_row_[row] >= 0) bound_dual(place_of_row_[row]);
}

// B x_B = -N x_N
void SparseDualSimplex::compute_values() {
    alpha_.clear();
    for (size_t variable = 0; variable < status_.size(); ++variable)
        if (status_[variable] != basic && x_[variable] != 0.0) load_column(static_cast<Int>(variable), -x_[variable], alpha_);
    factor_.ftran(alpha_);
    for (Int slot = 0; slot < row_count(); ++slot) x_[head_[slot]] = alpha_.value[slot];
    list_infeasible();
}

// B' y = c_B, and d = c - A' y. The slack of a row has the row's dual.
void SparseDualSimplex::compute_reduced_costs() {
    rho_.clear();
    for (Int slot = 0; slot < row_count(); ++slot)
        if (head_[slot] < columns_ && stage_->cost[head_[slot]] != 0.0) rho_.set(slot, stage_->cost[head_[slot]]);
    factor_.btran(rho_);
    std::copy(stage_->cost.begin(), stage_->cost.end(), reduced_.begin());
    for (Int row = 0; row < row_count(); ++row) {
        const double dual = rho_.value[row];
        reduced_[slack(row)] = dual;
        if (dual != 0.0) for_row(row, [&](Int column, double value) { reduced_[column] -= dual * value; });
    }
    for (const Int variable : head_) reduced_[variable] = 0.0;
    has_reduced_costs_ = true;
}

// How far a value is from its bounds, with the sign of the way back; 0 when it is near enough.
double SparseDualSimplex::missing_of(double value, double lower, double upper) const {
    if (value >= lower && value <= upper) return 0.0;
    if (lower - value > allowance(feasibility_, lower)) return lower - value;
    if (value - upper > allowance(feasibility_, upper)) return upper - value;
    return 0.0;
}

void SparseDualSimplex::note_value(Int slot) {
    const Int variable = head_[slot];
    missing_[slot] = missing_of(x_[variable], lower_[variable], upper_[variable]);
    if (missing_[slot] == 0.0 || is_candidate_[slot]) return;
    is_candidate_[slot] = 1;
    infeasible_.push_back(slot);
}

void SparseDualSimplex::list_infeasible() {
    for (const Int slot : infeasible_) is_candidate_[slot] = 0;
    infeasible_.clear();
    for (Int slot = 0; slot < row_count(); ++slot) note_value(slot);
}

// The rows must hold for the values that the factorisation gives; a row cannot be known better than its largest term.
bool SparseDualSimplex::is_consistent() const {
    for (Int row = 0; row < row_count(); ++row) {
        double value = 0.0, size = 1.0;
        for_row(row, [&](Int column, double coefficient) {
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
