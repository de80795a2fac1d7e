// The dual ratio test: Harris's two passes with bound flips (the long-step rule).
#include <algorithm>
#include <cmath>
#include <span>

#include "lp_sparse_simplex.hpp"

namespace cobre::lp {

// BTRAN gives the row of the inverse, which times N is the pivot row.
void SparseDualSimplex::compute_pivot_row(Int slot) {
    inverse_row_.clear();
    inverse_row_.set(slot, 1.0);
    factorisation_.btran(inverse_row_, Factorisation::Purpose::update);
    pivot_row_.clear();
    SparseVector::Adder sum(pivot_row_);
    const Int* const columns = row_column_.data();
    const double* const values = row_value_.data();
    for (const Int row : inverse_row_.index()) {
        const double factor = inverse_row_.value[row];
        const Int end = rows_[row].split;  // a local copy: the compiler must assume that writes to the sum change it
        for (Int at = rows_[row].start; at < end; ++at) sum.add(columns[at], factor * values[at]);
    }
}

// Candidates: nonbasic variables that drive the leaving one to its bound when they move off theirs. Written without
// branches, because no predictor guesses which entries qualify, and counted by a number in a register: comparing what
// was just written would wait for memory at each candidate.
void SparseDualSimplex::list_candidates(double sign) {
    const bool has_free = this->has_free();
    const size_t free = has_free ? status_.size() : 0;
    const size_t most =
        pivot_row_.index().size() + inverse_row_.index().size() + free + 1;  // one more: written before it counts
    if (candidate_.size() < most)
        candidate_.resize(most), candidate_pivot_.resize(most), candidate_cost_.resize(most), group_.resize(most);
    size_t count = 0;
    const double smallest = smallest_pivot_;
    const auto append = [&count, smallest, candidates = candidate_.data(), pivots = candidate_pivot_.data(),
                         costs = candidate_cost_.data()](Int variable, double pivot, double cost) {
        candidates[count] = variable;
        pivots[count] = pivot;
        costs[count] = cost;
        count += pivot >= smallest;
    };
    const double *const reduced = reduced_.data(), *const directions = direction_.data();
    const double *const row_entries = pivot_row_.value.data(), *const inverse = inverse_row_.value.data();
    const double* const duals = reduced + columns_;
    const DualBounds* const dual_bounds = dual_bounds_.data();
    for (const Int column : pivot_row_.index()) {
        const double direction = directions[column];
        append(column, -sign * row_entries[column] * direction, std::max(0.0, reduced[column] * direction));
    }
    for (const Int row : inverse_row_.index()) {
        const double rise = -sign * inverse[row];
        const DualBound& bound = dual_bounds[row][rise > 0.0];
        append(bound.variable, std::abs(rise) * bound.size,
               std::max(0.0, std::copysign(1.0, rise) * (bound.dual - duals[row])) * bound.size);
    }
    candidates_ = count;
    if (has_free) list_free_candidates();
}

// Whether some nonbasic variable has no bound. Such a variable enters soon and stays.
bool SparseDualSimplex::has_free() const {
    return std::any_of(free_.begin(), free_.end(), [this](Int variable) { return status_[variable] == at_zero; });
}

// Free nonbasic variables, which hardly any LP has: they may move in either direction.
void SparseDualSimplex::list_free_candidates() {
    for (const Int variable : free_) {
        if (status_[variable] != at_zero) continue;
        const Int row = variable < columns_ ? stage_->singleton_row[variable] : -1;
        if (row >= 0 && working_row_of_[row] < 0) continue;  // no entry: its only row is not part of the working LP
        const double pivot = std::abs(pivot_entry_of(variable));
        if (pivot < smallest_pivot_) continue;
        candidate_[candidates_] = variable;
        candidate_pivot_[candidates_] = pivot;
        candidate_cost_[candidates_++] = 0.0;
    }
}

// The entry of a nonbasic variable in the pivot row.
double SparseDualSimplex::pivot_entry_of(Int variable) const {
    if (variable >= columns_) return -inverse_row_.value[variable - columns_];
    const Int row = stage_->singleton_row[variable];
    if (row < 0) return pivot_row_.value[variable];
    return inverse_row_.value[working_row_of_[row]] * stage_->column_value[stage_->column_start[variable]];
}

double SparseDualSimplex::reduced_cost_of(Int variable) const {
    if (variable >= columns_ || stage_->singleton_row[variable] < 0) return reduced_[variable];
    const double dual = reduced_[slack(working_row_of_[stage_->singleton_row[variable]])];
    return stage_->cost[variable] - stage_->column_value[stage_->column_start[variable]] * dual;
}

// A candidate that bounded a row's dual flips: replace it by the row's next bound, if there is one.
bool SparseDualSimplex::advance_breakpoint(size_t at) {
    const Int flipped = candidate_[at], row_of_stage = flipped < columns_ ? stage_->singleton_row[flipped] : -1;
    if (flipped < columns_ && row_of_stage < 0) return false;
    const Int row = flipped < columns_ ? working_row_of_[row_of_stage] : flipped - columns_;
    const bool is_above = dual_bounds_[row][1].variable == flipped;
    const double dual = reduced_[slack(row)], size = std::abs(inverse_row_.value[row]);
    direction_[flipped] = 0.0;
    compute_dual_bounds(row);
    const DualBound& next = dual_bounds_[row][is_above];
    if (next.variable < 0) return false;
    const double room = is_above ? next.dual - dual : dual - next.dual;
    candidate_[at] = next.variable;
    candidate_pivot_[at] = size * next.size;
    candidate_cost_[at] = room > 0.0 ? room * next.size : 0.0;
    return true;
}

// Harris's first pass: the longest dual step for which no reduced cost has the wrong sign by more than the tolerance.
double SparseDualSimplex::harris_limit() const {
    double least[4] = {kInfinity, kInfinity, kInfinity, kInfinity};  // a minimum does not depend on its order
    size_t at = 0;
    for (; at + 4 <= candidates_; at += 4)
        for (size_t lane = 0; lane < 4; ++lane) {
            const double limit = (candidate_cost_[at + lane] + harris_tolerance_) / candidate_pivot_[at + lane];
            least[lane] = limit < least[lane] ? limit : least[lane];
        }
    for (; at < candidates_; ++at)
        least[0] = std::min(least[0], (candidate_cost_[at] + harris_tolerance_) / candidate_pivot_[at]);
    return std::min(std::min(least[0], least[1]), std::min(least[2], least[3]));
}

// The group: candidates with a breakpoint within a step. While variables flip, only they are examined.
void SparseDualSimplex::collect_group(double step) {
    size_t count = 0;
    for (size_t at = 0; at < candidates_; ++at) {
        group_[count] = at;
        count += candidate_cost_[at] <= step * candidate_pivot_[at];
    }
    group_size_ = count;
}

// Harris's second pass: among candidates within the tolerance whose pivot is large enough, the boxed one with the
// largest range, because it leaves fewer variables infeasible later (12 % fewer pivots on an official deck); without a
// boxed one, the largest pivot. False when the group has no breakpoint left within the step. Otherwise `best` is a
// member of the group with a finite cost, also when rounding hides the tolerance: the nearest one always qualifies.
bool SparseDualSimplex::choose_in_group(double step, size_t& best) const {
    const std::span<const size_t> group(group_.data(), group_size_);
    double limit = kInfinity;
    for (const size_t at : group) {
        const double own = (candidate_cost_[at] + harris_tolerance_) / candidate_pivot_[at];
        if (own < limit) limit = own, best = at;
    }
    if (!(limit <= step) || std::isinf(limit)) return false;
    double largest = 0.0, most_room = 0.0;
    for (const size_t at : group)
        if (candidate_cost_[at] <= limit * candidate_pivot_[at] && candidate_pivot_[at] > largest)
            largest = candidate_pivot_[at], best = at;
    for (const size_t at : group) {
        if (candidate_cost_[at] > limit * candidate_pivot_[at] || candidate_pivot_[at] < kPivotShare * largest)
            continue;
        const double room = candidate_pivot_[at] * (upper_[candidate_[at]] - lower_[candidate_[at]]);
        if (room > most_room && room < kInfinity) most_room = room, best = at;
    }
    return true;
}

// Boxed variables flip to their other bound as long as the leaving variable stays infeasible. Both loops end: each pass
// of the inner one takes a variable out of the candidates for good (it cannot be the bound of its row's dual again,
// because its direction is zero; any other gets an infinite cost), and each pass of the outer one has at least the
// candidate of `limit` in its group.
bool SparseDualSimplex::ratio_test(double infeasibility, Int& entering) {
    list_candidates(infeasibility > 0.0 ? 1.0 : -1.0);
    flips_.clear();
    double left = std::abs(infeasibility);
    for (double limit = harris_limit(); limit < kInfinity; limit = harris_limit()) {
        const double step = kGroupFactor * limit;
        collect_group(step);
        for (size_t best = 0; choose_in_group(step, best);) {
            const Int chosen = candidate_[best];
            left -= candidate_pivot_[best] * (upper_[chosen] - lower_[chosen]);
            if (!(left > 0.0)) {
                entering = chosen;
                return true;
            }
            flips_.push_back(chosen);
            if (!advance_breakpoint(best)) candidate_cost_[best] = kInfinity;  // no candidate any more
        }
    }
    // All flips together may reach the bound exactly, but for rounding: then the last one enters instead.
    if (flips_.empty() || left > feasibility_ * std::max(1.0, std::abs(infeasibility))) return false;
    entering = flips_.back();
    flips_.pop_back();
    return true;
}

}  // namespace cobre::lp
