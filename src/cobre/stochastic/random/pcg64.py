"""PCG64 (XSL-RR, 128/64) generators, many at a time: each element of the arrays is a generator of its own.

The bits are those of Rust's `rand_pcg::Pcg64::seed_from_u64`. NumPy has this generator too, but one object per stream;
thousands of short streams are faster as arrays of their 128-bit states, held as two words each.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cobre._native import draw_normals, seed_streams
from cobre.core.arrays import Floats, Indices
from cobre.stochastic.random.seeds import Words

_MULTIPLIER_HIGH = np.uint64(0x2360ED051FC65DA4)
_MULTIPLIER_LOW = np.uint64(0x4385DF649FCCF645)
_LOW_32 = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_63 = np.uint64(63)


class Wide(NamedTuple):
    """128-bit numbers as pairs of 64-bit words."""

    high: Words
    low: Words


class Pcg64Streams:
    """One generator per seed; every draw names the streams that advance. Native code advances `state` in place."""

    def __init__(self, seeds: Words) -> None:
        self.state, self.increment = _seeded(np.atleast_1d(seeds))

    @property
    def count(self) -> int:
        """The number of generators."""
        return len(self.state.low)

    def next_u64(self, streams: NDArray[np.intp] | None = None) -> Words:
        """Return the next 64 bits of all streams, or of those that are named."""
        if streams is None:
            self.state = _step(self.state, self.increment)
            return _output(self.state)
        increment = Wide(self.increment.high[streams], self.increment.low[streams])
        state = _step(Wide(self.state.high[streams], self.state.low[streams]), increment)
        self.state.high[streams] = state.high
        self.state.low[streams] = state.low
        return _output(state)

    def next_range_unit(self) -> Floats:
        """Draw numbers in [0, 1) as Rust draws them from a range of floats: multiples of 2^-52."""
        return _range_unit(self.next_u64())

    def next_unit(self, streams: NDArray[np.intp] | None = None) -> Floats:
        """Return the next numbers in [0, 1), multiples of 2^-53."""
        return (self.next_u64(streams) >> np.uint64(11)).astype(np.float64) * 2.0**-53


class Pcg64Sequence:
    """A single generator with the same bits, for long runs of draws; NumPy's own, with its state set by hand."""

    def __init__(self, seed: int) -> None:
        state, increment = (int(high[0]) << 64 | int(low[0]) for high, low in _seeded(np.array([seed], np.uint64)))
        self._bits = np.random.PCG64(0)
        self._bits.state = {
            "bit_generator": "PCG64",
            "state": {"state": state, "inc": increment},
            "has_uint32": 0,
            "uinteger": 0,
        }

    def next_u64(self, count: int) -> Words:
        """Return the next `count` 64-bit words."""
        return self._bits.random_raw(count)

    def next_range_unit(self, count: int) -> Floats:
        """Draw numbers in [0, 1) as Rust draws them from a range of floats: multiples of 2^-52."""
        return _range_unit(self.next_u64(count))

    def choices(self, counts: Indices) -> list[int]:
        """Draw for each count a number in 0..count, as `selection.choose` gives it."""
        before = self._bits.state
        products = (self.next_u64(len(counts)) & _LOW_32) * counts.astype(np.uint64)
        if ((products & _LOW_32) <= np.uint64(2**32) - counts.astype(np.uint64)).all():
            chosen: list[int] = (products >> _32).tolist()
            return chosen
        # Some draw needs more bits: go back and take them one by one.
        self._bits.state = before
        return [self._choose(int(count)) for count in counts]

    def _choose(self, count: int) -> int:
        product = (int(self._bits.random_raw()) & 0xFFFFFFFF) * count
        low = product & 0xFFFFFFFF
        if low <= 2**32 - count:
            return product >> 32
        more = ((int(self._bits.random_raw()) & 0xFFFFFFFF) * count) >> 32
        return (product >> 32) + ((low + more) >> 32)


def _range_unit(bits: Words) -> Floats:
    return (bits >> np.uint64(12)).astype(np.float64) * 2.0**-52


def _seeded(seeds: Words) -> tuple[Wide, Wide]:
    """Return the first states of generators, and their increments."""
    state, increment = (Wide(np.empty_like(seeds), np.empty_like(seeds)) for _ in range(2))
    seed_streams(np.ascontiguousarray(seeds), *state, *increment)
    return state, increment


def _step(state: Wide, increment: Wide) -> Wide:
    high, low = _multiply_low(state.low)
    high = high + state.high * _MULTIPLIER_LOW + state.low * _MULTIPLIER_HIGH
    return _add(Wide(high, low), increment)


