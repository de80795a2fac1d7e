"""Spinning before sleeping: waking a sleeping thread takes longer than most replies take to arrive.

If every rank can have a core of its own, a rank polls for a moment before it sleeps. If ranks share cores, that moment
would be taken from the very rank that it waits for. The ranks are known, but not the other programs of the host:
therefore a spin that finds nothing is followed by sleeps without one, twice as many each time (ADR 0009).
"""

import time
from collections.abc import Callable
from typing import TypeVar

from cobre.comm.cores import usable_cores

SPIN_S = 1e-4
MAX_SKIPPED = (
    63  # sleeps without a spin; keeps the cost of failed spins low, and still notices soon that a host is idle
)

Found = TypeVar("Found")


class SpinWait:
    """Polls for up to `limit_s` seconds before its caller sleeps, with backoff; 0 disables it.

    One per rank, used by the thread that makes the calls.
    """

    def __init__(self, limit_s: float = 0.0) -> None:
        self._limit_s = limit_s
        self._backoff = 0  # sleeps without a spin after the last spin that found nothing
        self._to_skip = 0

    def spin(self, attempt: Callable[[], Found]) -> Found | None:
        """The result of the first attempt that returns something; None if the caller should sleep instead.

        An attempt is a system call, which releases the GIL: other threads run between attempts.
        """
        if not self._limit_s:
            return None
        if self._to_skip:
            self._to_skip -= 1
            return None
        return self._poll(attempt)

    def _poll(self, attempt: Callable[[], Found]) -> Found | None:
        end = time.perf_counter() + self._limit_s
        while not (found := attempt()):
            if time.perf_counter() >= end:
                self._to_skip = self._backoff = min(2 * self._backoff + 1, MAX_SKIPPED)
                return None
        # Halved, not cleared: on a busy host one lucky spin says little about the next.
        self._backoff //= 2
        return found


def spin_wait_for(size: int) -> SpinWait:
    """The spin wait for a rank of a world of this size.

    Assumes that all ranks are on this host. That holds for the worlds in which 100 us matter, needs no message, and
    errs towards sleeping in all others.
    """
    return SpinWait(SPIN_S if size <= usable_cores() else 0.0)
