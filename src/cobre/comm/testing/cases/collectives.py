"""The collectives: gathers, broadcasts, reductions in rank order, and a barrier that waits (clauses 1, 7 and 8)."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cobre.comm.backends.base import Backend
from cobre.comm.testing.case import Depth, Grid, Params, Value, case, needs_two_ranks
from cobre.comm.testing.inputs import (
    DTYPES,
    FEW,
    FLOATING,
    MIB,
    NUMERIC,
    ORDERED,
    around,
    combinations,
    fingerprint,
    payload,
    sentinel,
)
from cobre.comm.testing.oracle import PATTERNS, Layout, gathered
from cobre.comm.testing.steps import Broadcast, Gather, Reduce, Step


def step_case(identifier: str, clauses: tuple[int, ...], step: Callable[..., Step]) -> Callable[[Grid], Grid]:
    """Register a case that makes one call for each cell of the decorated grid, and compares it with its prediction."""
    seed = identifier.partition("/")[0]

    def run(comm: Backend, params: Params) -> Value:
        return fingerprint(step(seed, **params).perform(comm))

    def expect(params: Params, size: int) -> Sequence[Value]:
        return [fingerprint(step(seed, **params).predict(size))] * size

    def register(grid: Grid) -> Grid:
        run.__doc__ = grid.__doc__
        case(identifier, clauses, expect=expect, grid=grid)(run)
        return grid

    return register


@step_case("gather/layouts", (8,), Gather)
def layouts(_size: int, depth: Depth) -> Sequence[Params]:
    """Gather every dtype in every layout; gaps keep their sentinels."""
    if depth is Depth.FULL:
        return combinations(dtype=tuple(DTYPES), pattern=tuple(PATTERNS), elements=FEW)
    every_dtype = combinations(dtype=tuple(DTYPES), pattern=("scattered",), elements=(7,))
    return every_dtype + combinations(dtype=("float64",), pattern=tuple(PATTERNS), elements=FEW)


@step_case("gather/limits", (7, 8), Gather)
def gather_limits(_size: int, depth: Depth) -> Sequence[Params]:
    """Move payloads around the sizes at which a backend switches algorithms."""
    dtypes = ("int8", "float64", "bytes7") if depth is Depth.FULL else ("int8",)
    patterns = ("equal", "ragged", "one_large", "scattered") if depth is Depth.FULL else ("ragged",)
    return [
        params
        for dtype in dtypes
        for params in combinations(dtype=(dtype,), pattern=patterns, elements=tuple(around(dtype, depth)))
    ]


@step_case("gather/forms", (8,), Gather)
def gather_forms(_size: int, depth: Depth) -> Sequence[Params]:
    """Use matrices, buffers that are not arrays, and unaligned memory, and send in place."""
    elements = (1, 67, 20_001) if depth is Depth.FULL else (67,)
    shapes = combinations(
        dtype=("int16", "float64"),
        pattern=("equal", "scattered"),
        elements=elements,
        form=("matrix", "memoryview", "subclass"),
    )
    anywhere = combinations(
        dtype=("float64", "record", "longdouble"), pattern=("ragged",), elements=elements, form=("unaligned",)
    )
    in_place = combinations(
        dtype=("float32", "padded"), pattern=("ragged", "permuted", "scattered"), elements=elements, in_place=(True,)
    )
    return shapes + anywhere + in_place


@step_case("gather/large", (7,), Gather)
def gather_large(_size: int, depth: Depth) -> Sequence[Params]:
    """Move payloads that are larger than any bounded window."""
    elements = (3 * MIB + 5,) if depth is Depth.QUICK else (5 * MIB + 3, 24 * MIB + 1)
    return combinations(dtype=("uint8",), pattern=("ragged",), elements=elements)


def _expect_own_places(params: Params, size: int) -> Sequence[Value]:
    elements = params["elements"]
    parts = [payload("int16", elements, "own places", rank) for rank in range(size)]
    return [fingerprint(gathered("int16", _own_layout(elements, rank, size), parts)) for rank in range(size)]


def _own_layout(elements: int, rank: int, size: int) -> Layout:
    """Return a layout that is rotated and shifted by the rank."""
    displs = tuple(rank + elements * ((other + rank) % size) for other in range(size))
    return Layout((elements,) * size, displs, elements * size + size)


@case(
    "gather/own_places",
    (8,),
    expect=_expect_own_places,
    grid=lambda _size, _depth: combinations(elements=(1, 67, 50_000)),
)
def own_places(comm: Backend, params: Params) -> Value:
    """Receive into another layout on each rank: only the counts must be the same on all."""
    layout = _own_layout(params["elements"], comm.rank, comm.size)
    recv = sentinel("int16", layout.room)
    comm.allgatherv(payload("int16", params["elements"], "own places", comm.rank), recv, layout.counts, layout.displs)
    return fingerprint(recv)


@case(
    "gather/counts",
    (8,),
    expect=lambda _params, size: [list(range(size))] * size,
    grid=lambda _size, _depth: combinations(kind=("list", "tuple", "numpy")),
)
def counts(comm: Backend, params: Params) -> Value:
    """Pass counts and displacements as any sequence of integers."""
    kinds: dict[str, Callable[[Any], Any]] = {"list": list, "tuple": tuple, "numpy": np.array}
    sequence = kinds[params["kind"]]
    recv = np.full(comm.size, -1, np.int32)
    comm.allgatherv(np.array([comm.rank], np.int32), recv, sequence([1] * comm.size), sequence(range(comm.size)))
    return recv.tolist()


# `broadcast`: the root's bytes on every rank.


@step_case("broadcast/values", (8,), Broadcast)
def broadcast_values(size: int, depth: Depth) -> Sequence[Params]:
    """Broadcast every dtype from every root."""
    dtypes = tuple(DTYPES) if depth is Depth.FULL else ("bool", "float64", "bytes7", "padded")
    return combinations(dtype=dtypes, elements=FEW, root=tuple(range(size)))


@step_case("broadcast/limits", (7,), Broadcast)
def broadcast_limits(size: int, depth: Depth) -> Sequence[Params]:
    """Move payloads around the sizes at which a backend switches algorithms."""
    dtypes = ("int8", "float64", "bytes7") if depth is Depth.FULL else ("int8",)
    return [
        params
        for dtype in dtypes
        for params in combinations(dtype=(dtype,), elements=tuple(around(dtype, depth)), root=tuple({0, size - 1}))
    ]


@step_case("broadcast/forms", (8,), Broadcast)
def broadcast_forms(size: int, _depth: Depth) -> Sequence[Params]:
    """Use matrices, buffers that are not arrays, and unaligned memory."""
    forms = ("matrix", "memoryview", "subclass", "unaligned")
    return combinations(dtype=("float64",), elements=(0, 67), root=(size - 1,), form=forms)


@step_case("broadcast/large", (7,), Broadcast)
def broadcast_large(size: int, depth: Depth) -> Sequence[Params]:
    """Move payloads that are larger than any bounded window."""
    elements = (5 * MIB + 3,) if depth is Depth.QUICK else (9 * MIB + 7, 40 * MIB + 1)
    return combinations(dtype=("uint8",), elements=elements, root=(size // 2,))


# `allreduce`: the left fold in rank order, bit for bit (clause 8).


@step_case("reduce/values", (8,), Reduce)
def reduce_values(_size: int, depth: Depth) -> Sequence[Params]:
    """Reduce every dtype by every operation, in the dtype's own precision; integers wrap."""
    elements = (*FEW, 1000, 1025) if depth is Depth.FULL else (3, 67)
    sums = combinations(dtype=NUMERIC, op=("SUM",), elements=elements)
    return sums + combinations(dtype=ORDERED, op=("MIN", "MAX"), elements=elements)


