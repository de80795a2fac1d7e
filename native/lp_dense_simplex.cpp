#include "lp_dense_simplex.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "lp_kernels.hpp"

namespace cobre::lp {

void DenseDualSimplex::begin_stage() {
    const StageModel& stage = *stage_;
    active_rows_.clear();  // they belong to another stage
    stride_ = static_cast<size_t>(stage.rows + stage.num_decided + 2);
    if (inverse_.size() < stride_ * stride_) inverse_.resize(stride_ * stride_);
    status_.assign(static_cast<size_t>(stage.columns), at_lower);
    is_active_row_.assign(static_cast<size_t>(stage.rows), 0);
    is_active_cut_.assign(static_cast<size_t>(cuts_->count()), 0);
    x_.assign(status_.size(), 0.0);
    reduced_.assign(status_.size(), 0.0);
    pivot_row_.assign(status_.size(), 0.0);
    outgoing_state_.resize(static_cast<size_t>(stage.num_decided));
    position_of_row_.resize(is_active_row_.size());
    start_from_slacks();
}

void DenseDualSimplex::start_from_slacks() {
    std::fill(status_.begin(), status_.end(), static_cast<int8_t>(at_lower));
    std::fill(is_active_row_.begin(), is_active_row_.end(), 0);
    for (const Row& row : active_rows_)
        if (row.is_cut) is_active_cut_[row.index] = 0;
    basic_columns_.clear();
    active_rows_.clear();
    duals_.clear();
    cut_coefficients_.clear();
    free_copies_.clear();
    updates_ = 0;
}

// A cut with its coefficients next to each other: in the pool a stride lies between them.
DenseDualSimplex::Row DenseDualSimplex::copy_cut(Int cut) {
    const auto n = static_cast<size_t>(stage_->num_decided);
    if (free_copies_.empty()) {
        free_copies_.push_back(static_cast<Int>(n ? cut_coefficients_.size() / n : 0));
        cut_coefficients_.resize(cut_coefficients_.size() + n);
    }
    const Int copy = free_copies_.back();
    free_copies_.pop_back();
    double* row = cut_coefficients_.data() + static_cast<size_t>(copy) * n;
    for (size_t state = 0; state < n; ++state)
        row[state] = -cuts_->coefficient(cut, static_cast<Int>(state)) * stage_->state_scale[state];
    return {cut, true, false, copy};
}

// Cuts that are no longer in the pool, or not selected, are left out: then the numbers of basic columns and active rows
// may differ, and the basis is refused.
bool DenseDualSimplex::start(const int8_t* status, const Int* active_cuts, Int max_cuts) {
    start_from_slacks();
    const StageModel& stage = *stage_;
    for (Int column = 0; column < stage.columns; ++column) {
        status_[column] = status[column];
        if (status[column] == basic) basic_columns_.push_back(column);
    }
    for (Int row = 0; row < stage.rows; ++row) {
        const int8_t side = status[stage.columns + row];
        if (side == basic) continue;
        is_active_row_[row] = 1;
        active_rows_.push_back({row, false, side == at_upper});
    }
    for (Int entry = 0; entry < max_cuts && active_cuts[entry] >= 0; ++entry) {
        if (active_cuts[entry] >= cuts_->count() || !cuts_->is_selected(active_cuts[entry])) continue;
        is_active_cut_[active_cuts[entry]] = 1;
        active_rows_.push_back(copy_cut(active_cuts[entry]));
    }
    if (basic_columns_.size() == active_rows_.size() && basic_columns_.size() < stride_ && refactor()) return true;
    start_from_slacks();
    return false;
}

double DenseDualSimplex::entry(const Row& row, Int column) const {
    double found = 0.0;
    for_each_entry(row, [&](Int at, double value) {
        if (at == column) found += value;
    });
    return found;
}

// The entries of a column in the active rows, into `scratch_`.
void DenseDualSimplex::load_column(Int column) {
    const StageModel& stage = *stage_;
    const Int state = stage.state_of_column[column];
    scratch_.resize(active_rows_.size());
    for (size_t position = 0; position < active_rows_.size(); ++position) {
        const Row& row = active_rows_[position];
        scratch_[position] = 0.0;
        if (!row.is_cut) position_of_row_[row.index] = static_cast<Int>(position);
        else if (column == stage.future_cost) scratch_[position] = 1.0;
        else if (state >= 0)
            scratch_[position] = cut_coefficients_[static_cast<size_t>(row.copy) * stage.num_decided + state];
    }
    for (Int at = stage.column_start[column]; at < stage.column_start[column + 1]; ++at)
        if (is_active_row_[stage.row_index[at]])
            scratch_[position_of_row_[stage.row_index[at]]] += stage.column_value[at];
}

double DenseDualSimplex::bound_of(const Row& row) const {
    if (row.is_cut) return bounds_.cut_rhs->at(row.index);
    return row.at_upper ? bounds_.row_upper[row.index] : bounds_.row_lower[row.index];
}

double DenseDualSimplex::range_of(const Row& row) const {
    return row.is_cut ? kInfinity : bounds_.row_upper[row.index] - bounds_.row_lower[row.index];
}

bool DenseDualSimplex::is_fixed(const Row& row) const { return !row.is_cut && range_of(row) == 0.0; }

double DenseDualSimplex::value_of(const Row& row) const {
    double value = 0.0;
    for_each_entry(row, [&](Int column, double coefficient) { value += coefficient * x_[column]; });
    return value;
}

// The largest term of a row: its value cannot be more accurate than the last digit of that one.
double DenseDualSimplex::size_of(const Row& row) const {
    double size = 0.0;
    for_each_entry(row,
                   [&](Int column, double coefficient) { size = std::max(size, std::abs(coefficient * x_[column])); });
    return size;
}

// Compute the inverse between active rows and basic columns: Gauss-Jordan elimination with partial pivoting. False when
// the matrix is singular to working accuracy.
bool DenseDualSimplex::refactor() {
    ++counts_.refactorisations;
    const size_t k = basic_columns_.size();
    std::vector<double> matrix(k * k, 0.0);
    std::vector<Int> position(static_cast<size_t>(stage_->columns), -1);
    for (size_t column = 0; column < k; ++column) position[basic_columns_[column]] = static_cast<Int>(column);
    for (size_t row = 0; row < k; ++row)
        for_each_entry(active_rows_[row], [&](Int column, double value) {
            if (position[column] >= 0) matrix[row * k + position[column]] += value;
        });
    std::vector<double> right(k * k, 0.0);
    for (size_t row = 0; row < k; ++row) right[row * k + row] = 1.0;
    for (size_t column = 0; column < k; ++column) {
        size_t best = column;
        for (size_t row = column + 1; row < k; ++row)
            if (std::abs(matrix[row * k + column]) > std::abs(matrix[best * k + column])) best = row;
        if (std::abs(matrix[best * k + column]) < kSmallestDenseEntry) return false;
        if (best != column) {
            std::swap_ranges(&matrix[best * k], &matrix[best * k] + k, &matrix[column * k]);
            std::swap_ranges(&right[best * k], &right[best * k] + k, &right[column * k]);
        }
        const double scale = 1.0 / matrix[column * k + column];
        for (size_t at = column; at < k; ++at) matrix[column * k + at] *= scale;
        for (size_t at = 0; at < k; ++at) right[column * k + at] *= scale;
        for (size_t row = 0; row < k; ++row) {
            const double factor = matrix[row * k + column];
            if (row == column || factor == 0.0) continue;
            add_scaled(&matrix[row * k + column], -factor, &matrix[column * k + column], k - column);
            add_scaled(&right[row * k], -factor, &right[column * k], k);
        }
    }
    for (size_t column = 0; column < k; ++column)
        std::copy(&right[column * k], &right[column * k] + k, &inverse_[column * stride_]);
    updates_ = 0;
    return true;
}

// Bounds may have changed since the last solve: nonbasic columns go to a finite one, on the side of their reduced
// cost's sign.
void DenseDualSimplex::reset_nonbasic() {
    for (size_t column = 0; column < status_.size(); ++column) {
        if (status_[column] == basic) continue;
        const double lower = bounds_.column_lower[column], upper = bounds_.column_upper[column];
        if (std::isinf(lower) && std::isinf(upper)) status_[column] = at_zero;
        else if (status_[column] == at_zero) status_[column] = std::isinf(lower) ? at_upper : at_lower;
        else if (status_[column] == at_lower && std::isinf(lower)) status_[column] = at_upper;
        else if (status_[column] == at_upper && std::isinf(upper)) status_[column] = at_lower;
        if (status_[column] == at_lower && reduced_[column] < 0.0 && !std::isinf(upper)) status_[column] = at_upper;
        else if (status_[column] == at_upper && reduced_[column] > 0.0 && !std::isinf(lower))
            status_[column] = at_lower;
    }
}

void DenseDualSimplex::move_to_bound(Int column) {
    const int8_t status = status_[column];
    x_[column] = status == at_lower   ? bounds_.column_lower[column]
                 : status == at_upper ? bounds_.column_upper[column]
                                      : 0.0;
}

// Values of basic columns, from the active rows and the nonbasic columns.
void DenseDualSimplex::compute_primal() {
    const size_t k = basic_columns_.size();
    scratch_.resize(k);
    ftran_.resize(k);
    for (const Int column : basic_columns_) x_[column] = 0.0;
    for (size_t row = 0; row < k; ++row) scratch_[row] = bound_of(active_rows_[row]) - value_of(active_rows_[row]);
    multiply(inverse_.data(), stride_, scratch_.data(), ftran_.data(), k, k);
    for (size_t column = 0; column < k; ++column) x_[basic_columns_[column]] = ftran_[column];
}

// Duals of active rows from the costs of basic columns, then reduced costs of all columns. Basic ones are set to zero
// exactly.
void DenseDualSimplex::compute_duals() {
    const size_t k = basic_columns_.size();
    duals_.assign(k, 0.0);
    for (size_t column = 0; column < k; ++column) {
        const double cost = stage_->cost[basic_columns_[column]];
        if (cost == 0.0) continue;
        add_scaled(duals_.data(), cost, &inverse_[column * stride_], k);
    }
    std::copy(stage_->cost.begin(), stage_->cost.end(), reduced_.begin());
    for (size_t row = 0; row < k; ++row)
        if (const double dual = duals_[row]; dual != 0.0)
            for_each_entry(active_rows_[row], [&](Int column, double value) { reduced_[column] -= dual * value; });
    for (const Int column : basic_columns_) reduced_[column] = 0.0;
}

// Dual steepest edge: the basic column or inactive row with the largest squared infeasibility over its exact edge
// weight. Cuts are looked at when no other row is violated.
bool DenseDualSimplex::find_leaving(Leaving& leaving) {
    double best = 0.0;
    for (size_t position = 0; position < basic_columns_.size(); ++position) {
        const Int column = basic_columns_[position];
        const double infeasibility =
            infeasibility_of(x_[column], bounds_.column_lower[column], bounds_.column_upper[column]);
        if (infeasibility == 0.0) continue;
        const double merit = infeasibility * infeasibility / column_edge_weight(position);
        if (merit > best)
            best = merit, leaving.is_row = false, leaving.position = position, leaving.infeasibility = infeasibility;
    }
    for (Int row = 0; row < stage_->rows; ++row) {
        if (is_active_row_[row]) continue;
        const Row inactive{row, false, false};
        const double infeasibility =
            infeasibility_of(value_of(inactive), bounds_.row_lower[row], bounds_.row_upper[row]);
        if (infeasibility == 0.0) continue;
        const double merit = infeasibility * infeasibility / row_edge_weight(inactive);
        if (merit > best)
            best = merit, leaving.is_row = true, leaving.row = {row, false, infeasibility < 0.0},
            leaving.infeasibility = infeasibility;
    }
    return best > 0.0 || find_violated_cut(leaving);
}

double DenseDualSimplex::column_edge_weight(size_t position) const {
    const double* row = &inverse_[position * stride_];
    return dot(row, row, active_rows_.size());
}

double DenseDualSimplex::row_edge_weight(const Row& row) {
    btran_row(row);
    return 1.0 + dot(pivot_row_slacks_.data(), pivot_row_slacks_.data(), pivot_row_slacks_.size());
}

// BTRAN for an inactive row: its entries at basic columns times the inverse go to `pivot_row_slacks_`, its own entries
// to `pivot_row_`.
void DenseDualSimplex::btran_row(const Row& row) {
    const size_t k = basic_columns_.size();
    pivot_row_slacks_.assign(k, 0.0);
    std::fill(pivot_row_.begin(), pivot_row_.end(), 0.0);
    for_each_entry(row, [&](Int column, double value) { pivot_row_[column] += value; });
    for (size_t column = 0; column < k; ++column) {
        const double coefficient = pivot_row_[basic_columns_[column]];
        if (coefficient == 0.0) continue;
        add_scaled(pivot_row_slacks_.data(), coefficient, &inverse_[column * stride_], k);
    }
}

// The cut that is violated most; among equals the first. All selected cuts are evaluated at once.
bool DenseDualSimplex::find_violated_cut(Leaving& leaving) {
    const StageModel& stage = *stage_;
    if (cuts_->count() == 0) return false;
    for (Int state = 0; state < stage.num_decided; ++state)
        outgoing_state_[state] = x_[stage.state_column[state]] * stage.state_scale[state];
    const double theta = x_[stage.future_cost];
    const auto found = bounds_.cut_rhs->highest_at(stage.num_decided, outgoing_state_.data(),
                                                   theta + allowance(violation_, theta), is_active_cut_.data());
    if (found.cut < 0) return false;
    leaving.is_row = true;
    leaving.row = copy_cut(found.cut);
    leaving.infeasibility = found.value - theta;
    return true;
}

// Whether the active rows hold for the values that the inverse gave.
bool DenseDualSimplex::is_consistent() const {
    for (const Row& row : active_rows_) {
        const double bound = bound_of(row), error = std::abs(value_of(row) - bound);
        if (!(error <= allowance(feasibility_, bound)) && !(error <= allowance(feasibility_, size_of(row))))
            return false;
    }
    return true;
}

// Gives up after a number of pivots that only a cycle reaches, or when a fresh inverse does not help: the caller then
// starts from slacks, or asks HiGHS.
SimplexStatus DenseDualSimplex::optimise(const Bounds& bounds) {
    bounds_ = bounds;
    const int64_t limit = pivot_limit();
    compute_duals();
    reset_nonbasic();
    for (Int column = 0; column < stage_->columns; ++column) move_to_bound(column);
    for (bool was_refactored = false; counts_.pivots < limit;) {
        pass_stop();
        compute_primal();
        Leaving leaving;
        if (find_leaving(leaving)) {
            if (!pivot(leaving)) return SimplexStatus::gave_up;
            continue;
        }
        compute_duals();
        if (is_consistent()) {
            counts_.active_rows += static_cast<int64_t>(active_rows_.size());
            return SimplexStatus::optimal;
        }
        if (was_refactored || !refactor()) return SimplexStatus::gave_up;
        was_refactored = true;
    }
    return SimplexStatus::gave_up;
}

void DenseDualSimplex::solution(std::vector<double>& columns, std::vector<double>& column_duals,
                                std::vector<double>& row_duals, std::vector<Int>& active_cuts) const {
    columns = x_;
    column_duals = reduced_;
    row_duals.assign(static_cast<size_t>(stage_->rows), 0.0);
    active_cuts.clear();
    for (size_t position = 0; position < active_rows_.size(); ++position) {
        if (!active_rows_[position].is_cut) row_duals[active_rows_[position].index] = duals_[position];
        else active_cuts.push_back(active_rows_[position].index), row_duals.push_back(duals_[position]);
    }
}

// At most states + 1 active cuts fit in a stored basis; in exact arithmetic there are never more.
void DenseDualSimplex::basis(int8_t* status, Int* cuts) const {
    std::copy(status_.begin(), status_.end(), status);
    std::fill(status + stage_->columns, status + stage_->columns + stage_->rows, static_cast<int8_t>(basic));
    std::fill(cuts, cuts + stage_->num_decided + 1, -1);
    Int count = 0;
    for (const Row& row : active_rows_) {
        if (!row.is_cut) status[stage_->columns + row.index] = row.at_upper ? at_upper : at_lower;
        else if (count <= stage_->num_decided) cuts[count++] = row.index;
    }
}

}  // namespace cobre::lp
