"""Latin hypercube openings: in every dimension each of n equally likely intervals is hit exactly once.

Checked bit for bit against openings that the Rust program wrote.
"""

import numpy as np

from cobre.core.arrays import Floats, Indices
from cobre.stochastic.random.pcg64 import Pcg64Sequence
from cobre.stochastic.random.quantile import norm_quantile
from cobre.stochastic.random.seeds import stage_seeds


def latin_hypercube(seed: int, stage_id: int, count: int, dimension: int) -> Floats:
    """Standard normals (opening, entity) of a stage."""
    stream = Pcg64Sequence(int(stage_seeds(seed, stage_id)[0]))
    values = np.empty((count, dimension))
    for column in range(dimension):
        points = (np.arange(count) + stream.next_range_unit(count)) / count
        values[shuffled(stream, count), column] = norm_quantile(points)
    return values


def shuffled(stream: Pcg64Sequence, count: int) -> Indices:
    """A random order of 0..count, by exchanging each entry, from the last, with one at or before it."""
    order = list(range(count))
    others = stream.choices(np.arange(count, 1, -1))
    for last, other in zip(range(count - 1, 0, -1), others, strict=True):
        order[last], order[other] = order[other], order[last]
    return np.array(order, dtype=np.int64)
