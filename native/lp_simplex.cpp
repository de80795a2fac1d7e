#include "lp_simplex.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "lp_kernels.hpp"

namespace cobre::lp {

namespace {

constexpr double kSmallestSlope = 1e-11;
constexpr double kPriceSlack = 1e-10;  // by how much a price may get the wrong sign for the sake of a steeper pivot
constexpr Int kMostUpdates = 40;  // of the inverse before it is computed anew

double allowance(double tolerance, double bound) { return tolerance * std::max(1.0, std::abs(bound)); }

}  // namespace

void DualSimplex::load(const StageModel& stage, const CutView& cuts, double feasibility, double violation) {
    tight_.clear();  // they belong to another stage
    stage_ = &stage;
    cuts_ = &cuts;
    feasibility_ = feasibility;
    violation_ = violation;
    stride_ = static_cast<size_t>(stage.rows + stage.hydros + 2);
    if (inverse_.size() < stride_ * stride_) inverse_.resize(stride_ * stride_);
    status_.assign(static_cast<size_t>(stage.columns), at_lower);
    is_tight_.assign(static_cast<size_t>(stage.rows), 0);
    is_tight_cut_.assign(static_cast<size_t>(cuts.count()), 0);
    x_.assign(status_.size(), 0.0);
    reduced_.assign(status_.size(), 0.0);
    slopes_.assign(status_.size(), 0.0);
    cut_values_.resize(is_tight_cut_.size());
    storage_.resize(static_cast<size_t>(stage.hydros));
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
    const auto n = static_cast<size_t>(stage_->hydros);
    if (free_copies_.empty()) {
        free_copies_.push_back(static_cast<Int>(n ? copies_.size() / n : 0));
        copies_.resize(copies_.size() + n);
    }
    const Int copy = free_copies_.back();
    free_copies_.pop_back();
    double* row = copies_.data() + static_cast<size_t>(copy) * n;
    for (size_t hydro = 0; hydro < n; ++hydro)
        row[hydro] = -cuts_->coefficient(cut, static_cast<Int>(hydro)) * stage_->storage_scale[hydro];
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

template <typename Use>
void DualSimplex::for_entries(const Row& row, Use use) const {
    const StageModel& stage = *stage_;
    if (row.is_cut) {
        const double* coefficients = copies_.data() + static_cast<size_t>(row.copy) * stage.hydros;
        for (Int hydro = 0; hydro < stage.hydros; ++hydro) use(stage.storage_column[hydro], coefficients[hydro]);
        use(stage.future_cost, 1.0);
        return;
    }
    for (Int at = stage.row_start[row.index]; at < stage.row_start[row.index + 1]; ++at)
        use(stage.column_index[at], stage.value[at]);
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
    const Int hydro = stage.hydro_of_column[column];
    scratch_.resize(tight_.size());
    for (size_t place = 0; place < tight_.size(); ++place) {
        const Row& row = tight_[place];
        scratch_[place] = 0.0;
        if (!row.is_cut) place_of_row_[row.index] = static_cast<Int>(place);
        else if (column == stage.future_cost) scratch_[place] = 1.0;
        else if (hydro >= 0) scratch_[place] = copies_[static_cast<size_t>(row.copy) * stage.hydros + hydro];
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
    for (Int hydro = 0; hydro < stage.hydros; ++hydro)
        storage_[hydro] = x_[stage.storage_column[hydro]] * stage.storage_scale[hydro];
    std::copy(bounds_.cut_right, bounds_.cut_right + cuts_->count(), cut_values_.begin());
    cuts_->add_products(0, stage.hydros, storage_.data(), cut_values_.data());
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
    return false;
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
    ++pivots;
    return exchange(leaving, entering);
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
    const int64_t limit = pivots + 200 + 10 * (stage_->rows + stage_->columns);
    compute_prices();
    place_nonbasic();
    for (Int column = 0; column < stage_->columns; ++column) put_at_bound(column);
    for (bool was_refreshed = false; pivots < limit;) {
        compute_values();
        Leaving leaving;
        if (find_leaving(leaving)) {
            if (!pivot(leaving)) return Outcome::gave_up;
            continue;
        }
        compute_prices();
        if (is_consistent()) return Outcome::optimal;
        if (was_refreshed || !factor()) return Outcome::gave_up;
        was_refreshed = true;
    }
    return Outcome::gave_up;
}

void DualSimplex::row_duals(std::vector<double>& duals) const {
    duals.assign(static_cast<size_t>(stage_->rows), 0.0);
    for (size_t place = 0; place < tight_.size(); ++place)
        if (!tight_[place].is_cut) duals[tight_[place].index] = prices_[place];
}

void DualSimplex::basis(int8_t* status, Int* cuts) const {
    std::copy(status_.begin(), status_.end(), status);
    std::fill(status + stage_->columns, status + stage_->columns + stage_->rows, static_cast<int8_t>(basic));
    std::fill(cuts, cuts + stage_->hydros + 1, -1);
    Int count = 0;
    for (const Row& row : tight_) {
        if (!row.is_cut) status[stage_->columns + row.index] = row.at_upper ? at_upper : at_lower;
        else if (count <= stage_->hydros) cuts[count++] = row.index;
    }
}

}  // namespace cobre::lp
