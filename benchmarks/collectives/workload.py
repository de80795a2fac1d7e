"""The arrays of a case, the call on them, and whether the result is right."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np

from collectives.adapters.base import Adapter, Array, Call
from collectives.cases import Case, Kind

SENTINEL = -1.0


def nothing() -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class Work:
    """A call that can be repeated, a check of its result, and a reset of the receive buffer."""

    call: Call
    check: Callable[[], None] = nothing
    reset: Callable[[], object] = nothing


@contextmanager
def prepare(adapters: Sequence[Adapter], case: Case) -> Iterator[list[Work]]:
    """Make the arrays of a case and bind every contender's call to them: what is compared uses the same memory."""
    with PREPARATIONS[case.kind](adapters, case) as works:
        yield works


@contextmanager
def prepare_barrier(adapters: Sequence[Adapter], _case: Case) -> Iterator[list[Work]]:
    """Prepare a barrier, which has no result to check."""
    yield [Work(adapter.bind_barrier()) for adapter in adapters]


@contextmanager
def prepare_allreduce(adapters: Sequence[Adapter], case: Case) -> Iterator[list[Work]]:
    """Prepare a sum of (r + 1) times 0, 1, 2, ... on rank r, which is exact in any order."""
    rank, size = adapters[0].rank, adapters[0].size
    ramp = np.arange(case.elements, dtype=np.float64)
    send, recv = ramp * (rank + 1), np.empty(case.elements)
    expected = ramp * (size * (size + 1) / 2)
    yield [
        Work(adapter.bind_allreduce(send, recv), partial(check_equal, case, recv, expected), fill_with_sentinel(recv))
        for adapter in adapters
    ]


@contextmanager
def prepare_allgatherv(adapters: Sequence[Adapter], case: Case) -> Iterator[list[Work]]:
    """Prepare a gather of 0, 1, 2, ..., of which each rank has a part."""
    counts = case.counts(adapters[0].size)
    send, recv = part_of_ramp(counts, adapters[0].rank), np.empty(case.elements)
    yield [
        Work(adapter.bind_allgatherv(send, recv, counts), partial(check_ramp, case, recv), fill_with_sentinel(recv))
        for adapter in adapters
    ]


@contextmanager
def prepare_allgatherv_into_region(adapters: Sequence[Adapter], case: Case) -> Iterator[list[Work]]:
    """Prepare an allgatherv into memory shared by all ranks."""
    counts = case.counts(adapters[0].size)
    send = part_of_ramp(counts, adapters[0].rank)
    with ExitStack() as regions:
        bound = [regions.enter_context(adapter.bind_allgatherv_into_region(send, counts)) for adapter in adapters]
        yield [Work(call, partial(check_ramp, case, recv)) for call, recv in bound]


@contextmanager
def prepare_broadcast(adapters: Sequence[Adapter], case: Case) -> Iterator[list[Work]]:
    """Prepare a broadcast of 0, 1, 2, ... from rank 0."""
    buffer = np.arange(case.elements, dtype=np.float64)
    reset = nothing if adapters[0].rank == 0 else fill_with_sentinel(buffer)
    yield [Work(adapter.bind_broadcast(buffer), partial(check_ramp, case, buffer), reset) for adapter in adapters]


PREPARATIONS = {
    Kind.BARRIER: prepare_barrier,
    Kind.ALLREDUCE: prepare_allreduce,
    Kind.ALLGATHERV: prepare_allgatherv,
    Kind.ALLGATHERV_INTO_REGION: prepare_allgatherv_into_region,
    Kind.BROADCAST: prepare_broadcast,
}


def fill_with_sentinel(array: Array) -> Callable[[], object]:
    """Return a call that fills the array with a sentinel value."""
    return partial(array.fill, SENTINEL)


def part_of_ramp(counts: tuple[int, ...], rank: int) -> Array:
    """Return this rank's part of 0, 1, 2, ..."""
    begin = sum(counts[:rank])
    return np.arange(begin, begin + counts[rank], dtype=np.float64)


def check_ramp(case: Case, result: Array) -> None:
    """Raise AssertionError unless the result is 0, 1, 2, ..."""
    check_equal(case, result, np.arange(case.elements, dtype=np.float64))


def check_equal(case: Case, result: Array, expected: Array) -> None:
    """Raise AssertionError if a contender delivers a wrong result: its time would mean nothing."""
    if not np.array_equal(result, expected):
        raise AssertionError(f"{case.name}: the result is wrong")
