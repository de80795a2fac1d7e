"""`barrier`: no rank leaves before all have entered."""

import time
from collections.abc import Callable, Sequence

import numpy as np

from cobre.comm.backends.base import Backend
from cobre.comm.testing.case import Params, Value, case, needs_two_ranks

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


def nobody_left_early(_params: Params, values: Sequence[Value]) -> str:
    """Compare the times of all ranks, round by round."""
    for late, times in enumerate(zip(*values, strict=True)):
        last_in, first_out = max(entered for entered, _ in times), min(left for _, left in times)
        if first_out < last_in:
            return f"a rank left {(last_in - first_out) / 1e6:.3f} ms before the last entered; rank {late} was late"
    return ""


def synchronise(comm: Backend) -> None:
    """Make all ranks start together, by a call that is not the one under test."""
    comm.allreduce(np.zeros(1), np.zeros(1))


@case("barrier/nobody_leaves_early", (1,), judge=nobody_left_early, grid=needs_two_ranks)
def nobody_leaves_early(comm: Backend, _params: Params) -> Value:
    """Each rank is late once; the others wait for it."""
    return timed_waits(comm, comm.barrier)


@case("barrier/many", (1,))
def many(comm: Backend, _params: Params) -> Value:
    """Make a thousand barriers in a row: no rank stays behind in an old generation."""
    before = comm.sequence
    for _ in range(1000):
        comm.barrier()
    return comm.sequence - before == 1000
