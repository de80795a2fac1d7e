// One pivot: values, reduced costs, weights and the factorisation follow from three solves.
#include <algorithm>
#include <cmath>

#include "lp_sparse_simplex.hpp"

namespace cobre::lp {

namespace {

constexpr double kPivotAgreement = 1e-7;   // between the pivot by row and by column, relative

}  // namespace

// Variables that jump to their other bound move all basic ones at once.
void SparseDualSimplex::flip_bounds() {
    if (flips_.empty()) return;
    flip_.clear();
    for (const Int variable : flips_) {
        const double before = x_[variable];
        status_[variable] = status_[variable] == at_lower ? at_upper : at_lower;
        put_at_bound(variable);
        bound_dual_again(variable);
        load_column(variable, before - x_[variable], flip_);
    }
    factor_.ftran(flip_);
    for (const Int slot : flip_.index()) {
        x_[head_[slot]] += flip_.value[slot];
        note_value(slot);
    }
}

// No pivot after all: what was going to jump, or to enter, stays.
void SparseDualSimplex::take_back_flips(Int entering) {
    if (entering >= 0) flips_.push_back(entering);
    for (const Int variable : flips_) {
        put_at_bound(variable);
        bound_dual_again(variable);
    }
}

void SparseDualSimplex::update_reduced_costs(Int entering, Int leaving) {
    const double step = reduced_cost_of(entering) / slope_of(entering);
    if (step != 0.0) {
        for (const Int column : pivot_row_.index()) reduced_[column] -= step * pivot_row_.value[column];
        for (const Int row : rho_.index())
            if (status_[slack(row)] != basic) reduced_[slack(row)] += step * rho_.value[row];
    }
    reduced_[entering] = 0.0;
    reduced_[leaving] = -step;
}

// Devex (Forrest and Goldfarb): estimates of steepest-edge weights that need no solve of their own.
void SparseDualSimplex::update_weights(Int slot, Int entering) {
    const double pivot = alpha_.value[slot], weight = weight_[head_[slot]];
    for (const Int at : alpha_.index()) {
        double& other = weight_[head_[at]];
        const double ratio = alpha_.value[at] / pivot;
        other = std::max(other, ratio * ratio * weight);
    }
    weight_[head_[slot]] = 1.0;
    weight_[entering] = std::max(1.0, weight / (pivot * pivot));
}

void SparseDualSimplex::exchange(Int slot, Int entering, double missing) {
    const Int leaving = head_[slot];
    const double bound = missing > 0.0 ? lower_[leaving] : upper_[leaving];
    const double step = (x_[leaving] - bound) / alpha_.value[slot];
    x_[entering] += step;
    seat(entering, slot);
    status_[entering] = basic;
    way_[entering] = 0.0;
    status_[leaving] = missing > 0.0 ? at_lower : at_upper;
    put_at_bound(leaving);
    bound_dual_again(entering);
    bound_dual_again(leaving);
    if (entering < columns_) move_entries(entering, true);
    if (leaving < columns_) move_entries(leaving, false);
    for (const Int at : alpha_.index()) {
        if (at != slot) x_[head_[at]] -= step * alpha_.value[at];
        note_value(at);
    }
    factor_.update(slot);
    is_fresh_ = false;
}

SparseDualSimplex::Step SparseDualSimplex::pivot(const Leaving& leaving) {
    compute_pivot_row(leaving.slot);
    Int entering = -1;
    if (!choose_entering(leaving.missing, entering)) return take_back_flips(entering), Step::none;
    alpha_.clear();
    load_column(entering, 1.0, alpha_);
    factor_.ftran(alpha_, Factorisation::For::update);
    const double by_row = slope_of(entering), by_column = alpha_.value[leaving.slot];
    if (!(std::abs(by_row - by_column) <= kPivotAgreement * std::min(std::abs(by_row), std::abs(by_column))))
        return take_back_flips(entering), Step::inaccurate;
    flip_bounds();
    update_reduced_costs(entering, head_[leaving.slot]);
    update_weights(leaving.slot, entering);
    exchange(leaving.slot, entering, leaving.missing);
    ++count_.pivots;
    return Step::done;
}

// Factorise, and compute everything anew that was updated.
bool SparseDualSimplex::refresh() {
    if (!factor()) return false;
    compute_reduced_costs();
    compute_values();
    return true;
}

Outcome SparseDualSimplex::optimise(const Bounds& bounds) {
    const int64_t limit = count_.pivots + 200 + 10 * (stage_->rows + stage_->columns);
    if (!drop_loose_rows()) return Outcome::gave_up;
    take_bounds(bounds);
    if (!has_reduced_costs_) compute_reduced_costs();
    place_nonbasic();
    compute_values();
    for (int repairs = 0; count_.pivots < limit;) {
        Leaving leaving;
        if (find_leaving(leaving)) {
            const Step step = pivot(leaving);
            if (step == Step::done) {
                if (factor_.is_worn() && !refresh()) return Outcome::gave_up;
                continue;
            }
            if (is_fresh_ || ++repairs > 20 || !refresh()) return Outcome::gave_up;
            continue;
        }
        if (join_violated_rows() || join_violated_cut()) continue;
        compute_reduced_costs();
        place_nonbasic();
        compute_values();
        if (!infeasible_.empty() && repairs++ < 20) continue;
        if (is_consistent()) {
            count_.active_rows += row_count() - std::count(status_.begin() + columns_, status_.end(), static_cast<int8_t>(basic));
            return Outcome::optimal;
        }
        if (++repairs > 20 || is_fresh_ || !refresh()) return Outcome::gave_up;
    }
    return Outcome::gave_up;
}

}  // namespace cobre::lp
