"""Expected results, computed with NumPy and without any communicator."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from cobre.comm.testing import inputs
from cobre.comm.types import Array, ReduceOp


@dataclass(frozen=True, slots=True)
class Layout:
    """Layout of a gather. displs: None if the call leaves it out (packed). room: length of the buffer."""

    counts: tuple[int, ...]
    displs: tuple[int, ...] | None
    room: int

    @property
    def starts(self) -> tuple[int, ...]:
        """The displacements, also if the call leaves them out."""
        return (0, *accumulate(self.counts[:-1])) if self.displs is None else self.displs


def layout(pattern: str, elements: int, size: int) -> Layout:
    """Return the named layout, with at most `elements` from one rank."""
    return PATTERNS[pattern](elements, size)


def gathered(dtype: str, arrangement: Layout, contributions: Sequence[Array]) -> Array:
    """Return the receive buffer after `allgatherv`: every rank's data in its place, the sentinel everywhere else."""
    result = inputs.sentinel(dtype, arrangement.room)
    for start, data in zip(arrangement.starts, contributions, strict=True):
        if data.size:  # the place of an empty contribution may be anywhere
            inputs.raw(result[start : start + data.size])[:] = inputs.raw(data)
    return result


def fold(contributions: Sequence[Array], op: ReduceOp) -> Array:
    """Fold from the left in rank order (clause 8)."""
    first = contributions[0].copy()
    if first.dtype.kind == "c":
        parts = [data.view(data.real.dtype) for data in contributions]
        return fold(parts, op).view(first.dtype)
    return _fold_reals(first, contributions[1:], op)


def _fold_reals(result: Array, others: Sequence[Array], op: ReduceOp) -> Array:
    combine = COMBINE[op]
    nan_mask = np.isnan(result) if result.dtype.kind == "f" else None
    with np.errstate(all="ignore"):
        for data in others:
            result = combine(result, data)
            if nan_mask is not None:
                nan_mask |= np.isnan(result) | np.isnan(data)
    if nan_mask is not None:
        result[nan_mask] = np.array(np.nan, result.dtype)
    return result


def _smaller(first: Array, second: Array) -> Array:
    if first.dtype.kind == "f":
        return np.where((first < second) | ((first == second) & np.signbit(first)), first, second)
    return np.minimum(first, second)


def _larger(first: Array, second: Array) -> Array:
    if first.dtype.kind == "f":
        return np.where((first > second) | ((first == second) & ~np.signbit(first)), first, second)
    return np.maximum(first, second)


COMBINE: dict[ReduceOp, Callable[[Array, Array], Array]] = {
    ReduceOp.SUM: np.add,
    ReduceOp.MIN: _smaller,
    ReduceOp.MAX: _larger,
}


def _equal(elements: int, size: int) -> Layout:
    return Layout((elements,) * size, None, elements * size)


def _ragged_counts(elements: int, size: int) -> tuple[int, ...]:
    return tuple(elements * (rank + 1) // size for rank in range(size))


def _ragged(elements: int, size: int) -> Layout:
    counts = _ragged_counts(elements, size)
    return Layout(counts, None, sum(counts) + 3)


def _one_large(elements: int, size: int) -> Layout:
    counts = tuple(elements if rank == size // 2 else min(1, elements) for rank in range(size))
    return Layout(counts, None, sum(counts))


def _one_empty(elements: int, size: int) -> Layout:
    counts = tuple(0 if rank == size // 2 else elements for rank in range(size))
    return Layout(counts, None, sum(counts) + 1)


def _all_empty(_elements: int, size: int) -> Layout:
    return Layout((0,) * size, None, 2)


def _gaps(elements: int, size: int) -> Layout:
    displs = tuple(2 + rank * (elements + 3) for rank in range(size))
    return Layout((elements,) * size, displs, displs[-1] + elements + 3)


def _permuted(elements: int, size: int) -> Layout:
    counts = _ragged_counts(elements, size)
    order = [*range(1, size, 2), *reversed(range(0, size, 2))]
    return Layout(counts, _displacements(counts, order, gap=0), sum(counts))


def _scattered(elements: int, size: int) -> Layout:
    """Return a permuted layout with gaps, and an empty contribution whose place is outside the buffer."""
    counts = tuple(0 if rank == 1 else count for rank, count in enumerate(_ragged_counts(elements, size)))
    starts = _displacements(counts, list(reversed(range(size))), gap=2)
    room = max(start + count for start, count in zip(starts, counts, strict=True)) + 2
    return Layout(
        counts, tuple(start if count else room + 9 for start, count in zip(starts, counts, strict=True)), room
    )


def _displacements(counts: Sequence[int], order: Sequence[int], gap: int) -> tuple[int, ...]:
    starts = {order[0]: gap}
    for before, rank in pairwise(order):
        starts[rank] = starts[before] + counts[before] + gap
    return tuple(starts[rank] for rank in range(len(counts)))


PATTERNS: dict[str, Callable[[int, int], Layout]] = {
    "equal": _equal,
    "ragged": _ragged,
    "one_large": _one_large,
    "one_empty": _one_empty,
    "all_empty": _all_empty,
    "gaps": _gaps,
    "permuted": _permuted,
    "scattered": _scattered,
}
