"""Bad arguments: the typed error, nothing sent, and the next collective works (clause 3)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cobre.comm.backends.base import Backend
from cobre.comm.errors import (
    CommError,
    InvalidBufferSizeError,
    InvalidRootError,
    UnsupportedBufferError,
    UnsupportedReductionError,
)
from cobre.comm.testing.case import Depth, Params, Value, case
from cobre.comm.testing.inputs import combinations, fingerprint
from cobre.comm.testing.steps import Gather
from cobre.comm.types import Array, ReduceOp

ELEMENTS = 4


@dataclass(frozen=True, slots=True)
class BadCall:
    """A call that must be refused; `min_size`: the fewest ranks with which it is bad."""

    make: Callable[[Backend], None]
    error: type[CommError]
    min_size: int = 1


def _gather(
    send: Callable[[], Any] = lambda: np.zeros(ELEMENTS),
    recv: Callable[[int], Any] = lambda size: np.zeros(ELEMENTS * size),
    counts: Callable[[int], Any] = lambda size: [ELEMENTS] * size,
    displs: Callable[[int], Any] = lambda _: None,
) -> Callable[[Backend], None]:
    """Make a gather that is correct except for the given arguments."""
    return lambda comm: comm.allgatherv(send(), recv(comm.size), counts(comm.size), displs(comm.size))


def _reduce(send: Any, recv: Any, op: Any = ReduceOp.SUM) -> Callable[[Backend], None]:
    return lambda comm: comm.allreduce(send, recv, op)


def _broadcast(buffer: Any, root: Callable[[int], Any] = lambda _: 0) -> Callable[[Backend], None]:
    return lambda comm: comm.broadcast(buffer, root(comm.size))


def _region(count: Any, dtype: Any) -> Callable[[Backend], None]:
    def make(comm: Backend) -> None:
        comm.create_shared_region(count, dtype)

    return make


def _read_only(count: int) -> Array:
    array = np.zeros(count)
    array.flags.writeable = False
    return array


def _unaligned(count: int) -> Array:
    return np.zeros(8 * count + 1, np.uint8)[1:].view(np.float64)


def _overlapping_gather(comm: Backend) -> None:
    recv = np.zeros(ELEMENTS * comm.size + 1)
    start = ELEMENTS * comm.rank + 1
    comm.allgatherv(recv[start : start + ELEMENTS], recv, [ELEMENTS] * comm.size)


def _overlapping_reduction(comm: Backend) -> None:
    memory = np.zeros(ELEMENTS + 1)
    comm.allreduce(memory[1:], memory[:-1])


_ZEROS = np.zeros(ELEMENTS)
_FOREIGN = np.zeros(ELEMENTS).astype(np.dtype(np.float64).newbyteorder())
_OBJECTS = np.array([None] * ELEMENTS)
_STRIDED = np.zeros(2 * ELEMENTS)[::2]

_GATHERS: Mapping[str, BadCall] = {
    "send too short": BadCall(_gather(lambda: np.zeros(ELEMENTS - 1)), InvalidBufferSizeError),
    "send too long": BadCall(_gather(lambda: np.zeros(ELEMENTS + 1)), InvalidBufferSizeError),
    "recv too short": BadCall(_gather(recv=lambda size: np.zeros(ELEMENTS * size - 1)), InvalidBufferSizeError),
    "too few counts": BadCall(_gather(counts=lambda size: [ELEMENTS] * (size - 1)), InvalidBufferSizeError),
    "too many counts": BadCall(_gather(counts=lambda size: [ELEMENTS] * (size + 1)), InvalidBufferSizeError),
    "negative count": BadCall(_gather(counts=lambda size: [-1] * size), InvalidBufferSizeError),
    "float counts": BadCall(_gather(counts=lambda size: [float(ELEMENTS)] * size), InvalidBufferSizeError),
    "no counts": BadCall(_gather(counts=lambda _: None), InvalidBufferSizeError),
    "huge count": BadCall(_gather(counts=lambda size: [2**70] * size), InvalidBufferSizeError),
    "too few displs": BadCall(_gather(displs=lambda size: [0] * (size - 1)), InvalidBufferSizeError),
    "negative displ": BadCall(_gather(displs=lambda size: [-1] * size), InvalidBufferSizeError),
    "displ beyond recv": BadCall(_gather(displs=lambda size: range(1, 4 * size, ELEMENTS)), InvalidBufferSizeError),
    "displs overlap": BadCall(
        _gather(displs=lambda size: [(ELEMENTS - 1) * rank for rank in range(size)]), InvalidBufferSizeError, min_size=2
    ),
    "displs overlap, permuted": BadCall(
        _gather(displs=lambda size: [(ELEMENTS - 1) * rank for rank in reversed(range(size))]),
        InvalidBufferSizeError,
        min_size=2,
    ),
    "dtypes differ": BadCall(_gather(recv=lambda size: np.zeros(ELEMENTS * size, np.int64)), UnsupportedBufferError),
    "strided send": BadCall(_gather(lambda: _STRIDED), UnsupportedBufferError),
    "strided recv": BadCall(_gather(recv=lambda size: np.zeros(2 * ELEMENTS * size)[::2]), UnsupportedBufferError),
    "Fortran recv": BadCall(_gather(recv=lambda size: np.zeros((2, 2 * size + 2), order="F")), UnsupportedBufferError),
    "read-only recv": BadCall(_gather(recv=lambda size: _read_only(ELEMENTS * size)), UnsupportedBufferError),
    "bytes as recv": BadCall(
        _gather(lambda: bytes(ELEMENTS), lambda size: bytes(ELEMENTS * size)), UnsupportedBufferError
    ),
    "object send": BadCall(
        _gather(lambda: _OBJECTS, lambda size: np.array([None] * ELEMENTS * size)), UnsupportedBufferError
    ),
    "foreign byte order": BadCall(
        _gather(lambda: _FOREIGN, lambda size: np.zeros(ELEMENTS * size, _FOREIGN.dtype)), UnsupportedBufferError
    ),
    "list as send": BadCall(_gather(lambda: [0.0] * ELEMENTS), UnsupportedBufferError),
    "list as recv": BadCall(_gather(recv=lambda size: [0.0] * ELEMENTS * size), UnsupportedBufferError),
    "no send": BadCall(_gather(lambda: None), UnsupportedBufferError),
    "dtype without size": BadCall(
        _gather(lambda: np.zeros(ELEMENTS, "V0"), lambda size: np.zeros(ELEMENTS * size, "V0")), UnsupportedBufferError
    ),
    "send overlaps recv": BadCall(_overlapping_gather, InvalidBufferSizeError),
}

_REDUCTIONS: Mapping[str, BadCall] = {
    "lengths differ": BadCall(_reduce(_ZEROS, np.zeros(ELEMENTS + 1)), InvalidBufferSizeError),
    "dtypes differ": BadCall(_reduce(_ZEROS, np.zeros(ELEMENTS, np.float32)), UnsupportedBufferError),
    "bool": BadCall(_reduce(np.zeros(ELEMENTS, bool), np.zeros(ELEMENTS, bool)), UnsupportedReductionError),
    "dates": BadCall(_reduce(np.zeros(1, "M8[s]"), np.zeros(1, "M8[s]")), UnsupportedReductionError),
    "bytes": BadCall(_reduce(np.zeros(1, "S7"), np.zeros(1, "S7")), UnsupportedReductionError),
    "records": BadCall(_reduce(np.zeros(1, "i4,f8"), np.zeros(1, "i4,f8")), UnsupportedReductionError),
    "complex MIN": BadCall(
        _reduce(np.zeros(1, complex), np.zeros(1, complex), ReduceOp.MIN), UnsupportedReductionError
    ),
    "complex MAX": BadCall(
        _reduce(np.zeros(1, complex), np.zeros(1, complex), ReduceOp.MAX), UnsupportedReductionError
    ),
    "op by name": BadCall(_reduce(_ZEROS, np.zeros(ELEMENTS), "SUM"), UnsupportedReductionError),
    "op by number": BadCall(_reduce(_ZEROS, np.zeros(ELEMENTS), 0), UnsupportedReductionError),
    "no op": BadCall(_reduce(_ZEROS, np.zeros(ELEMENTS), None), UnsupportedReductionError),
    "strided send": BadCall(_reduce(_STRIDED, np.zeros(ELEMENTS)), UnsupportedBufferError),
    "read-only recv": BadCall(_reduce(_ZEROS, _read_only(ELEMENTS)), UnsupportedBufferError),
    "unaligned send": BadCall(_reduce(_unaligned(ELEMENTS), np.zeros(ELEMENTS)), UnsupportedBufferError),
    "unaligned recv": BadCall(_reduce(_ZEROS, _unaligned(ELEMENTS)), UnsupportedBufferError),
    "objects": BadCall(_reduce(_OBJECTS, _OBJECTS.copy()), UnsupportedBufferError),
    "foreign byte order": BadCall(_reduce(_FOREIGN, _FOREIGN.copy()), UnsupportedBufferError),
    "list": BadCall(_reduce([1.0], [0.0]), UnsupportedBufferError),
    "send overlaps recv": BadCall(_overlapping_reduction, InvalidBufferSizeError),
}

_BROADCASTS: Mapping[str, BadCall] = {
    "root is size": BadCall(_broadcast(_ZEROS, lambda size: size), InvalidRootError),
    "root -1": BadCall(_broadcast(_ZEROS, lambda _: -1), InvalidRootError),
    "huge root": BadCall(_broadcast(_ZEROS, lambda _: 2**70), InvalidRootError),
    "float root": BadCall(_broadcast(_ZEROS, lambda _: 0.0), InvalidRootError),
    "text root": BadCall(_broadcast(_ZEROS, lambda _: "0"), InvalidRootError),
    "no root": BadCall(_broadcast(_ZEROS, lambda _: None), InvalidRootError),
    "read-only": BadCall(_broadcast(_read_only(ELEMENTS)), UnsupportedBufferError),
    "bytes": BadCall(_broadcast(bytes(ELEMENTS)), UnsupportedBufferError),
    "strided": BadCall(_broadcast(_STRIDED), UnsupportedBufferError),
    "objects": BadCall(_broadcast(_OBJECTS), UnsupportedBufferError),
    "foreign byte order": BadCall(_broadcast(_FOREIGN), UnsupportedBufferError),
    "list": BadCall(_broadcast([1.0]), UnsupportedBufferError),
}

_REGIONS: Mapping[str, BadCall] = {
    "negative count": BadCall(_region(-1, np.float64), InvalidBufferSizeError),
    "float count": BadCall(_region(1.5, np.float64), InvalidBufferSizeError),
    "text count": BadCall(_region("3", np.float64), InvalidBufferSizeError),
    "objects": BadCall(_region(3, object), UnsupportedBufferError),
    "foreign byte order": BadCall(_region(3, _FOREIGN.dtype), UnsupportedBufferError),
    "no such dtype": BadCall(_region(3, "nonsense"), UnsupportedBufferError),
    "dtype without size": BadCall(_region(3, "V0"), UnsupportedBufferError),
}

BAD_CALLS: Mapping[str, BadCall] = {
    f"{operation} with {what}": bad
    for operation, calls in (
        ("allgatherv", _GATHERS),
        ("allreduce", _REDUCTIONS),
        ("broadcast", _BROADCASTS),
        ("create_shared_region", _REGIONS),
    )
    for what, bad in calls.items()
}


# Bad arguments: the typed error, nothing sent, and the next collective works (clause 3).

NEXT = Gather("after a refusal", "int32", "ragged", 5)


def _grid(size: int, _depth: Depth) -> Sequence[Params]:
    calls = [name for name, bad in BAD_CALLS.items() if size >= bad.min_size]
    return combinations(call=calls, who=("all", "one") if size > 1 else ("all",))


def _expect(params: Params, size: int) -> Sequence[Value]:
    error = BAD_CALLS[params["call"]].error.__name__
    after = fingerprint(NEXT.predict(size))
    return [
        {"error": error if _makes_invalid_call(params, rank, size) else "", "numbered": 0, "next": after}
        for rank in range(size)
    ]


def _makes_invalid_call(params: Params, rank: int, size: int) -> bool:
    return params["who"] == "all" or rank == size - 1


@case("refusals/arguments", (3,), expect=_expect, grid=_grid)
def arguments(comm: Backend, params: Params) -> Value:
    """Make the bad call on all ranks, or on one of them, which the others never notice."""
    before = comm.sequence
    error = ""
    if _makes_invalid_call(params, comm.rank, comm.size):
        error = _refused(comm, params["call"])
    numbered = comm.sequence - before
    return {"error": error, "numbered": numbered, "next": fingerprint(NEXT.perform(comm))}


def _refused(comm: Backend, call: str) -> str:
    try:
        BAD_CALLS[call].make(comm)
    except Exception as error:  # noqa: BLE001 - another error than the contract's is a wrong answer too
        return type(error).__name__
    return "accepted"
