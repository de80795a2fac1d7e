"""Sobol points with a random linear scrambling x -> a x + b (mod 2^32), as standard normals.

Direction numbers are those of Joe and Kuo. Checked bit for bit against openings that the Rust program wrote.
"""

from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from cobre.core.arrays import Floats, Indices
from cobre.core.case_file_names import STAGES_FILE
from cobre.stochastic.errors import NoiseModelError
from cobre.stochastic.random.pcg64 import Pcg64Sequence
from cobre.stochastic.random.quantile import norm_quantile
from cobre.stochastic.random.seeds import stage_seeds

_BITS = 32
_LOW_32 = np.uint64(0xFFFFFFFF)


def sobol(seed: int, stage_id: int, count: int, dimension: int) -> Floats:
    """Standard normals (opening, entity) of a stage."""
    return sobol_points(int(stage_seeds(seed, stage_id)[0]), np.arange(count), dimension)


def sobol_points(seed: int, numbers: Indices, dimension: int) -> Floats:
    """The points with these numbers, in the order of the Gray code, scrambled by `seed`."""
    factors, offsets = _scrambling(seed, dimension)
    gray = numbers ^ (numbers >> 1)
    values = np.empty((len(numbers), dimension))
    for column in range(dimension):
        points = _combine(_directions(column), gray)
        scrambled = (points * factors[column] + offsets[column]) & _LOW_32
        values[:, column] = norm_quantile(_as_probabilities(scrambled))
    return values


def gray_rank(numbers: Indices) -> Indices:
    """Positions in the Gray-code order of the points with these numbers."""
    rank, shift = numbers, 1
    while shift < _BITS:
        rank = rank ^ (rank >> shift)
        shift *= 2
    return rank


def _scrambling(seed: int, dimension: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """An odd factor and an offset per dimension."""
    drawn = Pcg64Sequence(seed).next_u64(2 * dimension) & _LOW_32
    return drawn[0::2] | np.uint64(1), drawn[1::2]


def _combine(directions: NDArray[np.uint64], gray: Indices) -> NDArray[np.uint64]:
    points = np.zeros(len(gray), dtype=np.uint64)
    for bit in range(int(gray.max(initial=0)).bit_length()):
        points ^= np.where((gray >> bit) & 1, directions[bit], np.uint64(0))
    return points


def _as_probabilities(points: NDArray[np.uint64]) -> Floats:
    return points.astype(np.float64) / 2.0**_BITS


@cache
def _directions(column: int) -> NDArray[np.uint64]:
    """The 32 direction numbers of a dimension, counted from 0."""
    if column == 0:
        return np.array([1 << (_BITS - 1 - bit) for bit in range(_BITS)], dtype=np.uint64)
    table = _table()
    if column > len(table):
        raise NoiseModelError(
            STAGES_FILE,
            "sampling_method",
            f"qmc_sobol supports {len(table) + 1} random entities at most; use lhs or saa",
        )
    polynomial, initial = table[column - 1]
    return np.array(_extend(polynomial, initial), dtype=np.uint64)


def _extend(polynomial: int, initial: tuple[int, ...]) -> list[int]:
    """Direction numbers by the recurrence of a primitive polynomial."""
    degree = len(initial)
    numbers = [m << (_BITS - 1 - bit) for bit, m in enumerate(initial)]
    for bit in range(degree, _BITS):
        number = numbers[bit - degree] ^ (numbers[bit - degree] >> degree)
        for back in range(1, degree):
            if (polynomial >> (degree - back)) & 1:
                number ^= numbers[bit - back]
        numbers.append(number)
    return numbers


@cache
def _table() -> tuple[tuple[int, tuple[int, ...]], ...]:
    text = files("cobre.stochastic.random").joinpath("sobol_directions.txt").read_text(encoding="ascii")
    rows = [[int(word) for word in line.split()] for line in text.splitlines() if not line.startswith("#")]
    return tuple((row[0], tuple(row[1:])) for row in rows)
