#include "lp_stage.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

namespace cobre::lp {

namespace {

void require(bool holds, const char* message) {
    if (!holds) throw std::invalid_argument(message);
}

bool are_below(Part<Int> indices, Int limit) {
    return std::all_of(indices.begin(), indices.end(), [limit](Int index) { return 0 <= index && index < limit; });
}

}  // namespace

void StageModel::finish() {
    columns = static_cast<Int>(cost.size());
    rows = static_cast<Int>(row_lower.size());
    const auto width = static_cast<size_t>(columns), height = static_cast<size_t>(rows);
    require(column_lower.size() == width && column_upper.size() == width, "columns differ in number");
    require(row_upper.size() == height && row_start.size() == height + 1, "rows differ in number");
    require(column_index.size() == value.size() && row_start.back() == static_cast<Int>(value.size()),
            "matrix is torn");
    require(are_below(column_index, columns), "a matrix entry lies outside the columns");
    require(state_column.size() == static_cast<size_t>(states) && state_scale.size() == state_column.size(),
            "state columns differ in number from states");
    require(are_below(state_column, columns) && 0 <= future_cost && future_cost < columns, "a state column is outside");
    require(autoregression.size() == static_cast<size_t>(order) * hydros, "autoregression has another size");
    require(lag_from.size() == lag_share.size() && (shifts_lags() || lag_from.size() == static_cast<size_t>(order)),
            "lags are torn");
    for (const Int from : lag_from) require(-1 <= from && from < order, "a lag takes over one from outside");
    for (const Int from : passed_from) require(-1 <= from && from < dimension(), "a state is passed on from outside");
    require(are_below(input_row, rows) && are_below(input_index, states + hydros + passed()), "an input lies outside");
    require(input_row.size() == input_index.size() && input_row.size() == input_value.size(), "inputs are torn");
    require(are_below(load_row, rows) && load_row.size() == load_bus.size() && load_row.size() == load_factor.size(),
            "loads are torn");
    require(are_below(source_column, columns) && source_column.size() == source_index.size() &&
                source_column.size() == source_factor.size() && source_column.size() == source_is_pinned.size(),
            "sources are torn");
    find_families();
    transpose();
    state_of_column.assign(width, -1);
    for (Int state = 0; state < states; ++state) state_of_column[state_column[state]] = state;
    moving_rows.assign(input_row.begin(), input_row.end());
    moving_rows.insert(moving_rows.end(), load_row.begin(), load_row.end());
    std::sort(moving_rows.begin(), moving_rows.end());
    moving_rows.erase(std::unique(moving_rows.begin(), moving_rows.end()), moving_rows.end());
    find_singletons();
}

void StageModel::find_families() {
    std::map<std::vector<Int>, Int> known;
    family.assign(static_cast<size_t>(rows), -1);
    for (Int row = 0; row < rows; ++row) {
        if (std::isfinite(row_lower[row]) == std::isfinite(row_upper[row])) continue;
        std::vector<Int> support(column_index.begin() + row_start[row], column_index.begin() + row_start[row + 1]);
        std::sort(support.begin(), support.end());
        family[row] = known.try_emplace(std::move(support), static_cast<Int>(known.size())).first->second;
        deferred_rows.push_back(row);
    }
    families = static_cast<Int>(known.size());
}

void StageModel::transpose() {
    column_start.assign(static_cast<size_t>(columns) + 1, 0);
    for (const Int column : column_index) ++column_start[column + 1];
    for (Int column = 0; column < columns; ++column) column_start[column + 1] += column_start[column];
    row_index.resize(value.size());
    column_value.resize(value.size());
    std::vector<Int> next(column_start.begin(), column_start.end() - 1);
    const auto place = [&](bool are_deferred) {
        for (Int row = 0; row < rows; ++row) {
            if ((family[row] >= 0) != are_deferred) continue;
            for (Int at = row_start[row]; at < row_start[row + 1]; ++at) {
                const Int to = next[column_index[at]]++;
                row_index[to] = row;
                column_value[to] = value[at];
            }
        }
    };
    place(false);
    deferred_start = next;
    place(true);
}

void StageModel::find_singletons() {
    singleton_row.assign(static_cast<size_t>(columns), -1);
    singleton_start.assign(static_cast<size_t>(rows) + 1, 0);
    for (Int column = 0; column < columns; ++column) {
        if (column_start[column + 1] - column_start[column] != 1 || state_of_column[column] >= 0 ||
            column == future_cost)
            continue;
        singleton_row[column] = row_index[column_start[column]];
        ++singleton_start[singleton_row[column] + 1];
    }
    for (Int row = 0; row < rows; ++row) singleton_start[row + 1] += singleton_start[row];
    singleton_column.resize(static_cast<size_t>(singleton_start.back()));
    std::vector<Int> next(singleton_start.begin(), singleton_start.end() - 1);
    for (Int column = 0; column < columns; ++column)
        if (singleton_row[column] >= 0) singleton_column[next[singleton_row[column]]++] = column;
}

}  // namespace cobre::lp
