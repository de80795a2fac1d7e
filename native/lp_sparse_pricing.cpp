// The leaving variable: the basic variable that is farthest out of its bounds, measured along its edge (Devex).
// When none is, rows and cuts that do not take part yet are looked at.
#include <algorithm>
#include <cmath>

#include "lp_sparse_simplex.hpp"

namespace cobre::lp {

bool SparseDualSimplex::find_leaving(Leaving& leaving) {
    double best = 0.0;
    size_t kept = 0;
    for (const Int slot : infeasible_) {
        const double missing = missing_[slot];
        if (missing == 0.0) {
            is_candidate_[slot] = 0;
            continue;
        }
        infeasible_[kept++] = slot;
        const double merit = missing * missing / weight_[head_[slot]];
        if (merit > best) best = merit, leaving = {slot, missing};
    }
    infeasible_.resize(kept);
    return best > 0.0;
}

// A row that joins: its slack is basic and has the row's activity.
void SparseDualSimplex::join(const WorkingRow& row) {
    const Int place = row_count();
    if (row.is_cut()) push_cut(row.index, basic);
    else push_row(row, basic);
    bound_row(place);
    bound_dual(place);
    seat(slack(place), place);
    for (SparseVector* vector : {&rho_, &alpha_, &flip_}) vector->resize(rows_.size());
    alpha_.clear();
    double activity = 0.0;
    for_row(place, [&](Int column, double value) {
        activity += value * x_[column];
        if (status_[column] == basic) alpha_.set(slot_of_[column], value);
    });
    x_[slack(place)] = activity;
    factor_.append_row(place, alpha_);
    alpha_.clear();
    is_fresh_ = false;
    note_value(place);
}

// Of every family of deferred rows the one that is violated most.
bool SparseDualSimplex::join_violated_rows() {
    const StageModel& stage = *stage_;
    std::fill(worst_of_family_.begin(), worst_of_family_.end(), std::pair<Int, double>{-1, 0.0});
    for (const Int row : stage.deferred_rows) {
        const Int first = stage.row_start[row], end = stage.row_start[row + 1];
        double activity = 0.0;
        for (Int at = first; at < end; ++at) activity += stage.value[at] * x_[stage.column_index[at]];
        auto& worst = worst_of_family_[stage.family[row]];
        const double lower = bounds_.row_lower[row], upper = bounds_.row_upper[row];
        if (std::max(lower - activity, activity - upper) <= worst.second || place_of_row_[row] >= 0) continue;
        const double missing = std::abs(missing_of(activity, lower, upper));
        if (missing > worst.second) worst = {row, missing};
    }
    bool joined = false;
    for (const auto& [row, missing] : worst_of_family_) {
        if (row < 0) continue;
        join({row});
        joined = true;
    }
    return joined;
}

// What the decided states contribute to every cut. From one solution of a chain to the next few of them change.
void SparseDualSimplex::update_state_parts() {
    const StageModel& stage = *stage_;
    for (Int state = 0; state < stage.states; ++state) {
        const double value = x_[stage.state_column[state]] * stage.state_scale[state];
        state_change_[state] = value - state_[state];
        state_[state] = value;
    }
    cuts_->add_products(0, stage.states, state_change_.data(), state_part_.data());
}

bool SparseDualSimplex::join_violated_cut() {
    if (cuts_->count() == 0) return false;
    update_state_parts();
    const double theta = x_[stage_->future_cost];
    double most = theta + violation_ * std::max(1.0, std::abs(theta));
    Int found = -1;
    for (Int cut = 0; cut < cuts_->count(); ++cut) {
        const double value = bounds_.cut_right[cut] + state_part_[cut];
        if (value > most && !is_present_cut_[cut] && cuts_->is_in_play(cut)) most = value, found = cut;
    }
    if (found < 0) return false;
    join({found, 0});
    return true;
}

}  // namespace cobre::lp
