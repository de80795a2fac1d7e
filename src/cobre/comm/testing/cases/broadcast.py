"""`broadcast`: the root's bytes on every rank."""

from collections.abc import Sequence

from cobre.comm.backends.base import Backend
from cobre.comm.testing.case import Depth, Params, Value, case
from cobre.comm.testing.inputs import DTYPES, FEW, MIB, around, combinations, fingerprint
from cobre.comm.testing.steps import Broadcast

SEED = "broadcast"


def _expect(params: Params, size: int) -> Sequence[Value]:
    return [fingerprint(Broadcast(SEED, **params).predict(size))] * size


def _value_grid(size: int, depth: Depth) -> Sequence[Params]:
    dtypes = tuple(DTYPES) if depth is Depth.FULL else ("bool", "float64", "bytes7", "padded")
    return combinations(dtype=dtypes, elements=FEW, root=tuple(range(size)))


@case("broadcast/values", (8,), expect=_expect, grid=_value_grid)
def values(comm: Backend, params: Params) -> Value:
    """Every dtype from every root."""
    return fingerprint(Broadcast(SEED, **params).perform(comm))


def _limit_grid(size: int, depth: Depth) -> Sequence[Params]:
    dtypes = ("int8", "float64", "bytes7") if depth is Depth.FULL else ("int8",)
    return [
        params
        for dtype in dtypes
        for params in combinations(dtype=(dtype,), elements=tuple(around(dtype, depth)), root=tuple({0, size - 1}))
    ]


@case("broadcast/limits", (7,), expect=_expect, grid=_limit_grid)
def limits(comm: Backend, params: Params) -> Value:
    """Payloads around the sizes at which a backend switches algorithms."""
    return fingerprint(Broadcast(SEED, **params).perform(comm))


def _form_grid(size: int, _depth: Depth) -> Sequence[Params]:
    forms = ("matrix", "memoryview", "subclass", "unaligned")
    return combinations(dtype=("float64",), elements=(0, 67), root=(size - 1,), form=forms)


@case("broadcast/forms", (8,), expect=_expect, grid=_form_grid)
def form(comm: Backend, params: Params) -> Value:
    """Matrices, buffers that are not arrays, unaligned memory."""
    return fingerprint(Broadcast(SEED, **params).perform(comm))


def _large_grid(size: int, depth: Depth) -> Sequence[Params]:
    elements = (5 * MIB + 3,) if depth is Depth.QUICK else (9 * MIB + 7, 40 * MIB + 1)
    return combinations(dtype=("uint8",), elements=elements, root=(size // 2,))


@case("broadcast/large", (7,), expect=_expect, grid=_large_grid)
def large(comm: Backend, params: Params) -> Value:
    """Payloads that are larger than any bounded window."""
    return fingerprint(Broadcast(SEED, **params).perform(comm))
