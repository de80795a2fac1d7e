"""Draw points by Halton and Sobol sequences, Latin hypercubes and selection."""

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from cobre.core.arrays import Floats, Indices
from cobre.core.file_names import STAGES_FILE
from cobre.stochastic import NoiseModelError
from cobre.stochastic.random.pcg64 import Pcg64Sequence, Pcg64Streams, norm_quantile
from cobre.stochastic.random.seeds import Words, stage_seeds

# Halton points with scrambled digits, as standard normals.
#
# Every digit of every dimension is permuted at random, the endless zeros behind the last digit too (as far as a float
# can tell). cobre-python keeps those zeros: its first opening is then the corner of the cube, 8.21
# deviations below the mean in all dimensions, and others coincide with it. So these points are not those of the Rust
# program, on purpose.

_MANTISSA_BITS = 53


def halton(seed: int, stage_id: int, count: int, dimension: int) -> Floats:
    """Draw standard normals (opening, entity) of a stage."""
    return halton_points(int(stage_seeds(seed, stage_id)[0]), np.arange(count), dimension)


def halton_points(seed: int, numbers: Indices, dimension: int) -> Floats:
    """Return the points with these numbers, scrambled by `seed`."""
    stream = Pcg64Sequence(seed)
    values = np.empty((len(numbers), dimension))
    for column, base in enumerate(first_primes(dimension)):
        values[:, column] = norm_quantile(_scrambled_inverse(stream, numbers, base))
    return values


def _scrambled_inverse(stream: Pcg64Sequence, numbers: Indices, base: int) -> Floats:
    """Reverse the digits of each number behind the point, each sent through a permutation of its own."""
    total, weight, rest = np.zeros(len(numbers)), 1.0, numbers
    for _ in range(math.ceil(_MANTISSA_BITS / math.log2(base))):
        weight = weight / base
        permutation = np.argsort(stream.next_u64(base), kind="stable")
        total = total + permutation[rest % base] * weight
        rest = rest // base
    # Half of the last digit keeps the points inside (0, 1).
    return np.clip(total + 0.5 * weight, 2.0**-_MANTISSA_BITS, 1.0 - 2.0**-_MANTISSA_BITS)


def first_primes(count: int) -> list[int]:
    """Return the first `count` primes, the bases of the Halton sequence."""
    primes: list[int] = []
    candidate = 2
    while len(primes) < count:
        if all(candidate % prime for prime in primes if prime * prime <= candidate):
            primes.append(candidate)
        candidate += 1
    return primes


# Sobol points with a random linear scrambling x -> a x + b (mod 2^32), as standard normals.
#
# Direction numbers are those of Joe and Kuo. Checked bit for bit against openings that the Rust program wrote.

_BITS = 32
_LOW_32 = np.uint64(0xFFFFFFFF)


def sobol(seed: int, stage_id: int, count: int, dimension: int) -> Floats:
    """Draw standard normals (opening, entity) of a stage."""
    return sobol_points(int(stage_seeds(seed, stage_id)[0]), np.arange(count), dimension)


def sobol_points(seed: int, numbers: Indices, dimension: int) -> Floats:
    """Return the points with these numbers, in the order of the Gray code, scrambled by `seed`."""
    factors, offsets = _scrambling(seed, dimension)
    gray = numbers ^ (numbers >> 1)
    values = np.empty((len(numbers), dimension))
    for column in range(dimension):
        points = _combine(_directions(column), gray)
        scrambled = (points * factors[column] + offsets[column]) & _LOW_32
        values[:, column] = norm_quantile(scrambled.astype(np.float64) / 2.0**_BITS)
    return values


def gray_rank(numbers: Indices) -> Indices:
    """Return positions in the Gray-code order of the points with these numbers."""
    rank, shift = numbers, 1
    while shift < _BITS:
        rank = rank ^ (rank >> shift)
        shift *= 2
    return rank


def _scrambling(seed: int, dimension: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Draw an odd factor and an offset for each dimension."""
    words = Pcg64Sequence(seed).next_u64(2 * dimension) & _LOW_32
    return words[0::2] | np.uint64(1), words[1::2]


def _combine(directions: NDArray[np.uint64], gray: Indices) -> NDArray[np.uint64]:
    points = np.zeros(len(gray), dtype=np.uint64)
    for bit in range(int(gray.max(initial=0)).bit_length()):
        points ^= np.where((gray >> bit) & 1, directions[bit], np.uint64(0))
    return points


@cache
def _directions(column: int) -> NDArray[np.uint64]:
    """Return the 32 direction numbers of a dimension, counted from 0."""
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
    """Extend direction numbers by the recurrence of a primitive polynomial."""
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
    from importlib.resources import files  # noqa: PLC0415  (studies without Sobol points do without)

    text = files("cobre.stochastic.random").joinpath("sobol_directions.txt").read_text(encoding="ascii")
    rows = [[int(word) for word in line.split()] for line in text.splitlines() if not line.startswith("#")]
    return tuple((row[0], tuple(row[1:])) for row in rows)


# Latin hypercube openings: in every dimension each of n equally likely intervals is hit exactly once.
#
# Checked bit for bit against openings that the Rust program wrote.


def latin_hypercube(seed: int, stage_id: int, count: int, dimension: int) -> Floats:
    """Draw standard normals (opening, entity) of a stage."""
    stream = Pcg64Sequence(int(stage_seeds(seed, stage_id)[0]))
    values = np.empty((count, dimension))
    for column in range(dimension):
        points = (np.arange(count) + stream.next_range_unit(count)) / count
        values[shuffled(stream, count), column] = norm_quantile(points)
    return values


def shuffled(stream: Pcg64Sequence, count: int) -> Indices:
    """Draw an order of 0..count: exchange each entry, from the last on, with one at or before it."""
    order = list(range(count))
    others = stream.choices(np.arange(count, 1, -1))
    for last, other in zip(range(count - 1, 0, -1), others, strict=True):
        order[last], order[other] = order[other], order[last]
    return np.array(order, dtype=np.int64)


# Uniform choices: one of n, without bias, with the bits of Rust's `random_range`.

_32 = np.uint64(32)


def choose(streams: Pcg64Streams, count: int) -> Indices:
    """Draw a number in 0..count from each stream.

    32 random bits times `count`: the high half is the choice. Where the low half leaves doubt, 32 more bits
    decide whether it should have carried.
    """
    product = (streams.next_u64() & _LOW_32) * np.uint64(count)
    chosen, low = product >> _32, product & _LOW_32
    doubtful = np.flatnonzero(low > np.uint64(2**32 - count))
    if len(doubtful):
        chosen[doubtful] += _carries(streams, doubtful, low[doubtful], count)
    return chosen.astype(np.int64)


def _carries(streams: Pcg64Streams, doubtful: NDArray[np.intp], low: Words, count: int) -> Words:
    more = ((streams.next_u64(doubtful) & _LOW_32) * np.uint64(count)) >> _32
    return (low + more) >> _32
