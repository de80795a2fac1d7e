"""Payload sizes: around every limit at which a backend may switch algorithms."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from cobre.comm.testing.case import Depth
from cobre.comm.testing.inputs import DTYPES

KIB = 1024
MIB = 1024 * KIB

# Inline slots, frames and chunks of the backends lie at powers of two between these.
LIMITS_BYTES: Mapping[Depth, Sequence[int]] = {
    Depth.QUICK: (4 * KIB, 64 * KIB, 256 * KIB, MIB),
    Depth.FULL: (
        256,
        KIB,
        4 * KIB,
        8 * KIB,
        16 * KIB,
        *(limit * KIB for limit in (32, 64, 128, 256, 512)),
        MIB,
        2 * MIB,
        4 * MIB,
    ),
}
FEW = (0, 1, 3, 67)


def around(dtype: str, depth: Depth) -> Iterator[int]:
    """Numbers of elements one below, at and one above each limit."""
    for limit in LIMITS_BYTES[depth]:
        elements = limit // DTYPES[dtype].itemsize
        yield from (elements - 1, elements, elements + 1)


def combinations(**axes: Sequence[Any]) -> list[dict[str, Any]]:
    """Every combination of the values on the axes."""
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
