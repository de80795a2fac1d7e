// One pivot of the dual simplex method: who enters, and what becomes of prices and of the inverse.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "lp_kernels.hpp"
#include "lp_simplex.hpp"

namespace cobre::lp {

namespace {

constexpr double kSmallestSlope = 1e-11;
constexpr double kPriceSlack = 1e-10;  // by how much a price may get the wrong sign for the sake of a steeper pivot
constexpr Int kMostUpdates = 40;  // of the inverse before it is computed anew

}  // namespace

// How the leaving quantity changes with every nonbasic column and with the bound of every tight row.
void DualSimplex::slopes_of(const Leaving& leaving) {
    const size_t k = basic_.size();
    if (leaving.is_row) {
        express(leaving.row);
    } else {
        std::fill(slopes_.begin(), slopes_.end(), 0.0);
        row_slopes_.resize(k);
        for (size_t row = 0; row < k; ++row) row_slopes_[row] = inverse(leaving.place, row);
    }
    for (size_t row = 0; row < k; ++row)
        if (const double weight = row_slopes_[row]; weight != 0.0)
            for_entries(tight_[row], [&](Int column, double value) { slopes_[column] -= weight * value; });
}

// The ratio test with flips: columns between two bounds may jump to the other one as long as the leaving quantity stays
// on its side. Among those that are nearly first the steepest one wins (Harris), then the first.
bool DualSimplex::choose_entering(double missing, Int& entering) {
    const double sign = missing > 0.0 ? 1.0 : -1.0;
    candidates_.clear();
    const auto consider = [&](Int index, double slope, double price, bool may_rise, bool may_fall) {
        const double gain = sign * slope;
        if (std::abs(gain) < kSmallestSlope) return;
        if (gain > 0.0 ? !may_rise : !may_fall) return;
        const double cost = gain > 0.0 ? price : -price, steepness = std::abs(gain);
        const double ratio = std::max(0.0, cost) / steepness;
        candidates_.push_back({index, steepness, ratio, ratio + kPriceSlack / steepness});
    };
    // Most slopes are zero, at places that no branch predictor guesses: pick out the others without a branch.
    moving_.resize(status_.size());
    size_t moving = 0;
    for (size_t column = 0; column < status_.size(); ++column) {
        moving_[moving] = static_cast<Int>(column);
        moving += (slopes_[column] != 0.0) & (status_[column] != basic);
    }
    for (size_t at = 0; at < moving; ++at) {
        const Int column = moving_[at];
        if (bounds_.column_lower[column] == bounds_.column_upper[column]) continue;
        const int8_t status = status_[column];
        consider(column, slopes_[column], reduced_[column], status != at_upper, status != at_lower);
    }
    for (size_t row = 0; row < tight_.size(); ++row) {
        if (is_fixed(tight_[row])) continue;
        consider(stage_->columns + static_cast<Int>(row), row_slopes_[row], prices_[row], !tight_[row].at_upper, tight_[row].at_upper);
    }
    double left = std::abs(missing);
    flips_.clear();
    while (!candidates_.empty()) {
        double least = std::numeric_limits<double>::infinity();
        for (const Candidate& candidate : candidates_) least = std::min(least, candidate.limit);
        size_t best = candidates_.size();
        for (size_t at = 0; at < candidates_.size(); ++at)
            if (candidates_[at].ratio <= least &&
                (best == candidates_.size() || candidates_[at].slope > candidates_[best].slope))
                best = at;
        const Candidate chosen = candidates_[best];
        const double range = chosen.index < stage_->columns
                                 ? bounds_.column_upper[chosen.index] - bounds_.column_lower[chosen.index]
                                 : range_of(tight_[static_cast<size_t>(chosen.index - stage_->columns)]);
        left -= chosen.slope * range;
        if (!(left > 0.0)) {
            entering = chosen.index;
            return true;
        }
        flips_.push_back(chosen.index);
        candidates_.erase(candidates_.begin() + static_cast<ptrdiff_t>(best));
    }
    // All jumps together may reach the bound exactly, but for rounding: then the last one enters instead.
    if (flips_.empty() || left > feasibility_ * std::max(1.0, std::abs(missing))) return false;
    entering = flips_.back();
    flips_.pop_back();
    return true;
}

void DualSimplex::flip(Int candidate) {
    if (candidate >= stage_->columns) {
        Row& row = tight_[static_cast<size_t>(candidate - stage_->columns)];
        row.at_upper = !row.at_upper;
        return;
    }
    status_[candidate] = status_[candidate] == at_lower ? at_upper : at_lower;
    put_at_bound(candidate);
}

// A basic column becomes nonbasic, another takes its place.
void DualSimplex::replace_column(size_t place, Int entering) {
    const size_t k = basic_.size();
    weights_.resize(k);
    entries_of(entering);
    multiply(inverse_.data(), stride_, scratch_.data(), weights_.data(), k, k);
    const double scale = 1.0 / weights_[place];
    for (size_t row = 0; row < k; ++row) inverse(place, row) *= scale;
    for (size_t column = 0; column < k; ++column) {
        if (column == place || weights_[column] == 0.0) continue;
        add_scaled(&inverse_[column * stride_], -weights_[column], &inverse_[place * stride_], k);
    }
    basic_[place] = entering;
}

// A tight row becomes loose, another becomes tight. `row_slopes_` holds the new row in terms of the old ones.
void DualSimplex::replace_row(size_t place, const Row& row) {
    const size_t k = basic_.size();
    const double scale = 1.0 / row_slopes_[place];
    for (size_t column = 0; column < k; ++column) {
        const double value = inverse(column, place) * scale;
        if (value != 0.0) add_scaled(&inverse_[column * stride_], -value, row_slopes_.data(), k);
        inverse(column, place) = value;
    }
    tight_[place] = row;
}

// A basic column goes and a tight row with it.
void DualSimplex::drop(size_t column_place, size_t row_place) {
    const size_t k = basic_.size();
    const double scale = 1.0 / inverse(column_place, row_place);
    for (size_t column = 0; column < k; ++column) {
        const double factor = inverse(column, row_place) * scale;
        if (column == column_place || factor == 0.0) continue;
        add_scaled(&inverse_[column * stride_], -factor, &inverse_[column_place * stride_], k);
    }
    const size_t last = k - 1;
    for (size_t row = 0; row < k; ++row) inverse(column_place, row) = inverse(last, row);
    for (size_t column = 0; column < k; ++column) inverse(column, row_place) = inverse(column, last);
    basic_[column_place] = basic_[last];
    tight_[row_place] = tight_[last];
    prices_[row_place] = prices_[last];
    basic_.pop_back();
    tight_.pop_back();
    prices_.pop_back();
}

// A row becomes tight and a column basic. `row_slopes_` holds the row in terms of the tight ones.
void DualSimplex::border(const Row& row, Int column) {
    const size_t k = basic_.size();
    entries_of(column);
    weights_.resize(k);
    multiply(inverse_.data(), stride_, scratch_.data(), weights_.data(), k, k);
    double schur = entry(row, column);
    for (size_t at = 0; at < k; ++at) schur -= row_slopes_[at] * scratch_[at];
    const double scale = 1.0 / schur;
    for (size_t at = 0; at < k; ++at) {
        const double factor = weights_[at] * scale;
        if (factor != 0.0) add_scaled(&inverse_[at * stride_], factor, row_slopes_.data(), k);
        inverse(at, k) = -factor;
    }
    for (size_t place = 0; place < k; ++place) inverse(k, place) = -row_slopes_[place] * scale;
    inverse(k, k) = scale;
    basic_.push_back(column);
    tight_.push_back(row);
    prices_.push_back(0.0);
}

// Prices move until the entering one is zero; the leaving quantity takes over what it was worth.
double DualSimplex::move_prices(Int entering) {
    const auto place = static_cast<size_t>(entering - stage_->columns);
    const double step = entering < stage_->columns ? reduced_[entering] / slopes_[entering] : prices_[place] / row_slopes_[place];
    if (step == 0.0) return step;
    add_scaled(reduced_.data(), -step, slopes_.data(), reduced_.size());
    add_scaled(prices_.data(), -step, row_slopes_.data(), prices_.size());
    return step;
}

void DualSimplex::mark(const Row& row, bool is_tight) {
    (row.is_cut ? is_tight_cut_ : is_tight_)[row.index] = is_tight;
    if (row.is_cut && !is_tight) free_copies_.push_back(row.copy);
}

bool DualSimplex::exchange(const Leaving& leaving, Int entering) {
    const bool enters_row = entering >= stage_->columns;
    const auto entering_place = static_cast<size_t>(entering - stage_->columns);
    const Row entering_row = enters_row ? tight_[entering_place] : Row{};
    const double worth = move_prices(entering);
    if (!leaving.is_row) {
        const Int column = basic_[leaving.place];
        if (enters_row) drop(leaving.place, entering_place);
        else replace_column(leaving.place, entering);
        status_[column] = leaving.missing > 0.0 ? at_lower : at_upper;
        reduced_[column] = worth;
        put_at_bound(column);
    } else {
        if (!enters_row && basic_.size() + 1 >= stride_) return false;
        if (enters_row) replace_row(entering_place, leaving.row);
        else border(leaving.row, entering);
        prices_[enters_row ? entering_place : prices_.size() - 1] = worth;
        mark(leaving.row, true);
    }
    if (enters_row) {
        mark(entering_row, false);
    } else {
        status_[entering] = basic;
        reduced_[entering] = 0.0;
    }
    return ++updates_ < kMostUpdates || factor();
}

bool DualSimplex::pivot(const Leaving& leaving) {
    slopes_of(leaving);
    Int entering = -1;
    if (!choose_entering(leaving.missing, entering)) return false;
    for (const Int index : flips_) flip(index);
    ++count_.pivots;
    return exchange(leaving, entering);
}

}  // namespace cobre::lp
