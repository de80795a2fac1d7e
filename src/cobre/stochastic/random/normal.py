"""Standard normal numbers by the ziggurat method: the bits of Rust's `rand_distr::StandardNormal` over PCG64.

The tables follow from two constants, computed once. The published tables are rounded to 18 decimals, so ours are too.
About one draw in a hundred leaves the fast path and needs an exponential or a logarithm. Those come from the C
library through `math`, one at a time: NumPy's versions differ between processors.
"""

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from cobre.core.arrays import Flags, Floats
from cobre.stochastic.random.pcg64 import Pcg64Streams
from cobre.stochastic.random.siphash import Words

_LAYERS = 256
_TAIL_START = 3.654152885361009
# The area of a layer. Fewer digits than a float has: the published tables were made with exactly this number.
_LAYER_AREA = 0.00492867323399
_MANTISSA_OF_2_TO_4 = np.uint64(0x4000000000000000)


def standard_normals(streams: Pcg64Streams, dimension: int) -> Floats:
    """`dimension` numbers from each stream, as rows."""
    values = np.empty((streams.count, dimension))
    for column in range(dimension):
        values[:, column] = _one_each(streams)
    return values


def _one_each(streams: Pcg64Streams) -> Floats:
    result = np.empty(streams.count)
    pending = np.arange(streams.count)
    bits = streams.next_u64()
    while True:
        refused = _fill(streams, pending, bits, result)
        if not len(refused):
            return result
        pending = refused
        bits = streams.next_u64(pending)


def _fill(streams: Pcg64Streams, pending: NDArray[np.intp], bits: Words, result: Floats) -> NDArray[np.intp]:
    """Accept what can be accepted; return the streams that must draw again."""
    widths, _ = _tables()
    layers = (bits & np.uint64(0xFF)).astype(np.intp)
    unit = _between_minus_one_and_one(bits)
    values = unit * widths[layers]
    accepted = np.abs(values) < widths[layers + 1]
    outside = np.flatnonzero(~accepted)
    for index in outside[layers[outside] == 0]:
        values[index] = _tail(streams, pending[index : index + 1], float(unit[index]))
        accepted[index] = True
    edge = outside[layers[outside] > 0]
    accepted[edge] = _is_below_density(streams, pending[edge], layers[edge], values[edge])
    result[pending[accepted]] = values[accepted]
    return pending[~accepted]


def _between_minus_one_and_one(bits: Words) -> Floats:
    """The top 52 bits as the mantissa of a number in [2, 4), minus 3."""
    return ((bits >> np.uint64(12)) | _MANTISSA_OF_2_TO_4).view(np.float64) - 3.0


def _is_below_density(
    streams: Pcg64Streams, drawing: NDArray[np.intp], layers: NDArray[np.intp], values: Floats
) -> Flags:
    """Whether a random height within the layer lies under the curve at each value."""
    if not len(drawing):
        return np.zeros(0, dtype=np.bool_)
    _, heights = _tables()
    threshold = heights[layers + 1] + (heights[layers] - heights[layers + 1]) * streams.next_unit(drawing)
    return threshold < np.array([_density(value) for value in values.tolist()])


def _tail(streams: Pcg64Streams, stream: NDArray[np.intp], unit: float) -> float:
    x, y = 1.0, 0.0
    while -2.0 * y < x * x:
        x = math.log(_open_unit(streams, stream)) / _TAIL_START
        y = math.log(_open_unit(streams, stream))
    return x - _TAIL_START if unit < 0.0 else _TAIL_START - x


def _open_unit(streams: Pcg64Streams, stream: NDArray[np.intp]) -> float:
    """A number strictly between 0 and 1: odd multiples of 2^-53."""
    return (2 * int(streams.next_u64(stream)[0] >> np.uint64(12)) + 1) * 2.0**-53


def _density(x: float) -> float:
    return math.exp(-x * x / 2.0)


@cache
def _tables() -> tuple[Floats, Floats]:
    """Widths of the layers from the widest on, and the density at each."""
    widths = [_LAYER_AREA / _density(_TAIL_START), _TAIL_START]
    while len(widths) < _LAYERS:
        last = widths[-1]
        widths.append(math.sqrt(-2.0 * math.log(_LAYER_AREA / last + _density(last))))
    widths.append(0.0)
    heights = [_density(width) for width in widths]
    return _rounded(widths), _rounded(heights)


def _rounded(values: list[float]) -> Floats:
    return np.array([float(f"{value:.18f}") for value in values])
