"""Many calls and large ones: sequences, random programs, and payloads beyond 32-bit counts (clauses 1, 7 and 8)."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from cobre.comm.backends.base import Backend
from cobre.comm.testing import inputs
from cobre.comm.testing.case import CaseFunction, Depth, Params, Value, case
from cobre.comm.testing.inputs import combinations, fingerprint, payload
from cobre.comm.testing.oracle import fold
from cobre.comm.testing.steps import (
    LENGTH,
    Barrier,
    Broadcast,
    FillRegion,
    Gather,
    Reduce,
    Step,
    expected_digest,
    run_program,
)
from cobre.comm.types import Array, ReduceOp


def _steps(round_number: int, elements: int) -> Sequence[Step]:
    seed = f"round {round_number}"
    return (
        Gather(seed, "int32", "ragged", elements),
        Reduce(seed, "float64", "SUM", elements),
        Broadcast(seed, "int16", elements, root=round_number),
        Barrier(),
    )


def _digest(results: Sequence[str]) -> str:
    return inputs.fingerprint(np.frombuffer("\n".join(results).encode(), np.uint8))


def _expect_rounds(params: Params, size: int) -> Sequence[Value]:
    results = [
        inputs.fingerprint(step.predict(size))
        for number in range(params["rounds"])
        for step in _steps(number, params["elements"])
    ]
    return [_digest(results)] * size


def _round_grid(_size: int, depth: Depth) -> Sequence[Params]:
    rounds = 5 if depth is Depth.QUICK else 25
    return combinations(elements=(1, 100, 6_000, 70_000), rounds=(rounds,))


@case("sequences/back_to_back", (1, 8), expect=_expect_rounds, grid=_round_grid)
def back_to_back(comm: Backend, params: Params) -> Value:
    """Repeat the same shapes with other data, ranks out of step: no rank sees data of another round."""
    results = []
    for number in range(params["rounds"]):
        for step in _steps(number, params["elements"]):
            _delay_one_rank(comm, number)
            results.append(inputs.fingerprint(step.perform(comm)))
    return _digest(results)


def _delay_one_rank(comm: Backend, number: int) -> None:
    """Slow down one rank, another one in every round, so that the others run ahead as far as they can."""
    if number % comm.size == comm.rank:
        inputs.payload("uint8", 50_000, "delay")


@case("sequences/numbers", (1, 3), expect=lambda _params, size: [[1, 1, 1, 1, 2, 0]] * size)
def numbers(comm: Backend, _params: Params) -> Value:
    """Check that every call is numbered once, fences included, and that a rejected one is not."""
    steps = (*_steps(0, 3), FillRegion("numbers", "int8", 3))
    counted = []
    for step in steps:
        before = comm.sequence
        step.perform(comm)
        counted.append(comm.sequence - before)
    return [*counted, _count_refused(comm)]


def _count_refused(comm: Backend) -> int:
    before = comm.sequence
    try:
        comm.broadcast(np.zeros(1), root=comm.size)
    except Exception:  # noqa: BLE001 - which error it is, the refusals check
        return comm.sequence - before
    return -1


# Random programs: the same bits on every backend (clauses 1 and 8).


def _program_grid(_size: int, depth: Depth) -> Sequence[Params]:
    seeds = (1,) if depth is Depth.QUICK else tuple(range(1, 11))
    return combinations(seed=seeds, length=(LENGTH,))


@case(
    "programs/random",
    (1, 8),
    expect=lambda params, size: [expected_digest(size, **params)] * size,
    grid=_program_grid,
)
def random_program(comm: Backend, params: Params) -> Value:
    """Run two hundred collectives of all kinds, dtypes, layouts and sizes."""
    return run_program(comm, **params)


# Payloads beyond 32-bit counts (clause 7); only in full runs, only with two ranks.

GIB = 1 << 30
NEEDED_BYTES = 14 * GIB
COUNTS = (GIB + 5, GIB + 7)
TOTAL = sum(COUNTS)
BLOCK = (1 << 20) - 7  # odd, so that a slip by any power of two shows


def _huge_skip_reason() -> str:
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


def _huge_data(rank: int, count: int) -> Array:
    return np.resize(payload("int8", BLOCK, "huge", rank), count)


def _huge_case(name: str, expected: Callable[[], Array]) -> Callable[[CaseFunction], CaseFunction]:
    """Register a case that needs two ranks and much memory, and after which both hold the expected array."""
    return case(
        f"huge/{name}",
        (7,),
        expect=lambda _params, size: [fingerprint(expected())] * size,
        grid=lambda size, depth: ({},) if size == 2 and depth is Depth.FULL else (),
        skip_reason=_huge_skip_reason,
    )


@_huge_case("gather", lambda: np.concatenate([_huge_data(rank, count) for rank, count in enumerate(COUNTS)]))
def huge_gather(comm: Backend, _params: Params) -> Value:
    """Gather with counts and displacements of more than 2^31 bytes together, into a region."""
    with comm.create_shared_region(TOTAL, np.int8) as region:
        comm.allgatherv(_huge_data(comm.rank, COUNTS[comm.rank]), region, COUNTS)
        return fingerprint(region.as_array())


@_huge_case("reduce", lambda: fold([_huge_data(rank, TOTAL) for rank in range(2)], ReduceOp.SUM))
def huge_reduce(comm: Backend, _params: Params) -> Value:
    """Reduce more than 2^31 elements, in place."""
    data = _huge_data(comm.rank, TOTAL)
    comm.allreduce(data, data)
    return fingerprint(data)


@_huge_case("broadcast", lambda: _huge_data(1, TOTAL))
def huge_broadcast(comm: Backend, _params: Params) -> Value:
    """Broadcast more than 2^31 bytes."""
    data = _huge_data(1, TOTAL) if comm.rank == 1 else np.zeros(TOTAL, np.int8)
    comm.broadcast(data, root=1)
    return fingerprint(data)