@step_case("reduce/limits", (7, 8), Reduce)
def reduce_limits(_size: int, depth: Depth) -> Sequence[Params]:
    """Reduce payloads around the sizes at which a backend switches algorithms.

    The order per element must not change.
    """
    dtypes = ("int8", "float64", "float16", "longdouble", "complex64") if depth is Depth.FULL else ("int8", "float64")
    ops = {"int8": ("MIN", "SUM"), "float64": ("SUM", "MAX")}
    return [
        params
        for dtype in dtypes
        for params in combinations(dtype=(dtype,), op=ops.get(dtype, ("SUM",)), elements=tuple(around(dtype, depth)))
    ]


@step_case("reduce/special", (8,), Reduce)
def special(_size: int, _depth: Depth) -> Sequence[Params]:
    """Reduce NaNs of every kind, infinities, signed zeros, subnormals and the largest numbers, in all combinations."""
    return combinations(dtype=FLOATING, op=("SUM", "MIN", "MAX"), elements=(0,), special=(True,))


@step_case("reduce/in_place", (8,), Reduce)
def in_place(_size: int, depth: Depth) -> Sequence[Params]:
    """Reduce in place: send and receive buffer are the same."""
    elements = (1, 67, 40_000) if depth is Depth.QUICK else (1, 67, 40_000, MIB + 1)
    return combinations(dtype=("float32", "int64"), op=("SUM", "MAX"), elements=elements, in_place=(True,))


@step_case("reduce/large", (7,), Reduce)
def reduce_large(_size: int, depth: Depth) -> Sequence[Params]:
    """Move payloads that are larger than any bounded window."""
    elements = (MIB + 3,) if depth is Depth.QUICK else (2 * MIB + 3, 6 * MIB + 1)
    return combinations(dtype=("float32",), op=("SUM",), elements=elements)


# `barrier`: no rank leaves before all have entered.

LATE_S = 0.02
"""How late the late rank is, in seconds. A correct barrier passes with any value; a wrong one is detected by it."""


def timed_waits(comm: Backend, wait: Callable[[], None]) -> list[tuple[int, int]]:
    """Wait once for every rank that is late; the times of entering and leaving, in nanoseconds.

    All processes of a machine share the monotonic clock.
    """
    times = []
    for late in range(comm.size):
        synchronise(comm)
        if comm.rank == late:
            time.sleep(LATE_S)
        entered = time.monotonic_ns()
        wait()
        times.append((entered, time.monotonic_ns()))
    return times


def no_rank_left_early(_params: Params, values: Sequence[Value]) -> str:
    """Compare the times of all ranks, round by round."""
    for late, times in enumerate(zip(*values, strict=True)):
        last_in, first_out = max(entered for entered, _ in times), min(left for _, left in times)
        if first_out < last_in:
            return f"a rank left {(last_in - first_out) / 1e6:.3f} ms before the last entered; rank {late} was late"
    return ""


def synchronise(comm: Backend) -> None:
    """Make all ranks start together, by a call that is not the one under test."""
    comm.allreduce(np.zeros(1), np.zeros(1))


@case("barrier/no_rank_leaves_early", (1,), judge=no_rank_left_early, grid=needs_two_ranks)
def no_rank_leaves_early(comm: Backend, _params: Params) -> Value:
    """Make each rank late once; the others wait for it."""
    return timed_waits(comm, comm.barrier)


@case("barrier/many", (1,))
def many(comm: Backend, _params: Params) -> Value:
    """Make a thousand barriers in a row: no rank stays behind in an old generation."""
    before = comm.sequence
    for _ in range(1000):
        comm.barrier()
    return comm.sequence - before == 1000
