"""Native noise has the bits of the plain definition: the same operations in the same order, written with NumPy."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from cobre import _native
from cobre.core.arrays import Floats, Indices, sum_in_order
from cobre.stochastic.correlation import jacobi_eigen
from cobre.stochastic.random import pcg64
from cobre.stochastic.random.pcg64 import Pcg64Streams


def plain_eigen(matrix):
    """Return eigenvalues and orthonormal eigenvectors (as columns) of a symmetric matrix, by rotations.

    A sweep turns every pair of axes once, in rounds of disjoint pairs that are rotated together.
    """
    work, rows = matrix.copy(), np.eye(len(matrix))
    rounds = rounds_of(len(matrix))
    for _ in range(100):
        is_done = True
        for p, q in rounds:
            rotations = rotations_for(work, p, q)
            if rotations is not None:
                is_done = False
                rotations.apply(rows)
                rotations.apply(work)
                work = np.ascontiguousarray(work.T)
                rotations.apply(work)
                # Rounding errors here would be rotated again and again.
                work[rotations.p, rotations.q] = work[rotations.q, rotations.p] = 0.0
        if is_done:
            break
    return [float(value) for value in np.diagonal(work)], rows.T


def rounds_of(count):
    """Return all pairs below `count` in rounds of disjoint pairs (round-robin scheduling)."""
    players = list(range(count + count % 2))
    half, rows = len(players) // 2, []
    for _ in range(len(players) - 1):
        pairs = [tuple(sorted(pair)) for pair in zip(players[:half], reversed(players[half:]), strict=True)]
        played = np.array([pair for pair in pairs if pair[1] < count], dtype=np.intp).reshape(-1, 2)
        rows.append((played[:, 0], played[:, 1]))
        players = [players[0], players[-1], *players[1:-1]]
    return rows


@dataclass(frozen=True, slots=True)
class Rotations:
    """Rotations of disjoint pairs of axes."""

    p: Indices
    q: Indices
    cosine: Floats
    sine: Floats

    def apply(self, rows):
        """Rotate pairs of rows in place; arrays are reused: matrices of decks are rotated thousands of times."""
        first, second = rows[self.p], rows[self.q]
        rotated, other = self.cosine * first, self.sine * second
        rotated -= other
        rows[self.p] = rotated
        first *= self.sine
        second *= self.cosine
        first += second
        rows[self.q] = first


def rotations_for(work, p, q):
    """Return the rotations that zero the elements of these pairs; None if all are negligible."""
    element, left, right = work[p, q], work[p, p], work[q, q]
    matters = np.abs(element) > 1e-15 * np.maximum(1.0, np.maximum(np.abs(left), np.abs(right)))
    if not matters.any():
        return None
    ratio = (right[matters] - left[matters]) / (2.0 * element[matters])
    tangent = np.copysign(1.0, ratio) / (np.abs(ratio) + np.sqrt(ratio * ratio + 1.0))
    cosine = (1.0 / np.sqrt(tangent * tangent + 1.0))[:, None]
    return Rotations(p[matters], q[matters], cosine, tangent[:, None] * cosine)


def plain_normals(streams, dimension):
    """Return `dimension` numbers from each stream, as rows."""
    values = np.empty((streams.count, dimension))
    for column in range(dimension):
        values[:, column] = one_each(streams)
    return values


def one_each(streams):
    result = np.empty(streams.count)
    pending = np.arange(streams.count)
    bits = streams.next_u64()
    while True:
        refused = fill(streams, pending, bits, result)
        if not len(refused):
            return result
        pending = refused
        bits = streams.next_u64(pending)


def fill(streams, pending, bits, result):
    """Accept what can be accepted; return the streams that must draw again."""
    widths, _ = pcg64.ziggurat_tables()
    layers = (bits & np.uint64(0xFF)).astype(np.intp)
    unit = unit_of(bits)
    values = unit * widths[layers]
    accepted = np.abs(values) < widths[layers + 1]
    outside = np.flatnonzero(~accepted)
    for index in outside[layers[outside] == 0]:
        values[index] = tail_of(streams, pending[index : index + 1], float(unit[index]))
        accepted[index] = True
    edge = outside[layers[outside] > 0]
    accepted[edge] = is_below_density(streams, pending[edge], layers[edge], values[edge])
    result[pending[accepted]] = values[accepted]
    return pending[~accepted]


def unit_of(bits):
    """Take the top 52 bits as the mantissa of a number in [2, 4), minus 3."""
    return ((bits >> np.uint64(12)) | np.uint64(0x4000000000000000)).view(np.float64) - 3.0


def is_below_density(streams, drawing, layers, values):
    """Return whether a random height within the layer is under the curve at each value."""
    if not len(drawing):
        return np.zeros(0, dtype=np.bool_)
    _, heights = pcg64.ziggurat_tables()
    threshold = heights[layers + 1] + (heights[layers] - heights[layers + 1]) * streams.next_unit(drawing)
    return threshold < np.array([density(value) for value in values.tolist()])


def tail_of(streams, stream, unit):
    x, y = 1.0, 0.0
    while -2.0 * y < x * x:
        x = math.log(open_unit(streams, stream)) / pcg64.TAIL_START
        y = math.log(open_unit(streams, stream))
    return x - pcg64.TAIL_START if unit < 0.0 else pcg64.TAIL_START - x


def open_unit(streams, stream):
    """Return a number strictly between 0 and 1: odd multiples of 2^-53."""
    return (2 * int(streams.next_u64(stream)[0] >> np.uint64(12)) + 1) * 2.0**-53


def density(x):
    return math.exp(-x * x / 2.0)


def correlation_of(seed, size, factors):
    """Return a correlation matrix; fewer factors than entities make it singular."""
    loadings = np.random.default_rng(seed).normal(size=(size, factors))
    covariance = loadings @ loadings.T
    scale = np.sqrt(np.diag(covariance))
    matrix = covariance / np.outer(scale, scale)
    matrix = (matrix + matrix.T) / 2
    np.fill_diagonal(matrix, 1.0)
    return matrix


@pytest.mark.parametrize(("size", "factors"), [(1, 2), (2, 3), (3, 3), (8, 4), (17, 30), (64, 9), (75, 75)])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_eigenvectors_have_the_bits_of_the_plain_rotations(seed, size, factors):
    matrix = correlation_of(seed, size, factors)
    before = matrix.copy()
    values, vectors = jacobi_eigen(matrix)
    plain_values, plain_vectors = plain_eigen(matrix)
    assert np.array(values).tobytes() == np.array(plain_values).tobytes()
    assert vectors.tobytes() == plain_vectors.tobytes()
    assert matrix.tobytes() == before.tobytes()


def test_eigenvectors_of_sparse_and_slightly_asymmetric_matrices_have_the_bits_of_the_plain_rotations():
    sparse = np.eye(9)
    sparse[2, 5] = sparse[5, 2] = 0.4
    sparse[0, 8] = sparse[8, 0] = -1.0
    asymmetric = correlation_of(4, 10, 12)
    asymmetric[1, 7] += 3e-11
    for matrix in (np.eye(4), sparse, asymmetric, np.asfortranarray(asymmetric)):
        values, vectors = jacobi_eigen(matrix)
        plain_values, plain_vectors = plain_eigen(matrix)
        assert np.array(values).tobytes() == np.array(plain_values).tobytes()
        assert vectors.tobytes() == plain_vectors.tobytes()


def test_normals_have_the_bits_of_the_plain_ziggurat():
    seeds = np.random.default_rng(5).integers(0, 2**64, size=3000, dtype=np.uint64)
    native, plain = Pcg64Streams(seeds), Pcg64Streams(seeds)
    numbers = pcg64.standard_normals(native, 60)
    assert numbers.tobytes() == plain_normals(plain, 60).tobytes()
    assert np.abs(numbers).max() > pcg64.TAIL_START, "no draw reached the tail"
    # The streams have advanced as far as the plain ones: the next draws are equal.
    assert native.next_u64().tobytes() == plain.next_u64().tobytes()
    assert pcg64.standard_normals(native, 3).tobytes() == plain_normals(plain, 3).tobytes()


def test_zero_streams_or_dimensions_give_empty_arrays():
    assert pcg64.standard_normals(Pcg64Streams(np.zeros(0, dtype=np.uint64)), 4).shape == (0, 4)
    assert pcg64.standard_normals(Pcg64Streams(np.arange(3, dtype=np.uint64)), 0).shape == (3, 0)


@pytest.mark.parametrize("width", [1, 3, 4, 23, 24, 25, 53])
def test_correlated_draws_have_the_bits_of_sums_from_the_first_row_on(width):
    random = np.random.default_rng(width)
    draws, matrix, mixed = random.normal(size=(5, 9)), random.normal(size=(9, width)), np.full((5, width), np.nan)
    _native.mix(draws, matrix, mixed)
    total = np.zeros((5, width))
    for row in range(9):
        total = total + draws[:, row : row + 1] * matrix[row]
    assert mixed.tobytes() == total.tobytes()


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 17])
def test_pair_products_have_bits_of_sums_over_common_rows(count):
    random = np.random.default_rng(count)
    known = random.random((12, count)) < 0.7
    values = np.where(known, random.normal(100.0, 30.0, size=known.shape), 0.0)
    products, squares = np.full((count, count), np.nan), np.full((count, count), np.nan)
    _native.pair_products(values, known, products, squares)
    for i in range(count):
        for j in range(count):
            rows = np.flatnonzero(known[:, i] & known[:, j])
            own, other = (values[rows, column].tolist() for column in (i, j))
            mean_own, mean_other = (sum_in_order(part) / max(len(rows), 1) for part in (own, other))
            left, right = [value - mean_own for value in own], [value - mean_other for value in other]
            assert products[i, j] == sum_in_order(a * b for a, b in zip(left, right, strict=True))
            assert squares[i, j] == sum_in_order(a * a for a in left)
