#include "lp_stage.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hash.hpp"
#include "lp_scaling.hpp"

namespace cobre::lp {

namespace {

bool are_below(View<Int> indices, Int limit) {
    return std::all_of(indices.begin(), indices.end(), [limit](Int index) { return 0 <= index && index < limit; });
}

struct HashOfColumns {
    size_t operator()(View<Int> columns) const {
        return std::accumulate(columns.begin(), columns.end(), uint64_t{0}, mix);
    }
};

struct SameColumns {
    bool operator()(View<Int> left, View<Int> right) const { return std::ranges::equal(left, right); }
};

}  // namespace

// Check the parts against each other before any of them is an index: they are made in Python, and a wrong one would
// read outside of an array.
void StageModel::finish() {
    columns = static_cast<Int>(cost.size());
    rows = static_cast<Int>(row_lower.size());
    const auto width = static_cast<size_t>(columns), height = static_cast<size_t>(rows);
    require(column_lower.size() == width && column_upper.size() == width,
            "column_lower, column_upper: expected one for each cost");
    require(row_upper.size() == height && row_start.size() == height + 1 && row_start[0] == 0,
            "row_upper, row_start: expected one for each row_lower");
    require(column_index.size() == value.size() && row_start.back() == static_cast<Int>(value.size()),
            "value: not as long as column_index and row_start say");
    require(are_below(column_index, columns), "column_index: no such column");
    require(state_column.size() == static_cast<size_t>(num_decided) && state_scale.size() == state_column.size(),
            "state_column, state_scale: expected one for each state");
    require(are_below(state_column, columns) && 0 <= future_cost && future_cost < columns,
            "state_column, future_cost: no such column");
    require(autoregression.size() == static_cast<size_t>(num_lags) * num_hydros,
            "autoregression: expected lags x hydros");
    require(lag_from.size() == lag_share.size() && (shifts_lags() || lag_from.size() == static_cast<size_t>(num_lags)),
            "lag_from, lag_share: expected one for each lag, or none");
    for (const Int from : lag_from) require(-1 <= from && from < num_lags, "lag_from: no such lag");
    for (const Int from : passed_from) require(-1 <= from && from < dimension(), "passed_from: no such state");
    require(are_below(input_row, rows) && are_below(input_index, num_decided + num_hydros + passed()),
            "input_row, input_index: no such row or input");
    require(input_row.size() == input_index.size() && input_row.size() == input_value.size(),
            "input_row, input_index, input_value differ in length");
    require(are_below(load_row, rows) && load_row.size() == load_bus.size() && load_row.size() == load_factor.size(),
            "load_row, load_bus, load_factor: no such row, or of different lengths");
    require(are_below(source_column, columns) && source_column.size() == source_index.size() &&
                source_column.size() == source_factor.size() && source_column.size() == source_is_pinned.size(),
            "source_column and its companions: no such column, or of different lengths");
    require(correction_column.empty() || (correction_column.size() == static_cast<size_t>(num_hydros) &&
                                          correction_factor.size() == correction_column.size()),
            "correction_column, correction_factor: expected one for each hydro, or none");
    for (const Int column : correction_column)
        require(-1 <= column && column < columns, "correction_column: no such column");
    check_entries();
    balance_entries();
    find_families();
    state_of_column.assign(width, -1);
    for (Int state = 0; state < num_decided; ++state) state_of_column[state_column[state]] = state;
    index_columns();
    find_generation();
    find_moving_rows();
    choose_harris_tolerance();
}

// Smallest pivots, and what counts as rounding, are absolute numbers that take entries near one for granted. Stages
// come scaled that way; one that does not is solved in units of its own. In the caller's, with entries from 7e-6 to
// 4e4, bases of DECOMP LPs became singular.
void StageModel::balance_entries() {
    const auto is_far = [](double entry) {
        const double size = std::abs(entry);
        return size != 0.0 && (size < kSmallestEntry || size > kLargestEntry);
    };
    if (std::none_of(value.begin(), value.end(), is_far)) return;
    Exponents exponents =
        balanced_exponents(row_start, column_index, value, static_cast<size_t>(columns), kScalingRounds);
    exponents.column[future_cost] = 0;  // cuts have an entry of 1 there
    const auto own = std::make_shared<Units>();
    own->given = *this;
    const auto power = [](int32_t exponent) {
        return std::ldexp(1.0, std::clamp(exponent, -kMaxExponent, kMaxExponent));
    };
    std::transform(exponents.row.begin(), exponents.row.end(), std::back_inserter(own->row), power);
    std::transform(exponents.column.begin(), exponents.column.end(), std::back_inserter(own->column), power);
    const auto replace = [](View<double>& part, std::vector<double>& to, const auto& factor_of) {
        to.resize(part.size());
        for (size_t at = 0; at < to.size(); ++at) to[at] = part[at] * factor_of(at);
        part = to;
    };
    const auto of_column = [&](size_t at) { return own->column[at]; };
    const auto of_row = [&](size_t at) { return own->row[at]; };
    const auto per_column = [&](size_t at) { return 1.0 / own->column[at]; };
    replace(cost, own->cost, of_column);
    replace(column_lower, own->column_lower, per_column);
    replace(column_upper, own->column_upper, per_column);
    replace(row_lower, own->row_lower, of_row);
    replace(row_upper, own->row_upper, of_row);
    replace(state_scale, own->state_scale, [&](size_t at) { return own->column[state_column[at]]; });
    replace(input_value, own->input_value, [&](size_t at) { return own->row[input_row[at]]; });
    replace(load_factor, own->load_factor, [&](size_t at) { return own->row[load_row[at]]; });
    replace(source_factor, own->source_factor, [&](size_t at) { return 1.0 / own->column[source_column[at]]; });
    replace(correction_factor, own->correction_factor,
            [&](size_t at) { return correction_column[at] < 0 ? 1.0 : 1.0 / own->column[correction_column[at]]; });
    own->value.resize(value.size());
    for (Int row = 0; row < rows; ++row)
        for (Int at = row_start[row]; at < row_start[row + 1]; ++at)
            own->value[at] = value[at] * own->row[row] * own->column[column_index[at]];
    value = own->value;
    units = own;
}

void StageModel::index_columns() {
    transpose();
    find_singletons();
}

void StageModel::find_moving_rows() {
    std::vector<bool> moves(static_cast<size_t>(rows), false);
    for (const Int row : input_row) moves[row] = true;
    for (const Int row : load_row) moves[row] = true;
    for (Int row = 0; row < rows; ++row)
        if (moves[row]) moving_rows.push_back(row);
}

// A tolerance that is not small compared with the smallest costs makes them invisible, and ratio tests that rely on it
// leave reduced costs of the wrong sign, which are repaired by more pivots. A deck of 2025 has costs of 4e-10: with
// 1e-10 it takes 30 % more pivots than with anything from 1e-14 to 4e-12. With costs of 5e-9 (a deck of 2018) there is
// no difference.
void StageModel::choose_harris_tolerance() {
    double least = std::numeric_limits<double>::infinity();
    for (const double number : cost)
        if (number != 0.0) least = std::min(least, std::abs(number));
    has_small_costs = least < kSmallCost;
    harris_tolerance =
        !has_small_costs ? kHarrisTolerance : std::max(kLeastHarrisTolerance, kHarrisShareOfCost * least);
}

// The simplex methods look for the entry of a column in a row, and there must be one.
void StageModel::check_entries() const {
    std::vector<Int> last(static_cast<size_t>(columns), -1);
    for (Int row = 0; row < rows; ++row) {
        require(row_start[row] <= row_start[row + 1], "row_start descends");
        for (Int at = row_start[row]; at < row_start[row + 1]; ++at)
            require(std::exchange(last[column_index[at]], row) != row, "column_index: a row has a column twice");
    }
}

// A row with two finite bounds is never deferred: it would have to be checked on both sides in every solve.
void StageModel::find_families() {
    std::vector<Int> sorted(column_index.begin(), column_index.end());  // each row by itself
    std::unordered_map<View<Int>, Int, HashOfColumns, SameColumns> known;
    family.assign(static_cast<size_t>(rows), -1);
    for (Int row = 0; row < rows; ++row) {
        if (std::isfinite(row_lower[row]) == std::isfinite(row_upper[row])) continue;
        const std::span<Int> support(sorted.begin() + row_start[row], sorted.begin() + row_start[row + 1]);
        std::ranges::sort(support);
        family[row] = known.try_emplace(support, static_cast<Int>(known.size())).first->second;
        deferred_rows.push_back(row);
    }
    families = static_cast<Int>(known.size());
}

// Planes say `g <= plane(v, q, s)`, and rows are scaled by powers of two: the coefficients of g have one significand,
// while slopes differ from plane to plane. Of several such columns the one with fewest entries fills in least.
Int StageModel::generation_of(std::span<const Int> planes) const {
    const auto significand = [](double number) {
        int exponent = 0;
        return std::frexp(number, &exponent);
    };
    const auto entry = [this](Int row, Int column) {
        Int at = row_start[row];
        while (column_index[at] != column) ++at;
        return value[at];
    };
    const auto length = [this](Int column) { return column_start[column + 1] - column_start[column]; };
    Int found = -1;
    for (Int at = row_start[planes[0]]; at < row_start[planes[0] + 1]; ++at) {
        const Int column = column_index[at];
        if (value[at] == 0.0 || state_of_column[column] >= 0 || column == future_cost) continue;
        const bool is_alike = std::all_of(planes.begin(), planes.end(), [&](Int row) {
            return significand(entry(row, column)) == significand(value[at]);
        });
        if (is_alike && (found < 0 || length(column) < length(found))) found = column;
    }
    return found;
}

void StageModel::find_generation() {
    if (static_cast<size_t>(families) == deferred_rows.size()) return;  // no planes
    std::vector<std::vector<Int>> planes(static_cast<size_t>(families));
    for (const Int row : deferred_rows) planes[family[row]].push_back(row);
    generation.assign(static_cast<size_t>(families), -1);
    std::vector<Int> owner(static_cast<size_t>(columns), -1);
    for (Int index = 0; index < families; ++index) {
        if (planes[index].size() < 2) continue;
        generation[index] = generation_of(planes[index]);
        if (generation[index] >= 0) owner[generation[index]] = index;
    }
    for (Int index = 0; index < families; ++index) {
        if (generation[index] < 0) continue;
        const Int first = planes[index].front();
        for (Int at = row_start[first]; at < row_start[first + 1]; ++at)
            if (const Int other = owner[column_index[at]]; other >= 0 && other != index) generation[index] = -1;
    }
}

// Rows that are never deferred first in each column: solves that have no deferred row stop at `deferred_start`.
void StageModel::transpose() {
    column_start.assign(static_cast<size_t>(columns) + 1, 0);
    for (const Int column : column_index) ++column_start[column + 1];
    for (Int column = 0; column < columns; ++column) column_start[column + 1] += column_start[column];
    row_index.resize(value.size());
    column_value.resize(value.size());
    std::vector<Int> next(column_start.begin(), column_start.end() - 1);
    const auto append = [&](bool are_deferred) {
        for (Int row = 0; row < rows; ++row) {
            if ((family[row] >= 0) != are_deferred) continue;
            for (Int at = row_start[row]; at < row_start[row + 1]; ++at) {
                const Int to = next[column_index[at]]++;
                row_index[to] = row;
                column_value[to] = value[at];
            }
        }
    };
    append(false);
    deferred_start = next;
    append(true);
}

// Lists of singletons by row, in the order of columns.
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
