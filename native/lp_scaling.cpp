#include "lp_scaling.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace cobre::lp {

namespace {

// The range of exponents of every row or column.
class Ranges {
public:
    explicit Ranges(size_t count) : low_(count), high_(count) {}

    void clear() {
        std::fill(low_.begin(), low_.end(), INT32_MAX);
        std::fill(high_.begin(), high_.end(), INT32_MIN);
    }
    void add(size_t at, int32_t exponent) {
        low_[at] = std::min(low_[at], exponent);
        high_[at] = std::max(high_[at], exponent);
    }
    // Half way between the largest and the smallest, rounded down; 0 for an empty one.
    void write_opposite_middles(std::vector<int32_t>& out) const {
        for (size_t at = 0; at < out.size(); ++at) out[at] = high_[at] >= low_[at] ? -((high_[at] + low_[at]) >> 1) : 0;
    }

private:
    std::vector<int32_t> low_, high_;
};

// As `std::frexp` gives it, read from the bits of normal numbers.
int32_t exponent_of(double value) {
    const auto bits = static_cast<int32_t>((std::bit_cast<uint64_t>(value) >> 52) & 0x7FF);
    if (bits != 0 && bits != 0x7FF) return bits - 1022;
    int found = 0;
    std::frexp(value, &found);
    return found;
}

}  // namespace

Exponents balanced_exponents(std::span<const int32_t> start, std::span<const int32_t> index,
                             std::span<const double> value, size_t columns, int rounds) {
    const size_t rows = start.size() - 1;
    Exponents found{std::vector<int32_t>(rows, 0), std::vector<int32_t>(columns, 0)};
    std::vector<int32_t> exponent(value.size());
    std::transform(value.begin(), value.end(), exponent.begin(), exponent_of);
    Ranges of_rows(rows), of_columns(columns);
    const auto each_entry = [&](const auto& visit) {
        for (size_t row = 0; row < rows; ++row)
            for (auto at = static_cast<size_t>(start[row]); at < static_cast<size_t>(start[row + 1]); ++at)
                visit(row, static_cast<size_t>(index[at]), exponent[at]);
    };
    for (int round = 0; round < rounds; ++round) {
        of_rows.clear();
        each_entry([&](size_t row, size_t column, int32_t own) { of_rows.add(row, own + found.column[column]); });
        of_rows.write_opposite_middles(found.row);
        of_columns.clear();
        each_entry([&](size_t row, size_t column, int32_t own) { of_columns.add(column, own + found.row[row]); });
        of_columns.write_opposite_middles(found.column);
    }
    return found;
}

}  // namespace cobre::lp