def _multiply_low(low: Words) -> Wide:
    """Return the full product of `low` and the low word of the multiplier, from 32-bit halves."""
    a1, a0 = low >> _32, low & _LOW_32
    b1, b0 = _MULTIPLIER_LOW >> _32, _MULTIPLIER_LOW & _LOW_32
    middle = a1 * b0 + ((a0 * b0) >> _32)
    other = a0 * b1 + (middle & _LOW_32)
    return Wide(a1 * b1 + (middle >> _32) + (other >> _32), low * _MULTIPLIER_LOW)


def _add(left: Wide, right: Wide) -> Wide:
    low = left.low + right.low
    carry = (low < left.low).astype(np.uint64)
    return Wide(left.high + right.high + carry, low)


def _output(state: Wide) -> Words:
    folded = state.high ^ state.low
    turn = state.high >> np.uint64(58)
    back: Words = (np.uint64(64) - turn) & _63
    turned: Words = (folded >> turn) | (folded << back)
    return turned


# Standard normal numbers by the ziggurat method: the bits of Rust's `rand_distr::StandardNormal` over PCG64.
#
# The tables follow from two constants, computed once. The published tables are rounded to 18 decimals, so ours are
# too. About one draw in a hundred leaves the fast path and needs an exponential or a logarithm. Those come from the C
# library, one at a time, in native code as in `math`: NumPy's versions differ between processors.

_LAYERS = 256
TAIL_START = 3.654152885361009

# The area of a layer. Fewer digits than a float has: the published tables were made with exactly this number.
_LAYER_AREA = 0.00492867323399


def standard_normals(streams: Pcg64Streams, dimension: int) -> Floats:
    """Draw `dimension` numbers from each stream, as rows."""
    values = np.empty((streams.count, dimension))
    widths, heights = ziggurat_tables()
    state, increment = streams.state, streams.increment
    draw_normals(state.high, state.low, increment.high, increment.low, widths, heights, TAIL_START, values)
    return values


def _density(x: float) -> float:
    return math.exp(-x * x / 2.0)


@cache
def ziggurat_tables() -> tuple[Floats, Floats]:
    """Return widths of the layers from the widest on, and the density at each."""
    widths = [_LAYER_AREA / _density(TAIL_START), TAIL_START]
    while len(widths) < _LAYERS:
        last = widths[-1]
        widths.append(math.sqrt(-2.0 * math.log(_LAYER_AREA / last + _density(last))))
    widths.append(0.0)
    heights = [_density(width) for width in widths]
    return _rounded(widths), _rounded(heights)


def _rounded(values: list[float]) -> Floats:
    return np.array([float(f"{value:.18f}") for value in values])


# The inverse of the standard normal distribution, by Beasley, Springer and Moro: not exact, good to 3e-9.
#
# The Rust program uses this approximation, so the openings of Latin hypercubes, Sobol and Halton points need it too.
# Its sixth tail coefficient ends in 349 where Moro's paper has 919; its openings show that, and ours must be the
# same. Probabilities next to 0 and 1 are cut off at 8.21 standard deviations, as there.

_NUMERATOR = (2.50662823884, -18.61500062529, 41.39119773534, -25.44106049637)
_DENOMINATOR = (1.0, -8.47351093090, 23.08336743743, -21.06224101826, 3.13082909833)

_TAIL = (
    0.3374754822726147,
    0.9761690190917186,
    0.1607979714918209,
    0.0276438810333863,
    0.0038405729373609,
    0.0003951896511349,
    0.0000321767881768,
    0.0000002888167364,
    0.0000003960315187,
)

_CENTRE = 0.42
_MIN_PROBABILITY = 1e-20
_MAX_QUANTILE = 8.21


def norm_quantile(probabilities: Floats) -> Floats:
    """Return the numbers below which a standard normal falls with these probabilities, strictly between 0 and 1."""
    centred = probabilities - 0.5
    squared = centred * centred
    result: Floats = centred * _polynomial(_NUMERATOR, squared) / _polynomial(_DENOMINATOR, squared)
    flat, weights = result.ravel(), probabilities.ravel()
    for index in np.flatnonzero(np.abs(centred.ravel()) >= _CENTRE):
        flat[index] = _tail(float(weights[index]))
    return flat.reshape(probabilities.shape)


def _polynomial(coefficients: tuple[float, ...], x: Floats) -> Floats:
    total: Floats = np.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def _tail(probability: float) -> float:
    """Return the quantile of one probability with the C library's logarithm: NumPy's differs between processors."""
    nearer_end = min(probability, 1.0 - probability)
    if nearer_end <= _MIN_PROBABILITY:
        return math.copysign(_MAX_QUANTILE, probability - 0.5)
    x = math.log(-math.log(nearer_end))
    total = _TAIL[-1]
    for coefficient in reversed(_TAIL[:-1]):
        total = total * x + coefficient
    return total if probability > 0.5 else -total
