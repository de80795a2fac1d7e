// One pivot of the dense dual simplex: pivot row, ratio test, and the updates of duals and inverse.
#include <algorithm>
#include <cmath>
#include <cstddef>

#include "lp_dense_simplex.hpp"
#include "lp_kernels.hpp"

namespace cobre::lp {

// The pivot row: change of the leaving variable by a unit of every nonbasic column and of every active row's slack.
void DenseDualSimplex::compute_pivot_row(const Leaving& leaving) {
    const size_t k = basic_columns_.size();
    if (leaving.is_row) {
        btran_row(leaving.row);
    } else {
        std::fill(pivot_row_.begin(), pivot_row_.end(), 0.0);
        pivot_row_slacks_.resize(k);
        for (size_t row = 0; row < k; ++row) pivot_row_slacks_[row] = inverse(leaving.position, row);
    }
    for (size_t row = 0; row < k; ++row)
        if (const double weight = pivot_row_slacks_[row]; weight != 0.0)
            for_each_entry(active_rows_[row], [&](Int column, double value) { pivot_row_[column] -= weight * value; });
}

// Collect the variables that may enter: those whose reduced cost gets closer to zero as the leaving variable moves to
// its bound. sign: of the infeasibility.
void DenseDualSimplex::list_candidates(double sign) {
    candidates_.clear();
    const auto consider = [&](Int index, double pivot, double dual, bool may_rise, bool may_fall) {
        const double gain = sign * pivot;
        if (!(std::abs(gain) >= kSmallestDensePivot)) return;  // nor may a NaN be a pivot
        if (gain > 0.0 ? !may_rise : !may_fall) return;
        const double cost = gain > 0.0 ? dual : -dual, size = std::abs(gain);
        const double ratio = std::max(0.0, cost) / size;
        candidates_.push_back({index, size, ratio, ratio + kHarrisTolerance / size});
    };
    // Most entries are zero, at places that no branch predictor guesses: collect the others without a branch.
    nonzeros_.resize(status_.size());
    size_t nonzeros = 0;
    for (size_t column = 0; column < status_.size(); ++column) {
        nonzeros_[nonzeros] = static_cast<Int>(column);
        nonzeros += (pivot_row_[column] != 0.0) & (status_[column] != basic);
    }
    for (size_t at = 0; at < nonzeros; ++at) {
        const Int column = nonzeros_[at];
        if (bounds_.column_lower[column] == bounds_.column_upper[column]) continue;
        const int8_t status = status_[column];
        consider(column, pivot_row_[column], reduced_[column], status != at_upper, status != at_lower);
    }
    for (size_t row = 0; row < active_rows_.size(); ++row) {
        if (is_fixed(active_rows_[row])) continue;
        consider(stage_->columns + static_cast<Int>(row), pivot_row_slacks_[row], duals_[row],
                 !active_rows_[row].at_upper, active_rows_[row].at_upper);
    }
}

// The ratio test with bound flips: boxed variables flip to the other bound as long as the leaving variable stays
// infeasible. Among candidates within Harris's tolerance the largest pivot wins, then the smallest index. Each pass
// takes one candidate away, and the one of the least limit always qualifies: a sum with a positive number is never
// below its other part.
bool DenseDualSimplex::ratio_test(double infeasibility, Int& entering) {
    list_candidates(infeasibility > 0.0 ? 1.0 : -1.0);
    double left = std::abs(infeasibility);
    flips_.clear();
    while (!candidates_.empty()) {
        double least = kInfinity;
        for (const Candidate& candidate : candidates_) least = std::min(least, candidate.limit);
        size_t best = candidates_.size();
        for (size_t at = 0; at < candidates_.size(); ++at)
            if (candidates_[at].ratio <= least &&
                (best == candidates_.size() || candidates_[at].pivot > candidates_[best].pivot))
                best = at;
        const Candidate chosen = candidates_[best];
        const double range = chosen.index < stage_->columns
                                 ? bounds_.column_upper[chosen.index] - bounds_.column_lower[chosen.index]
                                 : range_of(active_rows_[static_cast<size_t>(chosen.index - stage_->columns)]);
        left -= chosen.pivot * range;
        if (!(left > 0.0)) {
            entering = chosen.index;
            return true;
        }
        flips_.push_back(chosen.index);
        candidates_.erase(candidates_.begin() + static_cast<ptrdiff_t>(best));
    }
    // All flips together may reach the bound exactly, but for rounding: then the last one enters instead.
    if (flips_.empty() || left > feasibility_ * std::max(1.0, std::abs(infeasibility))) return false;
    entering = flips_.back();
    flips_.pop_back();
    return true;
}

void DenseDualSimplex::flip(Int candidate) {
    if (candidate >= stage_->columns) {
        Row& row = active_rows_[static_cast<size_t>(candidate - stage_->columns)];
        row.at_upper = !row.at_upper;
        return;
    }
    status_[candidate] = status_[candidate] == at_lower ? at_upper : at_lower;
    move_to_bound(candidate);
}

// Column exchange: a product-form update of the inverse.
void DenseDualSimplex::replace_column(size_t position, Int entering) {
    const size_t k = basic_columns_.size();
    ftran_.resize(k);
    load_column(entering);
    multiply(inverse_.data(), stride_, scratch_.data(), ftran_.data(), k, k);
    const double scale = 1.0 / ftran_[position];
    for (size_t row = 0; row < k; ++row) inverse(position, row) *= scale;
    for (size_t column = 0; column < k; ++column) {
        if (column == position || ftran_[column] == 0.0) continue;
        add_scaled(&inverse_[column * stride_], -ftran_[column], &inverse_[position * stride_], k);
    }
    basic_columns_[position] = entering;
}

// Row exchange. `pivot_row_slacks_` holds the new row in terms of the active ones.
void DenseDualSimplex::replace_row(size_t position, const Row& row) {
    const size_t k = basic_columns_.size();
    const double scale = 1.0 / pivot_row_slacks_[position];
    for (size_t column = 0; column < k; ++column) {
        const double value = inverse(column, position) * scale;
        if (value != 0.0) add_scaled(&inverse_[column * stride_], -value, pivot_row_slacks_.data(), k);
        inverse(column, position) = value;
    }
    active_rows_[position] = row;
}

// A basic column leaves and an active row with it: the inverse loses an order. The last ones take the free positions.
void DenseDualSimplex::shrink_inverse(size_t column_position, size_t row_position) {
    const size_t k = basic_columns_.size();
    const double scale = 1.0 / inverse(column_position, row_position);
    for (size_t column = 0; column < k; ++column) {
        const double factor = inverse(column, row_position) * scale;
        if (column == column_position || factor == 0.0) continue;
        add_scaled(&inverse_[column * stride_], -factor, &inverse_[column_position * stride_], k);
    }
    const size_t last = k - 1;
    for (size_t row = 0; row < k; ++row) inverse(column_position, row) = inverse(last, row);
    for (size_t column = 0; column < k; ++column) inverse(column, row_position) = inverse(column, last);
    basic_columns_[column_position] = basic_columns_[last];
    active_rows_[row_position] = active_rows_[last];
    duals_[row_position] = duals_[last];
    basic_columns_.pop_back();
    active_rows_.pop_back();
    duals_.pop_back();
}

// A row becomes active and a column basic: bordering, by the Schur complement. `pivot_row_slacks_` holds the row in
// terms of the active ones.
void DenseDualSimplex::extend_inverse(const Row& row, Int column) {
    const size_t k = basic_columns_.size();
    load_column(column);
    ftran_.resize(k);
    multiply(inverse_.data(), stride_, scratch_.data(), ftran_.data(), k, k);
    double schur = entry(row, column);
    for (size_t at = 0; at < k; ++at) schur -= pivot_row_slacks_[at] * scratch_[at];
    const double scale = 1.0 / schur;
    for (size_t at = 0; at < k; ++at) {
        const double factor = ftran_[at] * scale;
        if (factor != 0.0) add_scaled(&inverse_[at * stride_], factor, pivot_row_slacks_.data(), k);
        inverse(at, k) = -factor;
    }
    for (size_t position = 0; position < k; ++position) inverse(k, position) = -pivot_row_slacks_[position] * scale;
    inverse(k, k) = scale;
    basic_columns_.push_back(column);
    active_rows_.push_back(row);
    duals_.push_back(0.0);
}

// The dual step: the entering variable's reduced cost becomes zero. Gives the reduced cost of the leaving variable.
double DenseDualSimplex::update_duals(Int entering) {
    const auto position = static_cast<size_t>(entering - stage_->columns);
    const double step = entering < stage_->columns ? reduced_[entering] / pivot_row_[entering]
                                                   : duals_[position] / pivot_row_slacks_[position];
    if (step == 0.0) return step;
    add_scaled(reduced_.data(), -step, pivot_row_.data(), reduced_.size());
    add_scaled(duals_.data(), -step, pivot_row_slacks_.data(), duals_.size());
    return step;
}

void DenseDualSimplex::set_active(const Row& row, bool is_active) {
    (row.is_cut ? is_active_cut_ : is_active_row_)[row.index] = is_active;
    if (row.is_cut && !is_active) free_copies_.push_back(row.copy);
}

bool DenseDualSimplex::update_basis(const Leaving& leaving, Int entering) {
    const bool enters_row = entering >= stage_->columns;
    const auto entering_position = static_cast<size_t>(entering - stage_->columns);
    const Row entering_row = enters_row ? active_rows_[entering_position] : Row{};
    const double leaving_dual = update_duals(entering);
    if (!leaving.is_row) {
        const Int column = basic_columns_[leaving.position];
        if (enters_row) shrink_inverse(leaving.position, entering_position);
        else replace_column(leaving.position, entering);
        status_[column] = leaving.infeasibility > 0.0 ? at_lower : at_upper;
        reduced_[column] = leaving_dual;
        move_to_bound(column);
    } else {
        if (!enters_row && basic_columns_.size() + 1 >= stride_) return false;
        if (enters_row) replace_row(entering_position, leaving.row);
        else extend_inverse(leaving.row, entering);
        duals_[enters_row ? entering_position : duals_.size() - 1] = leaving_dual;
        set_active(leaving.row, true);
    }
    if (enters_row) {
        set_active(entering_row, false);
    } else {
        status_[entering] = basic;
        reduced_[entering] = 0.0;
    }
    return ++updates_ < kMaxDenseUpdates || refactor();
}

bool DenseDualSimplex::pivot(const Leaving& leaving) {
    compute_pivot_row(leaving);
    Int entering = -1;
    if (!ratio_test(leaving.infeasibility, entering)) return false;
    for (const Int index : flips_) flip(index);
    ++counts_.pivots;
    return update_basis(leaving, entering);
}

}  // namespace cobre::lp
