// Cuts from the solves of a backward pass: averages over openings, and how they are stored in the pool.
#pragma once

#include <cstddef>

namespace cobre::lp {

// What the solves of some trial points for all openings gave.
struct Openings {
    size_t points, openings, dimension;
    const double *cost, *weight;  // points x openings
    const double* gradient;       // points x openings x dimension
    const double* state;          // points x dimension
};

// One cut for each trial point: its intercept, then its coefficients. Sums go over components and over openings in
// their order, so that the bits are the same everywhere.
void average_cuts(const Openings& from, double* cuts);

// Where a chunk of the pool, rows x width, has the number of one cut in one row.
inline size_t chunk_index(size_t row, size_t width, size_t column) { return row * width + column; }

// Write cuts (rows of 1 + dimension numbers) into consecutive columns of a chunk of the pool.
void write_cuts(const double* cuts, size_t count, size_t width, double* chunk, size_t cuts_per_chunk, size_t column);

}  // namespace cobre::lp
