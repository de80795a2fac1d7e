// Solves with a factorised basis, and its updates: exchanged columns, appended rows.
#include "lp_factorisation.hpp"

#include <cmath>
#include <limits>
#include <utility>

namespace cobre::lp {

void Factorisation::begin_updates() {
    row_at_ = order_;
    first_position_ = position_;
    work_.assign(rows_, 0.0);
    pattern_.resize(rows_);
    eta_from_.clear(), eta_to_.clear(), eta_start_.assign(1, 0), eta_position_.clear(), eta_value_.clear();
    newest_.assign(rows_, -1), older_.clear(), new_column_.clear(), new_value_.clear();
    fresh_entries_ = upper_columns_.index.size() + lower_columns_.index.size();
    update_work_ = 0;
}

// A right-hand side, moved to positions.
void Factorisation::scatter(SparseVector& v, const std::vector<Int>& positions) {
    for (const Int at : v.index()) {
        work_[positions[at]] = v.value[at];
        pattern_.insert(positions[at]);
    }
    v.clear();
}

// What a solve for an update needs later: the entries before U (column) or after it (row).
void Factorisation::collect(std::vector<PositionValue>& parts) const {
    parts.clear();
    pattern_.for_each([&](Int at) {
        if (work_[at] != 0.0) parts.push_back({at, work_[at]});
    });
}

// L, then the etas in the order in which they were made, then U backwards. Positions in ascending order make all sums
// have one order, whatever the pattern.
void Factorisation::ftran(SparseVector& v, Purpose purpose) {
    scatter(v, first_position_);
    double* const work = work_.data();
    PositionSet::Inserter pattern(pattern_);
    const LineView lower(lower_columns_), upper(upper_columns_);
    pattern_.ascend(lower_columns_.has, [=](Int at) {
        const double value = work[at];
        if (value != 0.0) lower.subtract(at, value, work, pattern);
    });
    apply_etas();
    if (purpose == Purpose::update) collect(column_for_update_);
    SparseVector::Writer out(v);
    const double* const pivots = pivot_.data();
    const Int* const slots = order_.data();
    pattern_.drain_descending(upper_columns_.has, [=, &out](Int at, bool has_entries) {
        const double value = work[at] / pivots[at];
        work[at] = 0.0;
        if (std::abs(value) < kTiny) return;
        out.set(slots[at], value);
        if (has_entries) upper.subtract(at, value, work, pattern);
    });
}

void Factorisation::solve_upper_transposed() {
    double* const work = work_.data();
    PositionSet::Inserter pattern(pattern_);
    const LineView upper(upper_rows_);
    const double *const pivots = pivot_.data(), *const new_values = new_value_.data();
    const Int *const newest = newest_.data(), *const older = older_.data(), *const new_columns = new_column_.data();
    const auto rows = static_cast<Int>(rows_);
    pattern_.ascend_with(upper_rows_.has, [=](Int at, bool has_entries) {
        const double value = work[at] / pivots[at];
        work[at] = value;
        if (!has_entries || value == 0.0) return;
        if (at < rows) upper.subtract(at, value, work, pattern);
        for (Int entry = newest[at]; entry >= 0; entry = older[entry]) {
            work[new_columns[entry]] -= new_values[entry] * value;
            pattern.insert(new_columns[entry]);
        }
    });
}

// The transposes in reverse: U forwards, the etas from the newest, then L.
void Factorisation::btran(SparseVector& v, Purpose purpose) {
    scatter(v, position_);
    solve_upper_transposed();
    if (purpose == Purpose::update) collect(row_for_update_);
    apply_etas_transposed();
    // Positions with entries first, then all results at once: most have none, and no predictor guesses which.
    double* const work = work_.data();
    PositionSet::Inserter pattern(pattern_);
    const LineView lower(lower_rows_);
    pattern_.descend(lower_rows_.has, [=](Int at) {
        const double value = work[at];
        if (!(std::abs(value) < kTiny)) lower.subtract(at, value, work, pattern);
    });
    SparseVector::Writer out(v);
    const Int* const rows = row_at_.data();
    pattern_.drain_descending([&](Int at) {
        const double value = std::exchange(work[at], 0.0);
        if (!(std::abs(value) < kTiny)) out.set(rows[at], value);
    });
}

// Each eta subtracts multiples of other rows from one row, which moves to its new position.
void Factorisation::apply_etas() {
    double* const work = work_.data();
    const Int *const starts = eta_start_.data(), *const positions = eta_position_.data();
    const double* const values = eta_value_.data();
    for (size_t eta = 0; eta < eta_to_.size(); ++eta) {
        const Int from = eta_from_[eta], to = eta_to_[eta];
        double value = work[from];
        for (Int at = starts[eta], end = starts[eta + 1]; at < end; ++at) value -= values[at] * work[positions[at]];
        work[from] = 0.0;
        if (std::abs(value) < kTiny) continue;
        work[to] = value;
        pattern_.insert(to);
    }
}

void Factorisation::apply_etas_transposed() {
    double* const work = work_.data();
    PositionSet::Inserter pattern(pattern_);
    const Int *const starts = eta_start_.data(), *const positions = eta_position_.data();
    const double* const values = eta_value_.data();
    for (size_t eta = eta_to_.size(); eta-- > 0;) {
        const Int from = eta_from_[eta], to = eta_to_[eta];
        const double value = work[to];
        if (value == 0.0) continue;
        work[to] = 0.0;
        work[from] = value;
        pattern.insert(from);
        for (Int at = starts[eta], end = starts[eta + 1]; at < end; ++at) {
            work[positions[at]] -= values[at] * value;
            pattern.insert(positions[at]);
        }
    }
}

// A new last position of U. `row`: that begins there, or -1.
void Factorisation::push_position(Int slot, Int row, double pivot) {
    order_.push_back(slot);
    row_at_.push_back(row);
    pivot_.push_back(pivot);
    work_.push_back(0.0);
    newest_.push_back(-1);
    upper_columns_.start.push_back(static_cast<Int>(upper_columns_.index.size()));
    for (PositionSet* set : {&pattern_, &upper_columns_.has, &upper_rows_.has, &lower_rows_.has})
        set->extend(order_.size());
    if (upper_columns_.start.back() > upper_columns_.start.end()[-2])
        upper_columns_.has.insert(static_cast<Int>(order_.size()) - 1);
}

void Factorisation::close_eta(Int from, Int to) {
    eta_from_.push_back(from);
    eta_to_.push_back(to);
    eta_start_.push_back(static_cast<Int>(eta_position_.size()));
    update_work_ += eta_position_.size() + new_column_.size();
}

// Forrest and Tomlin: the old position is retired, the slot gets a new last one with the entering column, and a row eta
// eliminates the rest of the old row.
void Factorisation::update(Int slot) {
    const Int from = position_[slot], to = static_cast<Int>(order_.size());
    for (const PositionValue& part : column_for_update_) work_[part.position] = part.value;
    double pivot = work_[from];
    for (const PositionValue& part : row_for_update_) {
        if (part.position == from) continue;
        const double multiple = -part.value * pivot_[from];  // the row of U is this sum of those below it
        eta_position_.push_back(part.position);
        eta_value_.push_back(multiple);
        pivot -= multiple * work_[part.position];
    }
    for (const PositionValue& part : column_for_update_) {
        work_[part.position] = 0.0;
        if (part.position == from) continue;
        upper_columns_.index.push_back(part.position);
        upper_columns_.value.push_back(part.value);
        older_.push_back(newest_[part.position]);
        newest_[part.position] = static_cast<Int>(new_column_.size());
        upper_rows_.has.insert(part.position);
        new_column_.push_back(to);
        new_value_.push_back(part.value);
    }
    push_position(slot, -1, pivot);
    position_[slot] = to;
    pivot_[from] = std::numeric_limits<double>::infinity();
    close_eta(from, to);
}

// The slack's equation says a x - s = v; in terms of what U is solved for, a x is a U^-1 times that.
void Factorisation::append_row(Int row, SparseVector& entries) {
    const Int to = static_cast<Int>(order_.size());
    scatter(entries, position_);
    solve_upper_transposed();
    pattern_.drain_descending(lower_rows_.has, [this](Int at, bool) {
        const double value = std::exchange(work_[at], 0.0);
        if (std::abs(value) < kTiny) return;
        eta_position_.push_back(at);
        eta_value_.push_back(value);
    });
    push_position(row, row, -1.0);
    position_.push_back(to);
    first_position_.push_back(to);
    close_eta(to, to);
}

}  // namespace cobre::lp
