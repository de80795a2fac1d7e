// Scales of rows and columns that bring the entries of a matrix near one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cobre::lp {

// Exponents of two, by row and by column.
struct Exponents {
    std::vector<int32_t> row, column;
};

// Alternates rows and columns for the given number of rounds: each goes half way between the largest and the smallest
// exponent of its entries. Only exponents, so that nothing is rounded. The matrix is stored by rows; every index is
// below `columns`.
Exponents balanced_exponents(std::span<const int32_t> start, std::span<const int32_t> index,
                             std::span<const double> value, size_t columns, int rounds);

}  // namespace cobre::lp
