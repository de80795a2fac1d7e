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

}  // namespace cobre::lp
