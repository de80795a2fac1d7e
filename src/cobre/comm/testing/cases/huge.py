"""Payloads beyond 32-bit counts (clause 7); only in full runs, only with two ranks."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cobre.comm.backends.base import Backend
from cobre.comm.testing.case import Depth, Params, Value, case
from cobre.comm.testing.inputs import fingerprint, payload
from cobre.comm.testing.oracle import fold
from cobre.comm.types import Array, ReduceOp

GIB = 1 << 30
NEEDED_BYTES = 14 * GIB
COUNTS = (GIB + 5, GIB + 7)
TOTAL = sum(COUNTS)
BLOCK = (1 << 20) - 7  # odd, so that a slip by any power of two shows


def _grid(size: int, depth: Depth) -> Sequence[Params]:
    return ({},) if size == 2 and depth is Depth.FULL else ()


def _skip_reason() -> str:
    free = _available_bytes()
    if free is None or free >= NEEDED_BYTES:
        return ""
    return f"needs {NEEDED_BYTES / GIB:.0f} GiB of free memory, there are {free / GIB:.1f}"


def _available_bytes() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    fields = dict(line.split(":", 1) for line in lines)
    return int(fields["MemAvailable"].split()[0]) * 1024


def _data(rank: int, count: int) -> Array:
    return np.resize(payload("int8", BLOCK, "huge", rank), count)


def _expect_gathered(_params: Params, size: int) -> Sequence[Value]:
    return [fingerprint(np.concatenate([_data(rank, count) for rank, count in enumerate(COUNTS)]))] * size


@case("huge/gather", (7,), expect=_expect_gathered, grid=_grid, skip_reason=_skip_reason)
def gather(comm: Backend, _params: Params) -> Value:
    """Gather with counts and displacements of more than 2^31 bytes together, into a region."""
    with comm.create_shared_region(TOTAL, np.int8) as region:
        comm.allgatherv(_data(comm.rank, COUNTS[comm.rank]), region, COUNTS)
        return fingerprint(region.as_array())


def _expect_reduced(_params: Params, size: int) -> Sequence[Value]:
    return [fingerprint(fold([_data(rank, TOTAL) for rank in range(size)], ReduceOp.SUM))] * size


@case("huge/reduce", (7,), expect=_expect_reduced, grid=_grid, skip_reason=_skip_reason)
def reduce(comm: Backend, _params: Params) -> Value:
    """More than 2^31 elements, in place."""
    data = _data(comm.rank, TOTAL)
    comm.allreduce(data, data)
    return fingerprint(data)


def _expect_broadcast(_params: Params, size: int) -> Sequence[Value]:
    return [fingerprint(_data(1, TOTAL))] * size


@case("huge/broadcast", (7,), expect=_expect_broadcast, grid=_grid, skip_reason=_skip_reason)
def broadcast(comm: Backend, _params: Params) -> Value:
    """More than 2^31 bytes."""
    data = _data(1, TOTAL) if comm.rank == 1 else np.zeros(TOTAL, np.int8)
    comm.broadcast(data, root=1)
    return fingerprint(data)
