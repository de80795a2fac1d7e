"""Standard normal numbers by the ziggurat method: the bits of Rust's `rand_distr::StandardNormal` over PCG64.

The tables follow from two constants, computed once. The published tables are rounded to 18 decimals, so ours are too.
About one draw in a hundred leaves the fast path and needs an exponential or a logarithm. Those come from the C
library, one at a time, in native code as in `math`: NumPy's versions differ between processors.
"""

import math
from functools import cache

import numpy as np

from cobre._native import draw_normals
from cobre.core.arrays import Floats
from cobre.stochastic.random.pcg64 import Pcg64Streams

_LAYERS = 256
_TAIL_START = 3.654152885361009
# The area of a layer. Fewer digits than a float has: the published tables were made with exactly this number.
_LAYER_AREA = 0.00492867323399


def standard_normals(streams: Pcg64Streams, dimension: int) -> Floats:
    """`dimension` numbers from each stream, as rows."""
    values = np.empty((streams.count, dimension))
    widths, heights = _tables()
    state, increment = streams.state, streams.increment
    draw_normals(state.high, state.low, increment.high, increment.low, widths, heights, _TAIL_START, values)
    return values


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
