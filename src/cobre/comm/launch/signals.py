"""Signals that ask a run to end in its own way, and when they may come."""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from cobre.comm.errors import end_at_once

SAME_REQUEST_S = 5.0


class Requests:
    """Tells a second request to end from the first one that comes again.

    SIGTERM is sent by programs, and often along several ways at once: Slurm ends the tasks of a job itself and through
    `srun`, and a process group that gets it holds both a launcher, which passes it on, and its ranks. Ctrl-C is pressed
    by somebody who means it.
    """

    def __init__(self) -> None:
        self._first: tuple[int, float] | None = None

    def is_repetition(self, number: int) -> bool:
        """Whether this signal says what an earlier one has said already; the first of all is remembered."""
        now = time.monotonic()
        if self._first is None:
            self._first = (number, now)
            return False
        first, came_at = self._first
        return number == first == signal.SIGTERM and now - came_at < SAME_REQUEST_S


@contextmanager
def passing_on(signals: Sequence[signal.Signals], tell: Callable[[signal.Signals], None]) -> Iterator[None]:
    """While the block runs, the first of some signals is told; the next one is an exception that ends the block.

    What `Requests` takes for a repetition of the first is ignored.
    """
    if not signals or threading.current_thread() is not threading.main_thread():
        yield
        return
    has_come, requests = False, Requests()

    def handle(number: int, _: FrameType | None) -> None:
        nonlocal has_come
        if requests.is_repetition(number):
            return
        if has_come:
            raise end_at_once(number)
        has_come = True
        tell(signal.Signals(number))

    former = {number: signal.signal(number, handle) for number in signals}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Ctrl-C comes after the block; a process that is started in it begins with SIGINT blocked."""
    former = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former)


class SignalsToRanks:
    """What is told to `passing_on`: the ranks get the signal once all of them run, before that it ends the run."""

    pass_on: Callable[[signal.Signals], None] | None = None

    def __call__(self, signum: signal.Signals) -> None:
        """Called by the signal's handler."""
        if self.pass_on is None:
            raise end_at_once(signum)
        self.pass_on(signum)
