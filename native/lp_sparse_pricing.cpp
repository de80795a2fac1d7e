// Pricing: the leaving variable has the largest squared infeasibility over its Devex weight. When no basic variable is
// infeasible, deferred rows and cuts outside of the working LP are checked.
#include <algorithm>
#include <cmath>

#include "lp_sparse_simplex.hpp"

namespace cobre::lp {

bool SparseDualSimplex::find_leaving(Leaving& leaving) {
    double best = 0.0;
    size_t kept = 0;
    for (const Int slot : infeasible_) {
        const double infeasibility = infeasibility_[slot];
        if (infeasibility == 0.0) {
            is_listed_[slot] = 0;
            continue;
        }
        infeasible_[kept++] = slot;
        const double merit = infeasibility * infeasibility / weight_[head_[slot]];
        if (merit > best) best = merit, leaving = {slot, infeasibility};
    }
    infeasible_.resize(kept);
    return best > 0.0;
}

// Append a row to the working LP: its slack becomes basic, with the row's activity as its value.
void SparseDualSimplex::add_row(const WorkingRow& row) {
    const Int position = row_count();
    if (row.is_cut()) append_cut(row.index, basic);
    else append_row(row, basic);
    set_row_bounds(position);
    compute_dual_bounds(position);
    set_basic(slack(position), position);
    for (SparseVector* vector : {&inverse_row_, &pivot_column_, &flip_column_}) vector->resize(rows_.size());
    pivot_column_.clear();
    double activity = 0.0;
    for_each_in_row(position, [&](Int column, double value) {
        activity += value * x_[column];
        if (status_[column] == basic) pivot_column_.set(slot_of_[column], value);
    });
    x_[slack(position)] = activity;
    factorisation_.append_row(position, pivot_column_);
    pivot_column_.clear();
    is_freshly_factorised_ = false;
    update_infeasibility(position);
}

// Of each family of deferred rows, add the most violated one.
bool SparseDualSimplex::add_violated_rows() {
    const StageModel& stage = *stage_;
    std::fill(worst_of_family_.begin(), worst_of_family_.end(), std::pair<Int, double>{-1, 0.0});
    for (const Int row : stage.deferred_rows) {
        const Int first = stage.row_start[row], end = stage.row_start[row + 1];
        double activity = 0.0;
        for (Int at = first; at < end; ++at) activity += stage.value[at] * x_[stage.column_index[at]];
        auto& worst = worst_of_family_[stage.family[row]];
        const double lower = bounds_.row_lower[row], upper = bounds_.row_upper[row];
        if (std::max(lower - activity, activity - upper) <= worst.second || working_row_of_[row] >= 0) continue;
        const double infeasibility = std::abs(infeasibility_of(activity, lower, upper));
        if (infeasibility > worst.second) worst = {row, infeasibility};
    }
    bool has_added = false;
    for (const auto& [row, infeasibility] : worst_of_family_) {
        if (row < 0) continue;
        add_row({row});
        has_added = true;
    }
    return has_added;
}

// Coefficients times decided states, for every cut. From one solve of a chain to the next few states change.
void SparseDualSimplex::update_cut_values() {
    const StageModel& stage = *stage_;
    for (Int state = 0; state < stage.num_decided; ++state) {
        const double value = x_[stage.state_column[state]] * stage.state_scale[state];
        state_change_[state] = value - state_[state];
        state_[state] = value;
    }
    cuts_->add_products(0, stage.num_decided, state_change_.data(), cut_value_.data());
}

bool SparseDualSimplex::add_violated_cut() {
    if (cuts_->count() == 0) return false;
    update_cut_values();
    const double theta = x_[stage_->future_cost];
    const Int found = cuts_
                          ->highest(bounds_.cut_rhs->all(), cut_value_.data(), theta + allowance(violation_, theta),
                                    is_present_cut_.data())
                          .cut;
    if (found < 0) return false;
    add_row({found, 0});
    return true;
}

}  // namespace cobre::lp
