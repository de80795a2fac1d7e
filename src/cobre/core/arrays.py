"""Names of array types, sums whose bits are the same everywhere, and conversions between units.

Shapes differ: the comment on a field gives its axes, such as `S x N`.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]  # ids and indices that native code reads
Indices = NDArray[np.int64]  # indices into NumPy arrays; -1 usually means none
Flags = NDArray[np.bool_]
ByteFlags = NDArray[np.uint8]  # 0 or 1, one byte each: flags that native code reads


def sum_in_order(values: Iterable[float]) -> float:
    """Add numbers one after the other, in their order, and return a float.

    The built-in `sum` compensates rounding errors from Python 3.12 on: its bits depend on the version.
    """
    total = 0.0
    for value in values:
        total += value
    return total


def distinct_values(values: NDArray[Any]) -> NDArray[Any]:
    """Return the different values of an array, in ascending order.

    Not by `numpy.unique`: without further outputs it loads masked arrays, which takes 10 ms.
    """
    if values.dtype.kind in "iu" and np.can_cast(values.dtype, np.int64) and values.size:
        low, high = int(values.min()), int(values.max())
        if high - low <= values.size:  # ids and stages: no need to sort
            counts = np.bincount(values.reshape(-1).astype(np.int64) - low)
            return (np.flatnonzero(counts) + low).astype(values.dtype)
    ordered = np.sort(values, axis=None)
    is_first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]


def runs(values: NDArray[Any], starts: Sequence[int]) -> list[NDArray[Any]]:
    """Return the parts of an array that begin at `starts`, each up to the next one, as views.

    Not by `numpy.split`, which takes ten times as long: decks have hundreds of parts of a few elements.
    """
    return [values[start:end] for start, end in pairwise([*starts, len(values)])]


# Conversions between units.

HM3_PER_M3S_HOUR = 0.0036
HOURS_PER_DAY = 24.0
MONTHS_PER_YEAR = 12
MWH_PER_HM3 = 1e6 / 3600.0  # of a plant that makes 1 MW of 1 m3/s
