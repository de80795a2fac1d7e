"""Uniform choices: one of n, without bias, with the bits of Rust's `random_range`."""

import numpy as np
from numpy.typing import NDArray

from cobre.core.arrays import Indices
from cobre.stochastic.random.pcg64 import Pcg64Streams
from cobre.stochastic.random.siphash import Words

_LOW_32 = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)


def choose(streams: Pcg64Streams, count: int) -> Indices:
    """A number in 0..count from each stream.

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
