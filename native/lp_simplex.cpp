#include "lp_simplex.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "lp_kernels.hpp"

namespace cobre::lp {

namespace {

double allowance(double tolerance, double bound) { return tolerance * std::max(1.0, std::abs(bound)); }

}  // namespace

void DualSimplex::load(const StageModel& stage, const CutView& cuts, double feasibility, double violation) {
    tight_.clear();  // they belong to another stage
    stage_ = &stage;
    cuts_ = &cuts;
    feasibility_ = feasibility;
    violation_ = violation;
    stride_ = static_cast<size_t>(stage.rows + stage.states + 2);
    if (inverse_.size() < stride_ * stride_) inverse_.resize(stride_ * stride_);
    status_.assign(static_cast<size_t>(stage.columns), at_lower);
    is_tight_.assign(static_cast<size_t>(stage.rows), 0);
    is_tight_cut_.assign(static_cast<size_t>(cuts.count()), 0);
    x_.assign(status_.size(), 0.0);
    reduced_.assign(status_.size(), 0.0);
    slopes_.assign(status_.size(), 0.0);
    cut_values_.resize(is_tight_cut_.size());
    outgoing_.resize(static_cast<size_t>(stage.states));
    place_of_row_.resize(is_tight_.size());
    start_loose();
}

void DualSimplex::start_loose() {
    std::fill(status_.begin(), status_.end(), static_cast<int8_t>(at_lower));
    std::fill(is_tight_.begin(), is_tight_.end(), 0);
    for (const Row& row : tight_)
        if (row.is_cut) is_tight_cut_[row.index] = 0;
    basic_.clear();
    tight_.clear();
    prices_.clear();
    copies_.clear();
    free_copies_.clear();
    updates_ = 0;
}

// A cut with its coefficients side by side: in the pool they lie far from each other.
DualSimplex::Row DualSimplex::copied(Int cut) {
    const auto n = static_cast<size_t>(stage_->states);
    if (free_copies_.empty()) {
        free_copies_.push_back(static_cast<Int>(n ? copies_.size() / n : 0));
        copies_.resize(copies_.size() + n);
    }
    const Int copy = free_copies_.back();
    free_copies_.pop_back();
    double* row = copies_.data() + static_cast<size_t>(copy) * n;
    for (size_t state = 0; state < n; ++state)
        row[state] = -cuts_->coefficient(cut, static_cast<Int>(state)) * stage_->state_scale[state];
    return {cut, true, false, copy};
}

bool DualSimplex::start(const int8_t* status, const Int* tight_cuts, Int most_cuts) {
    start_loose();
    const StageModel& stage = *stage_;
    for (Int column = 0; column < stage.columns; ++column) {
        status_[column] = status[column];
        if (status[column] == basic) basic_.push_back(column);
    }
    for (Int row = 0; row < stage.rows; ++row) {
        const int8_t side = status[stage.columns + row];
        if (side == basic) continue;
        is_tight_[row] = 1;
        tight_.push_back({row, false, side == at_upper});
    }
    for (Int entry = 0; entry < most_cuts && tight_cuts[entry] >= 0; ++entry) {
        if (tight_cuts[entry] >= cuts_->count() || !cuts_->is_in_play(tight_cuts[entry])) continue;
        is_tight_cut_[tight_cuts[entry]] = 1;
        tight_.push_back(copied(tight_cuts[entry]));
    }
    if (basic_.size() == tight_.size() && basic_.size() < stride_ && factor()) return true;
    start_loose();
    return false;
}

double DualSimplex::entry(const Row& row, Int column) const {
    double found = 0.0;
    for_entries(row, [&](Int at, double value) {
        if (at == column) found += value;
    });
    return found;
}

// The entries of a column in the tight rows, in `scratch_`.
void DualSimplex::entries_of(Int column) {
    const StageModel& stage = *stage_;
    const Int state = stage.state_of_column[column];
    scratch_.resize(tight_.size());
    for (size_t place = 0; place < tight_.size(); ++place) {
        const Row& row = tight_[place];
        scratch_[place] = 0.0;
        if (!row.is_cut) place_of_row_[row.index] = static_cast<Int>(place);
        else if (column == stage.future_cost) scratch_[place] = 1.0;
        else if (state >= 0) scratch_[place] = copies_[static_cast<size_t>(row.copy) * stage.states + state];
    }
    for (Int at = stage.column_start[column]; at < stage.column_start[column + 1]; ++at)
        if (is_tight_[stage.row_index[at]]) scratch_[place_of_row_[stage.row_index[at]]] += stage.column_value[at];
}

double DualSimplex::bound_of(const Row& row) const {
    if (row.is_cut) return bounds_.cut_right[row.index];
    return row.at_upper ? bounds_.row_upper[row.index] : bounds_.row_lower[row.index];
}

double DualSimplex::range_of(const Row& row) const {
    return row.is_cut ? std::numeric_limits<double>::infinity()
                      : bounds_.row_upper[row.index] - bounds_.row_lower[row.index];
}

bool DualSimplex::is_fixed(const Row& row) const { return !row.is_cut && range_of(row) == 0.0; }

double DualSimplex::value_of(const Row& row) const {
    double value = 0.0;
    for_entries(row, [&](Int column, double coefficient) { value += coefficient * x_[column]; });
    return value;
}

// The largest term of a row: its value cannot be known better than that one's digits.
double DualSimplex::size_of(const Row& row) const {
    double size = 0.0;
    for_entries(row, [&](Int column, double coefficient) { size = std::max(size, std::abs(coefficient * x_[column])); });
    return size;
}

// The inverse of the matrix between tight rows and basic columns, by elimination with row exchanges.
bool DualSimplex::factor() {
    ++count_.refactorisations;
    const size_t k = basic_.size();
    std::vector<double> matrix(k * k, 0.0);
    std::vector<Int> place(static_cast<size_t>(stage_->columns), -1);
    for (size_t column = 0; column < k; ++column) place[basic_[column]] = static_cast<Int>(column);
    for (size_t row = 0; row < k; ++row)
        for_entries(tight_[row], [&](Int column, double value) {
            if (place[column] >= 0) matrix[row * k + place[column]] += value;
        });
    std::vector<double> right(k * k, 0.0);
    for (size_t row = 0; row < k; ++row) right[row * k + row] = 1.0;
    for (size_t column = 0; column < k; ++column) {
        size_t best = column;
        for (size_t row = column + 1; row < k; ++row)
            if (std::abs(matrix[row * k + column]) > std::abs(matrix[best * k + column])) best = row;
        if (std::abs(matrix[best * k + column]) < 1e-11) return false;
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

// Columns outside the basis sit at a bound that the present bounds have, on the side that their price wants.
void DualSimplex::place_nonbasic() {
    for (size_t column = 0; column < status_.size(); ++column) {
        if (status_[column] == basic) continue;
        const double lower = bounds_.column_lower[column], upper = bounds_.column_upper[column];
        if (std::isinf(lower) && std::isinf(upper)) status_[column] = at_zero;
        else if (status_[column] == at_zero) status_[column] = std::isinf(lower) ? at_upper : at_lower;
        else if (status_[column] == at_lower && std::isinf(lower)) status_[column] = at_upper;
        else if (status_[column] == at_upper && std::isinf(upper)) status_[column] = at_lower;
        if (status_[column] == at_lower && reduced_[column] < 0.0 && !std::isinf(upper)) status_[column] = at_upper;
        else if (status_[column] == at_upper && reduced_[column] > 0.0 && !std::isinf(lower)) status_[column] = at_lower;
    }
}

void DualSimplex::put_at_bound(Int column) {
    const int8_t status = status_[column];
    x_[column] = status == at_lower ? bounds_.column_lower[column] : status == at_upper ? bounds_.column_upper[column] : 0.0;
}

// Basic columns, from the tight rows and the columns at bounds.
void DualSimplex::compute_values() {
    const size_t k = basic_.size();
    scratch_.resize(k);
    weights_.resize(k);
    for (const Int column : basic_) x_[column] = 0.0;
    for (size_t row = 0; row < k; ++row) scratch_[row] = bound_of(tight_[row]) - value_of(tight_[row]);
    multiply(inverse_.data(), stride_, scratch_.data(), weights_.data(), k, k);
    for (size_t column = 0; column < k; ++column) x_[basic_[column]] = weights_[column];
}

void DualSimplex::compute_prices() {
    const size_t k = basic_.size();
    prices_.assign(k, 0.0);
    for (size_t column = 0; column < k; ++column) {
        const double cost = stage_->cost[basic_[column]];
        if (cost == 0.0) continue;
        add_scaled(prices_.data(), cost, &inverse_[column * stride_], k);
    }
    std::copy(stage_->cost.begin(), stage_->cost.end(), reduced_.begin());
    for (size_t row = 0; row < k; ++row)
        if (const double price = prices_[row]; price != 0.0)
            for_entries(tight_[row], [&](Int column, double value) { reduced_[column] -= price * value; });
    for (const Int column : basic_) reduced_[column] = 0.0;
}

// The basic column or loose row that is farthest outside its bounds, measured in the space of all rows: the steepest edge.
bool DualSimplex::find_leaving(Leaving& leaving) {
    double best = 0.0;
    for (size_t place = 0; place < basic_.size(); ++place) {
        const Int column = basic_[place];
        const double missing = outside(x_[column], bounds_.column_lower[column], bounds_.column_upper[column]);
        if (missing == 0.0) continue;
        const double merit = missing * missing / column_weight(place);
        if (merit > best) best = merit, leaving.is_row = false, leaving.place = place, leaving.missing = missing;
    }
    for (Int row = 0; row < stage_->rows; ++row) {
        if (is_tight_[row]) continue;
        const Row loose{row, false, false};
        const double missing = outside(value_of(loose), bounds_.row_lower[row], bounds_.row_upper[row]);
        if (missing == 0.0) continue;
        const double merit = missing * missing / row_weight(loose);
        if (merit > best) best = merit, leaving.is_row = true, leaving.row = {row, false, missing < 0.0}, leaving.missing = missing;
    }
    return best > 0.0 || find_violated_cut(leaving);
}

// How far a value is from its bounds, with the sign of the way back; 0 when it is near enough.
double DualSimplex::outside(double value, double lower, double upper) const {
    if (value >= lower && value <= upper) return 0.0;
    if (lower - value > allowance(feasibility_, lower)) return lower - value;
    if (value - upper > allowance(feasibility_, upper)) return upper - value;
    return 0.0;
}

double DualSimplex::column_weight(size_t place) const {
    const double* row = &inverse_[place * stride_];
    return dot(row, row, tight_.size());
}

double DualSimplex::row_weight(const Row& row) {
    express(row);
    return 1.0 + dot(row_slopes_.data(), row_slopes_.data(), row_slopes_.size());
}

// A loose row in terms of the tight ones, in `row_slopes_`; its own entries go to `slopes_`.
void DualSimplex::express(const Row& row) {
    const size_t k = basic_.size();
    row_slopes_.assign(k, 0.0);
    std::fill(slopes_.begin(), slopes_.end(), 0.0);
    for_entries(row, [&](Int column, double value) { slopes_[column] += value; });
    for (size_t column = 0; column < k; ++column) {
        const double coefficient = slopes_[basic_[column]];
        if (coefficient == 0.0) continue;
        add_scaled(row_slopes_.data(), coefficient, &inverse_[column * stride_], k);
    }
}

bool DualSimplex::find_violated_cut(Leaving& leaving) {
    const StageModel& stage = *stage_;
    if (cuts_->count() == 0) return false;
    for (Int state = 0; state < stage.states; ++state)
        outgoing_[state] = x_[stage.state_column[state]] * stage.state_scale[state];
    std::copy(bounds_.cut_right, bounds_.cut_right + cuts_->count(), cut_values_.begin());
    cuts_->add_products(0, stage.states, outgoing_.data(), cut_values_.data());
    const double theta = x_[stage.future_cost];
    double most = theta + violation_ * std::max(1.0, std::abs(theta));
    Int found = -1;
    for (Int cut = 0; cut < cuts_->count(); ++cut)
        if (cut_values_[cut] > most && !is_tight_cut_[cut] && cuts_->is_in_play(cut)) most = cut_values_[cut], found = cut;
    if (found < 0) return false;
    leaving.is_row = true;
    leaving.row = copied(found);
    leaving.missing = cut_values_[found] - theta;
    return true;
}

// The tight rows must be met by the solution that the inverse gives.
bool DualSimplex::is_consistent() const {
    for (const Row& row : tight_) {
        const double bound = bound_of(row), error = std::abs(value_of(row) - bound);
        if (!(error <= allowance(feasibility_, bound)) && !(error <= allowance(feasibility_, size_of(row)))) return false;
    }
    return true;
}

Outcome DualSimplex::optimise(const Bounds& bounds) {
    bounds_ = bounds;
    const int64_t limit = count_.pivots + 200 + 10 * (stage_->rows + stage_->columns);
    compute_prices();
    place_nonbasic();
    for (Int column = 0; column < stage_->columns; ++column) put_at_bound(column);
    for (bool was_refreshed = false; count_.pivots < limit;) {
        compute_values();
        Leaving leaving;
        if (find_leaving(leaving)) {
            if (!pivot(leaving)) return Outcome::gave_up;
            continue;
        }
        compute_prices();
        if (is_consistent()) {
            count_.active_rows += static_cast<int64_t>(tight_.size());
            return Outcome::optimal;
        }
        if (was_refreshed || !factor()) return Outcome::gave_up;
        was_refreshed = true;
    }
    return Outcome::gave_up;
}

void DualSimplex::solution(std::vector<double>& columns, std::vector<double>& column_duals, std::vector<double>& row_duals,
                           std::vector<Int>& tight_cuts) const {
    columns = x_;
    column_duals = reduced_;
    row_duals.assign(static_cast<size_t>(stage_->rows), 0.0);
    tight_cuts.clear();
    for (size_t place = 0; place < tight_.size(); ++place) {
        if (!tight_[place].is_cut) row_duals[tight_[place].index] = prices_[place];
        else tight_cuts.push_back(tight_[place].index), row_duals.push_back(prices_[place]);
    }
}

void DualSimplex::basis(int8_t* status, Int* cuts) const {
    std::copy(status_.begin(), status_.end(), status);
    std::fill(status + stage_->columns, status + stage_->columns + stage_->rows, static_cast<int8_t>(basic));
    std::fill(cuts, cuts + stage_->states + 1, -1);
    Int count = 0;
    for (const Row& row : tight_) {
        if (!row.is_cut) status[stage_->columns + row.index] = row.at_upper ? at_upper : at_lower;
        else if (count <= stage_->states) cuts[count++] = row.index;
    }
}

}  // namespace cobre::lp
