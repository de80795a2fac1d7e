#include "lp_nucleus.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "lp_tolerances.hpp"

namespace cobre::lp {

void Nucleus::CountLists::reset(size_t lines, size_t most) {
    head_.assign(most + 1, -1);
    if (next_.size() < lines) next_.resize(lines), previous_.resize(lines), count_.resize(lines);
}

void Nucleus::CountLists::insert(Int line, Int count) {
    count_[line] = count;
    previous_[line] = -1;
    next_[line] = head_[count];
    if (head_[count] >= 0) previous_[head_[count]] = line;
    head_[count] = line;
}

void Nucleus::CountLists::remove(Int line) {
    if (previous_[line] >= 0) next_[previous_[line]] = next_[line];
    else head_[count_[line]] = next_[line];
    if (next_[line] >= 0) previous_[next_[line]] = previous_[line];
}

void Nucleus::reset(size_t rows, size_t columns) {
    for (const Int row : used_rows_) rows_[row].clear();
    for (const Int column : used_columns_) columns_[column].clear();
    used_rows_.clear();
    used_columns_.clear();
    if (rows_.size() < rows) rows_.resize(rows), position_of_row_.resize(rows, -1);
    if (columns_.size() < columns) columns_.resize(columns);
}

void Nucleus::add(Int row, Int column, double value) {
    if (rows_[row].empty()) used_rows_.push_back(row);
    if (columns_[column].empty()) used_columns_.push_back(column);
    rows_[row].push_back(column);
    columns_[column].push_back({row, value});
}

// Rows and columns (lines) with few entries are searched first; among equals, the one listed last.
void Nucleus::list_lines() {
    const size_t most = std::max(used_rows_.size(), used_columns_.size());
    by_row_.reset(rows_.size(), most);
    by_column_.reset(columns_.size(), most);
    for (const Int row : used_rows_) by_row_.insert(row, static_cast<Int>(rows_[row].size()));
    for (const Int column : used_columns_) by_column_.insert(column, static_cast<Int>(columns_[column].size()));
}

double Nucleus::largest(Int column) const {
    double most = 0.0;
    for (const Cell& entry : columns_[column]) most = std::max(most, std::abs(entry.value));
    return most;
}

const Nucleus::Cell* Nucleus::cell(Int row, Int column) const {
    for (const Cell& entry : columns_[column])
        if (entry.row == row) return &entry;
    return nullptr;
}

// Take an entry as the pivot when it is large enough in its column and its Markowitz count is below the best so far.
void Nucleus::consider(Int row, Int column, double& best, Pivot& pivot) const {
    const double fill = static_cast<double>(rows_[row].size() - 1) * static_cast<double>(columns_[column].size() - 1);
    if (fill > best) return;
    const double value = cell(row, column)->value;
    if (fill == best && std::abs(value) <= std::abs(pivot.value)) return;
    if (std::abs(value) < std::max(kSmallestLuPivot, kMarkowitzThreshold * largest(column))) return;
    best = fill;
    pivot = {row, column, value};
}

// Markowitz search: singletons, then doubletons ..., columns before rows; ends when no longer line can have a smaller
// count.
bool Nucleus::find_pivot(Pivot& pivot) const {
    const size_t most = std::max(used_rows_.size(), used_columns_.size());
    double best = std::numeric_limits<double>::infinity();
    pivot.value = 0.0;
    int searched = 0;
    for (Int count = 1; static_cast<size_t>(count) <= most; ++count) {
        for (Int column = by_column_.first(count); column >= 0; column = by_column_.after(column)) {
            for (const Cell& entry : columns_[column]) consider(entry.row, column, best, pivot);
            if (++searched >= kMaxSearchedLines && pivot.value != 0.0) return true;
        }
        for (Int row = by_row_.first(count); row >= 0; row = by_row_.after(row)) {
            for (const Int column : rows_[row]) consider(row, column, best, pivot);
            if (++searched >= kMaxSearchedLines && pivot.value != 0.0) return true;
        }
        if (best <= static_cast<double>(count) * static_cast<double>(count - 1)) return true;
    }
    return pivot.value != 0.0;
}

// Remove the pivot's row and column from the lists; the rest of the column, over the pivot, becomes a column of L.
void Nucleus::remove_pivot(const Pivot& pivot, std::vector<Entry>& lower) {
    by_row_.remove(pivot.row);
    by_column_.remove(pivot.column);
    multipliers_.clear();
    for (const Cell& entry : columns_[pivot.column]) {
        if (entry.row == pivot.row) continue;
        const double multiplier = entry.value / pivot.value;
        multipliers_.push_back({entry.row, multiplier});
        lower.push_back({entry.row, pivot.column, multiplier});
        auto& row = rows_[entry.row];
        row.erase(std::find(row.begin(), row.end(), pivot.column));
        by_row_.remove(entry.row);
    }
}

// Eliminate the pivot's row from another column.
void Nucleus::update_column(const Pivot& pivot, Int column, std::vector<Entry>& upper) {
    auto& cells = columns_[column];
    by_column_.remove(column);
    double factor = 0.0;
    for (size_t at = 0; at < cells.size(); ++at) {
        if (cells[at].row != pivot.row) continue;
        factor = cells[at].value;
        cells.erase(cells.begin() + static_cast<ptrdiff_t>(at));
        break;
    }
    upper.push_back({pivot.row, column, factor});
    for (size_t at = 0; at < cells.size(); ++at) position_of_row_[cells[at].row] = static_cast<Int>(at);
    for (const Cell& multiplier : multipliers_) {
        const double change = -multiplier.value * factor;
        if (const Int at = position_of_row_[multiplier.row]; at >= 0) {
            cells[at].value += change;
            continue;
        }
        cells.push_back({multiplier.row, change});
        rows_[multiplier.row].push_back(column);
    }
    for (const Cell& entry : cells) position_of_row_[entry.row] = -1;
    by_column_.insert(column, static_cast<Int>(cells.size()));
}

// Right-looking elimination, one pivot at a time.
void Nucleus::eliminate(std::vector<Pivot>& pivots, std::vector<Entry>& lower, std::vector<Entry>& upper) {
    list_lines();
    for (size_t left = std::min(used_rows_.size(), used_columns_.size()); left > 0; --left) {
        Pivot pivot{};
        if (!find_pivot(pivot)) return;
        pivots.push_back(pivot);
        remove_pivot(pivot, lower);
        for (const Int column : rows_[pivot.row])
            if (column != pivot.column) update_column(pivot, column, upper);
        for (const Cell& multiplier : multipliers_)
            by_row_.insert(multiplier.row, static_cast<Int>(rows_[multiplier.row].size()));
    }
}

}  // namespace cobre::lp
