"""Standard normal numbers by the ziggurat method: the bits of Rust's `rand_distr::StandardNormal` over PCG64.

The tables follow from two constants, computed once. The published tables are rounded to 18 decimals, so ours are too.
About one draw in a hundred leaves the fast path and needs an exponential or a logarithm. Those come from the C
library through `math`, one at a time: NumPy's versions differ between processors.
"""

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from cobre.stochastic.pcg64 import Pcg64Streams
from cobre.stochastic.siphash import Words

_LAYERS = 256
_TAIL_START = 3.654152885361009
# The area of a layer. Fewer digits than a float has: the published tables were made with exactly this number.
_LAYER_AREA = 0.00492867323399
_MANTISSA_OF_2_TO_4 = np.uint64(0x4000000000000000)

Floats = NDArray[np.float64]


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
    widths = _tables()[0]
    layers = (bits & np.uint64(0xFF)).astype(np.intp)
    unit = _between_minus_one_and_one(bits)
    values = unit * widths[layers]
    inside = np.abs(values) < widths[layers + 1]
    result[pending[inside]] = values[inside]
    refused = []
    for i in np.flatnonzero(~inside):
        value = _at_the_edge(streams, pending[i : i + 1], int(layers[i]), float(unit[i]), float(values[i]))
        if value is None:
            refused.append(pending[i])
        else:
            result[pending[i]] = value
    return np.asarray(refused, dtype=np.intp)


def _between_minus_one_and_one(bits: Words) -> Floats:
    """The top 52 bits as the mantissa of a number in [2, 4), minus 3."""
    return ((bits >> np.uint64(12)) | _MANTISSA_OF_2_TO_4).view(np.float64) - 3.0


def _at_the_edge(
    streams: Pcg64Streams, stream: NDArray[np.intp], layer: int, unit: float, value: float
) -> float | None:
    """A draw outside the rectangle of its layer: from the tail, or accepted with a probability."""
    if layer == 0:
        return _tail(streams, stream, unit)
    heights = _tables()[1]
    below, above = float(heights[layer]), float(heights[layer + 1])
    threshold = above + (below - above) * float(streams.next_unit(stream)[0])
    return value if threshold < _density(value) else None


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
