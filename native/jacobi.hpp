// Eigenvalues of symmetric matrices by Jacobi rotations, in a fixed order of operations: bits are the same on every
// processor.
#pragma once

#include <cstddef>

namespace cobre::noise {

// Rotates pairs of axes until `work` (count x count, row by row) is diagonal or `max_sweeps` are over. `vectors`, of
// the same shape, takes part in the rotations of rows: the identity becomes the matrix whose rows are eigenvectors.
void diagonalise(double* work, double* vectors, std::size_t count, int max_sweeps);

}  // namespace cobre::noise
