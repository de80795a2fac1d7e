"""Looking before sleeping. Waking a thread takes longer than most answers take to come.

Where every rank can have a core of its own, a rank looks for a moment before it sleeps. Where ranks share cores, that
moment would be taken from the rank that is waited for. Whether they do is known of the ranks, but not of other
programs on the host: so a look that was in vain is followed by sleeps without one, more of them each time.
"""

import time
from collections.abc import Callable
from typing import TypeVar

from cobre.comm.cores import usable_cores

SPIN_S = 1e-4
MAX_SKIPPED = 63  # sleeps: then a look in vain costs little, and a quiet host is noticed soon

Found = TypeVar("Found")


class SpinWait:
    """Looks again and again, for `limit_s` at most; 0 is never. One per rank, for the thread that calls."""

    def __init__(self, limit_s: float = 0.0) -> None:
        self._limit_s = limit_s
        self._skipped = 0  # sleeps without a look after the next look in vain
        self._to_skip = 0

    def spin(self, attempt: Callable[[], Found]) -> Found | None:
        """What an attempt has found; None: nothing yet, one may sleep. Attempts let other threads run."""
        if not self._limit_s:
            return None
        if self._to_skip:
            self._to_skip -= 1
            return None
        return self._look(attempt)

    def _look(self, attempt: Callable[[], Found]) -> Found | None:
        end = time.perf_counter() + self._limit_s
        while not (found := attempt()):
            if time.perf_counter() >= end:
                self._to_skip = self._skipped = min(2 * self._skipped + 1, MAX_SKIPPED)
                return None
        self._skipped //= 2
        return found


def spin_wait_for(size: int) -> SpinWait:
    """For a rank of a world of this size.

    As if all ranks were on this host: true of the worlds for which a moment matters, and safe for all others.
    """
    return SpinWait(SPIN_S if size <= usable_cores() else 0.0)
