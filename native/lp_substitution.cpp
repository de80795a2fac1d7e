#include "lp_substitution.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace cobre::lp {

bool Substitution::choose(const StageModel& stage, const int8_t* status) {
    pairs_.clear();
    if (stage.generation.empty()) return false;
    pair_of_column_.assign(static_cast<size_t>(stage.columns), -1);
    pair_of_row_.assign(static_cast<size_t>(stage.rows), -1);
    for (const Int row : stage.deferred_rows) {
        const Int column = stage.generation[stage.family[row]];
        if (column < 0 || pair_of_column_[column] >= 0) continue;
        if (status[column] != basic || status[stage.columns + row] == basic) continue;
        Int at = stage.row_start[row];
        while (stage.column_index[at] != column) ++at;
        pair_of_column_[column] = pair_of_row_[row] = static_cast<Int>(pairs_.size());
        pairs_.push_back({column, row, stage.value[at]});
    }
    if (static_cast<Int>(pairs_.size()) < kFewPairs) return clear(), false;
    substitute(stage);
    return true;
}

void Substitution::add(Int column, double value) {
    if (largest_[column] == 0.0) touched_.push_back(column);
    sum_[column] += value;
    largest_[column] = std::max(largest_[column], std::abs(value));
}

// A multiple of g = (w - beta z) / alpha.
void Substitution::add_generation(const StageModel& stage, const Pair& pair, double multiple) {
    const double share = multiple / pair.coefficient;
    for (Int at = stage.row_start[pair.row]; at < stage.row_start[pair.row + 1]; ++at) {
        const Int column = stage.column_index[at];
        add(column, column == pair.column ? share : -share * stage.value[at]);
    }
}

// Sums that cancel are zero: as entries they could become pivots made of rounding.
void Substitution::close_row() {
    for (const Int column : touched_) {
        const double sum = std::exchange(sum_[column], 0.0), largest = std::exchange(largest_[column], 0.0);
        if (std::abs(sum) <= kCancelled * largest) continue;
        column_index_.push_back(column);
        value_.push_back(sum);
    }
    touched_.clear();
    row_start_.push_back(static_cast<Int>(column_index_.size()));
}

void Substitution::substitute(const StageModel& stage) {
    stage_ = stage;
    row_start_.assign(1, 0);
    column_index_.clear();
    value_.clear();
    sum_.assign(static_cast<size_t>(stage.columns), 0.0);
    largest_.assign(static_cast<size_t>(stage.columns), 0.0);
    for (Int row = 0; row < stage.rows; ++row) {
        if (pair_of_row_[row] >= 0) add_generation(stage, pairs_[pair_of_row_[row]], 1.0);
        else
            for (Int at = stage.row_start[row]; at < stage.row_start[row + 1]; ++at) {
                const Int column = stage.column_index[at];
                if (pair_of_column_[column] < 0) add(column, stage.value[at]);
                else add_generation(stage, pairs_[pair_of_column_[column]], stage.value[at]);
            }
        close_row();
    }
    cost_.assign(stage.cost.begin(), stage.cost.end());
    for (const Pair& pair : pairs_) {
        const double share = std::exchange(cost_[pair.column], 0.0) / pair.coefficient;
        for (Int at = stage.row_start[pair.row]; at < stage.row_start[pair.row + 1]; ++at) {
            const Int column = stage.column_index[at];
            cost_[column] += column == pair.column ? share : -share * stage.value[at];
        }
    }
    stage_.row_start = row_start_;
    stage_.column_index = column_index_;
    stage_.value = value_;
    stage_.cost = cost_;
    stage_.index_columns();
}

Bounds Substitution::exchanged(const Bounds& bounds) {
    if (pairs_.empty()) return bounds;
    column_lower_.assign(bounds.column_lower, bounds.column_lower + stage_.columns);
    column_upper_.assign(bounds.column_upper, bounds.column_upper + stage_.columns);
    row_lower_.assign(bounds.row_lower, bounds.row_lower + stage_.rows);
    row_upper_.assign(bounds.row_upper, bounds.row_upper + stage_.rows);
    for (const Pair& pair : pairs_) {
        std::swap(column_lower_[pair.column], row_lower_[pair.row]);
        std::swap(column_upper_[pair.column], row_upper_[pair.row]);
    }
    return {column_lower_.data(), column_upper_.data(), row_lower_.data(), row_upper_.data(), bounds.cut_rhs};
}

void Substitution::exchange(int8_t* status) const {
    for (const Pair& pair : pairs_) std::swap(status[pair.column], status[stage_.columns + pair.row]);
}

// No plane of a family has the generation of another, so that no value depends on one that was replaced before.
void Substitution::restore(std::vector<double>& columns, std::vector<double>& column_duals,
                           std::vector<double>& row_duals) const {
    for (const Pair& pair : pairs_) {
        double generation = 0.0;
        for (Int at = row_start_[pair.row]; at < row_start_[pair.row + 1]; ++at)
            generation += value_[at] * columns[column_index_[at]];
        columns[pair.column] = generation;
        std::swap(column_duals[pair.column], row_duals[pair.row]);
    }
}

}  // namespace cobre::lp
