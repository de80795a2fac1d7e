// Sums and updates over dense vectors: the same bits with and without wide instructions. Products are rounded before
// they are added, and every sum has one order.
#pragma once

#include <cstddef>

namespace cobre::lp {

// a . b in eight running sums, joined in one order.
double dot(const double* a, const double* b, size_t n);
// out[i] = row i of the matrix . x
void multiply(const double* matrix, size_t stride, const double* x, double* out, size_t rows, size_t n);
// y += factor * x
void add_scaled(double* y, double factor, const double* x, size_t n);
// y = base + factors[0] * rows[0] + factors[1] * rows[1] + ..., added to each element one after the other. base may be
// y.
void add_scaled_rows(const double* base, double* y, const double* factors, const double* const* rows, size_t count,
                     size_t n);
// The same sums, kSumsPerBlock at a time from index `from` on, until some of a block are above a limit: these are in
// `sums`, and minus infinity past the end. Returns the index of the first of them; n or more where none is above.
constexpr size_t kSumsPerBlock = 32;
size_t next_sums_above(double limit, const double* base, const double* factors, const double* const* rows, size_t count,
                       size_t from, size_t n, double* sums);
// The first index from `from` on where a + b is above a limit; n if there is none.
size_t next_above(const double* a, const double* b, double limit, size_t from, size_t n);

}  // namespace cobre::lp
