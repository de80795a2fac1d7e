"""The arrays of a case, the call on them, and whether the result is right."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from collectives.adapters.base import Adapter, Array, Call
from collectives.cases import Case, Kind

UNWRITTEN = -1.0


@dataclass(frozen=True, slots=True)
class Work:
    """A call that can be repeated, and the check of what it has written."""

    call: Call
    check: Callable[[], None]


@contextmanager
def prepare(adapter: Adapter, case: Case) -> Iterator[Work]:
    """Make the arrays of a case and bind the contender's call to them."""
    with PREPARATIONS[case.kind](adapter, case) as work:
        yield work


@contextmanager
def prepare_barrier(adapter: Adapter, _case: Case) -> Iterator[Work]:
    """Nothing moves, so there is nothing to check."""
    yield Work(adapter.bind_barrier(), lambda: None)


@contextmanager
def prepare_allreduce(adapter: Adapter, case: Case) -> Iterator[Work]:
    """Rank r sends r + 1 times 0, 1, 2, ...: the sums are exact in any order."""
    ramp = np.arange(case.elements, dtype=np.float64)
    send, recv = ramp * (adapter.rank + 1), np.full(case.elements, UNWRITTEN)
    factor = adapter.size * (adapter.size + 1) / 2
    yield Work(adapter.bind_allreduce(send, recv), lambda: check_equal(case, recv, ramp * factor))


@contextmanager
def prepare_allgatherv(adapter: Adapter, case: Case) -> Iterator[Work]:
    """Together the ranks send 0, 1, 2, ..."""
    counts = case.counts(adapter.size)
    send, recv = part_of_ramp(counts, adapter.rank), np.full(case.elements, UNWRITTEN)
    yield Work(adapter.bind_allgatherv(send, recv, counts), lambda: check_ramp(case, recv))


@contextmanager
def prepare_allgatherv_into_region(adapter: Adapter, case: Case) -> Iterator[Work]:
    """The same, into memory that all ranks see."""
    counts = case.counts(adapter.size)
    send = part_of_ramp(counts, adapter.rank)
    with adapter.bind_allgatherv_into_region(send, counts) as (call, recv):
        yield Work(call, lambda: check_ramp(case, recv))


@contextmanager
def prepare_broadcast(adapter: Adapter, case: Case) -> Iterator[Work]:
    """Rank 0 sends 0, 1, 2, ..."""
    ramp = np.arange(case.elements, dtype=np.float64)
    buffer = ramp if adapter.rank == 0 else np.full(case.elements, UNWRITTEN)
    yield Work(adapter.bind_broadcast(buffer), lambda: check_ramp(case, buffer))


PREPARATIONS = {
    Kind.BARRIER: prepare_barrier,
    Kind.ALLREDUCE: prepare_allreduce,
    Kind.ALLGATHERV: prepare_allgatherv,
    Kind.ALLGATHERV_INTO_REGION: prepare_allgatherv_into_region,
    Kind.BROADCAST: prepare_broadcast,
}


def part_of_ramp(counts: tuple[int, ...], rank: int) -> Array:
    """This rank's part of 0, 1, 2, ..."""
    begin = sum(counts[:rank])
    return np.arange(begin, begin + counts[rank], dtype=np.float64)


def check_ramp(case: Case, result: Array) -> None:
    """The result is 0, 1, 2, ..."""
    check_equal(case, result, np.arange(case.elements, dtype=np.float64))


def check_equal(case: Case, result: Array, expected: Array) -> None:
    """A contender that delivers something else has no time worth noting."""
    if not np.array_equal(result, expected):
        raise AssertionError(f"{case.name}: the result is wrong")
