"""`allgatherv`: every rank's data in its place, nothing written elsewhere (clauses 7 and 8)."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cobre.comm.backends.base import Backend
from cobre.comm.testing.case import Depth, Params, Value, case
from cobre.comm.testing.inputs import DTYPES, FEW, MIB, around, combinations, fingerprint, payload, sentinel
from cobre.comm.testing.oracle import PATTERNS, Layout, gathered
from cobre.comm.testing.steps import Gather

SEED = "gather"


def _expect(params: Params, size: int) -> Sequence[Value]:
    return [fingerprint(Gather(SEED, **params).predict(size))] * size


def _layout_grid(_size: int, depth: Depth) -> Sequence[Params]:
    if depth is Depth.FULL:
        return combinations(dtype=tuple(DTYPES), pattern=tuple(PATTERNS), elements=FEW)
    every_dtype = combinations(dtype=tuple(DTYPES), pattern=("scattered",), elements=(7,))
    return every_dtype + combinations(dtype=("float64",), pattern=tuple(PATTERNS), elements=FEW)


@case("gather/layouts", (8,), expect=_expect, grid=_layout_grid)
def layouts(comm: Backend, params: Params) -> Value:
    """Every dtype in every layout; gaps keep their sentinels."""
    return fingerprint(Gather(SEED, **params).perform(comm))


def _limit_grid(_size: int, depth: Depth) -> Sequence[Params]:
    dtypes = ("int8", "float64", "bytes7") if depth is Depth.FULL else ("int8",)
    patterns = ("equal", "ragged", "one_large", "scattered") if depth is Depth.FULL else ("ragged",)
    return [
        params
        for dtype in dtypes
        for params in combinations(dtype=(dtype,), pattern=patterns, elements=tuple(around(dtype, depth)))
    ]


@case("gather/limits", (7, 8), expect=_expect, grid=_limit_grid)
def limits(comm: Backend, params: Params) -> Value:
    """Payloads around the sizes at which a backend switches algorithms."""
    return fingerprint(Gather(SEED, **params).perform(comm))


def _form_grid(_size: int, depth: Depth) -> Sequence[Params]:
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


@case("gather/forms", (8,), expect=_expect, grid=_form_grid)
def form(comm: Backend, params: Params) -> Value:
    """Matrices, buffers that are not arrays, unaligned memory, and sending in place."""
    return fingerprint(Gather(SEED, **params).perform(comm))


def _large_grid(_size: int, depth: Depth) -> Sequence[Params]:
    elements = (3 * MIB + 5,) if depth is Depth.QUICK else (5 * MIB + 3, 24 * MIB + 1)
    return combinations(dtype=("uint8",), pattern=("ragged",), elements=elements)


@case("gather/large", (7,), expect=_expect, grid=_large_grid)
def large(comm: Backend, params: Params) -> Value:
    """Payloads that are larger than any bounded window."""
    return fingerprint(Gather(SEED, **params).perform(comm))


def _expect_own_places(params: Params, size: int) -> Sequence[Value]:
    elements = params["elements"]
    parts = [payload("int16", elements, "own places", rank) for rank in range(size)]
    return [fingerprint(gathered("int16", _own_layout(elements, rank, size), parts)) for rank in range(size)]


def _own_layout(elements: int, rank: int, size: int) -> Layout:
    """Return a layout that is rotated and shifted by the rank."""
    displs = tuple(rank + elements * ((other + rank) % size) for other in range(size))
    return Layout((elements,) * size, displs, elements * size + size)


def _own_places_grid(_size: int, _depth: Depth) -> Sequence[Params]:
    return combinations(elements=(1, 67, 50_000))


@case("gather/own_places", (8,), expect=_expect_own_places, grid=_own_places_grid)
def own_places(comm: Backend, params: Params) -> Value:
    """Only the counts must be the same on all ranks: each may receive into another layout."""
    layout = _own_layout(params["elements"], comm.rank, comm.size)
    recv = sentinel("int16", layout.room)
    comm.allgatherv(payload("int16", params["elements"], "own places", comm.rank), recv, layout.counts, layout.displs)
    return fingerprint(recv)


def _counts_grid(_size: int, _depth: Depth) -> Sequence[Params]:
    return combinations(kind=("list", "tuple", "numpy"))


def _expect_counts(_params: Params, size: int) -> Sequence[Value]:
    return [list(range(size))] * size


@case("gather/counts", (8,), expect=_expect_counts, grid=_counts_grid)
def counts(comm: Backend, params: Params) -> Value:
    """Pass counts and displacements as any sequence of integers."""
    kinds: dict[str, Callable[[Any], Any]] = {"list": list, "tuple": tuple, "numpy": np.array}
    sequence = kinds[params["kind"]]
    recv = np.full(comm.size, -1, np.int32)
    comm.allgatherv(np.array([comm.rank], np.int32), recv, sequence([1] * comm.size), sequence(range(comm.size)))
    return recv.tolist()
