"""`allreduce`: the left fold in rank order, bit for bit (clause 8)."""

from collections.abc import Sequence

from cobre.comm.backends.base import Backend
from cobre.comm.testing.case import Depth, Params, Value, case
from cobre.comm.testing.inputs import FEW, FLOATING, MIB, NUMERIC, ORDERED, around, combinations, fingerprint
from cobre.comm.testing.steps import Reduce

SEED = "reduce"


def _expect(params: Params, size: int) -> Sequence[Value]:
    return [fingerprint(Reduce(SEED, **params).predict(size))] * size


def _value_grid(_size: int, depth: Depth) -> Sequence[Params]:
    elements = (*FEW, 1000, 1025) if depth is Depth.FULL else (3, 67)
    sums = combinations(dtype=NUMERIC, op=("SUM",), elements=elements)
    return sums + combinations(dtype=ORDERED, op=("MIN", "MAX"), elements=elements)


@case("reduce/values", (8,), expect=_expect, grid=_value_grid)
def values(comm: Backend, params: Params) -> Value:
    """Every dtype and reduction, in the dtype's own precision; integers wrap."""
    return fingerprint(Reduce(SEED, **params).perform(comm))


def _limit_grid(_size: int, depth: Depth) -> Sequence[Params]:
    dtypes = ("int8", "float64", "float16", "longdouble", "complex64") if depth is Depth.FULL else ("int8", "float64")
    ops = {"int8": ("MIN", "SUM"), "float64": ("SUM", "MAX")}
    return [
        params
        for dtype in dtypes
        for params in combinations(dtype=(dtype,), op=ops.get(dtype, ("SUM",)), elements=tuple(around(dtype, depth)))
    ]


@case("reduce/limits", (7, 8), expect=_expect, grid=_limit_grid)
def limits(comm: Backend, params: Params) -> Value:
    """Payloads around the sizes at which a backend switches algorithms; the order per element must not change."""
    return fingerprint(Reduce(SEED, **params).perform(comm))


def _special_grid(_size: int, _depth: Depth) -> Sequence[Params]:
    return combinations(dtype=FLOATING, op=("SUM", "MIN", "MAX"), elements=(0,), special=(True,))


@case("reduce/special", (8,), expect=_expect, grid=_special_grid)
def special(comm: Backend, params: Params) -> Value:
    """NaNs of every kind, infinities, signed zeros, subnormals and the largest numbers, in all combinations."""
    return fingerprint(Reduce(SEED, **params).perform(comm))


def _in_place_grid(_size: int, depth: Depth) -> Sequence[Params]:
    elements = (1, 67, 40_000) if depth is Depth.QUICK else (1, 67, 40_000, MIB + 1)
    return combinations(dtype=("float32", "int64"), op=("SUM", "MAX"), elements=elements, in_place=(True,))


@case("reduce/in_place", (8,), expect=_expect, grid=_in_place_grid)
def in_place(comm: Backend, params: Params) -> Value:
    """Reductions in place: send and receive buffer are the same."""
    return fingerprint(Reduce(SEED, **params).perform(comm))


def _large_grid(_size: int, depth: Depth) -> Sequence[Params]:
    elements = (MIB + 3,) if depth is Depth.QUICK else (2 * MIB + 3, 6 * MIB + 1)
    return combinations(dtype=("float32",), op=("SUM",), elements=elements)


@case("reduce/large", (7,), expect=_expect, grid=_large_grid)
def large(comm: Backend, params: Params) -> Value:
    """Payloads that are larger than any bounded window."""
    return fingerprint(Reduce(SEED, **params).perform(comm))
