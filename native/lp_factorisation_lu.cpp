// How a basis is factorised: slacks and singletons first, which fill in nothing, then the nucleus.
#include <algorithm>
#include <cmath>

#include "lp_factorisation.hpp"
#include "lp_tolerances.hpp"

namespace cobre::lp {

void Factorisation::pivot_on(Int row, Int column, double value) {
    position_[row] = static_cast<Int>(order_.size());
    order_.push_back(row);
    pivot_.push_back(value);
    if (column >= 0) row_of_column_[column] = row;
}

// Slacks take their rows; the other rows get lists of the columns in them.
void Factorisation::begin(std::span<const uint8_t> slack_is_basic, const BasisColumns& columns) {
    rows_ = slack_is_basic.size();
    order_.clear();
    pivot_.clear();
    position_.assign(rows_, -1);
    row_of_column_.assign(static_cast<size_t>(columns.count()), kLeft);
    column_count_.assign(row_of_column_.size(), 0);
    row_count_.assign(rows_, 0);
    lower_entries_.clear();
    upper_entries_.clear();
    for (size_t row = 0; row < rows_; ++row)
        if (slack_is_basic[row]) pivot_on(static_cast<Int>(row), -1, -1.0);
    for (Int column = 0; column < columns.count(); ++column)
        for (Int at = columns.start[column]; at < columns.start[column + 1]; ++at)
            if (position_[columns.row[at]] < 0) ++row_count_[columns.row[at]], ++column_count_[column];
    row_start_.assign(rows_ + 1, 0);
    for (size_t row = 0; row < rows_; ++row) row_start_[row + 1] = row_start_[row] + row_count_[row];
    row_columns_.resize(static_cast<size_t>(row_start_[rows_]));
    queue_.assign(row_start_.begin(), row_start_.end() - 1);
    for (Int column = 0; column < columns.count(); ++column)
        for (Int at = columns.start[column]; at < columns.start[column + 1]; ++at)
            if (position_[columns.row[at]] < 0) row_columns_[queue_[columns.row[at]]++] = column;
}

// Columns with one entry left: their row becomes a row of U, and nothing is below the pivot. A column without an entry
// that can be a pivot is rejected.
void Factorisation::pivot_column_singletons(const BasisColumns& columns) {
    queue_.clear();
    for (Int column = 0; column < columns.count(); ++column)
        if (column_count_[column] == 1) queue_.push_back(column);
    for (size_t next = 0; next < queue_.size(); ++next) {
        const Int column = queue_[next];
        Int at = columns.start[column];
        while (at < columns.start[column + 1] && position_[columns.row[at]] >= 0) ++at;
        if (at == columns.start[column + 1] || std::abs(columns.value[at]) < kSmallestLuPivot) {
            row_of_column_[column] = kRejected;
            continue;
        }
        const Int row = columns.row[at];
        pivot_on(row, column, columns.value[at]);
        for (Int entry = row_start_[row]; entry < row_start_[row + 1]; ++entry) {
            const Int other = row_columns_[entry];
            if (is_left(other) && --column_count_[other] == 1) queue_.push_back(other);
        }
    }
}

// Rows with one entry left: their column becomes a column of L, and the rest of the matrix does not change. Rows
// without an entry that can be a pivot are left to the nucleus.
void Factorisation::pivot_row_singletons(const BasisColumns& columns) {
    queue_.clear();
    for (size_t row = 0; row < rows_; ++row) {
        if (position_[row] >= 0) continue;
        row_count_[row] = 0;
        for (Int entry = row_start_[row]; entry < row_start_[row + 1]; ++entry)
            row_count_[row] += is_left(row_columns_[entry]);
        if (row_count_[row] == 1) queue_.push_back(static_cast<Int>(row));
    }
    for (size_t next = 0; next < queue_.size(); ++next) {
        const Int row = queue_[next];
        Int entry = row_start_[row];
        while (entry < row_start_[row + 1] && !is_left(row_columns_[entry])) ++entry;
        if (entry == row_start_[row + 1]) continue;
        const Int column = row_columns_[entry];
        double pivot = 0.0;
        for (Int at = columns.start[column]; at < columns.start[column + 1]; ++at)
            if (columns.row[at] == row) pivot = columns.value[at];
        if (std::abs(pivot) < kSmallestLuPivot) continue;
        pivot_on(row, column, pivot);
        for (Int at = columns.start[column]; at < columns.start[column + 1]; ++at) {
            const Int other = columns.row[at];
            if (position_[other] >= 0) continue;
            lower_entries_.push_back({other, column, columns.value[at] / pivot});
            if (--row_count_[other] == 1) queue_.push_back(other);
        }
    }
}

void Factorisation::eliminate_nucleus(const BasisColumns& columns) {
    nucleus_size_ = static_cast<Int>(rows_ - order_.size());
    if (nucleus_size_ == 0) return;
    nucleus_.reset(rows_, row_of_column_.size());
    for (Int column = 0; column < columns.count(); ++column) {
        if (!is_left(column)) continue;
        for (Int at = columns.start[column]; at < columns.start[column + 1]; ++at)
            if (position_[columns.row[at]] < 0) nucleus_.add(columns.row[at], column, columns.value[at]);
    }
    nucleus_pivots_.clear();
    nucleus_.eliminate(nucleus_pivots_, lower_entries_, upper_entries_);
    for (const auto& pivot : nucleus_pivots_) pivot_on(pivot.row, pivot.column, pivot.value);
}

// Entries by lines in the space of positions; within a line they keep the order of the list.
void Factorisation::sort_lines(const std::vector<Entry>& entries, Lines& by_column, Lines& by_row) const {
    for (Lines* lines : {&by_column, &by_row}) {
        lines->start.assign(rows_ + 1, 0);
        lines->index.resize(entries.size());
        lines->value.resize(entries.size());
        lines->has.resize(rows_);
    }
    for (const Entry& entry : entries) ++by_column.start[entry.column + 1], ++by_row.start[entry.row + 1];
    for (size_t line = 0; line < rows_; ++line)
        for (Lines* lines : {&by_column, &by_row}) {
            if (lines->start[line + 1] > 0) lines->has.insert(static_cast<Int>(line));
            lines->start[line + 1] += lines->start[line];
        }
    const auto put = [](Lines& lines, Int line, Int index, double value) {
        const Int at = lines.start[line]++;
        lines.index[at] = index;
        lines.value[at] = value;
    };
    for (const Entry& entry : entries) {
        put(by_column, entry.column, entry.row, entry.value);
        put(by_row, entry.row, entry.column, entry.value);
    }
    for (Lines* lines : {&by_column, &by_row}) {  // starts have moved to the ends of their lines
        std::copy_backward(lines->start.begin(), lines->start.end() - 1, lines->start.end());
        lines->start[0] = 0;
    }
}

// From rows and columns of the basis to positions. What stands in a row that was eliminated before its column belongs
// to U.
void Factorisation::permute_to_positions(const BasisColumns& columns) {
    const Int first_of_nucleus = static_cast<Int>(rows_) - nucleus_size_;
    const auto to_positions = [this](Entry& entry) {
        entry.row = position_[entry.row];
        entry.column = position_[row_of(entry.column)];
    };
    std::for_each(lower_entries_.begin(), lower_entries_.end(), to_positions);
    std::for_each(upper_entries_.begin(), upper_entries_.end(), to_positions);
    for (Int column = 0; column < columns.count(); ++column) {
        const Int position = position_[row_of(column)];
        for (Int at = columns.start[column]; at < columns.start[column + 1]; ++at) {
            const Int row = position_[columns.row[at]];
            if (row < std::min(position, first_of_nucleus))
                upper_entries_.push_back({row, position, columns.value[at]});
        }
    }
    sort_lines(lower_entries_, lower_columns_, lower_rows_);
    sort_lines(upper_entries_, upper_columns_, upper_rows_);
}

bool Factorisation::factorise(std::span<const uint8_t> slack_is_basic, const BasisColumns& columns,
                              std::vector<Int>& slot_of_column) {
    begin(slack_is_basic, columns);
    const bool is_square = order_.size() + row_of_column_.size() == rows_;
    pivot_column_singletons(columns);
    pivot_row_singletons(columns);
    eliminate_nucleus(columns);
    slot_of_column = row_of_column_;
    if (!is_square || order_.size() != rows_) return false;
    permute_to_positions(columns);
    begin_updates();
    return true;
}

}  // namespace cobre::lp
