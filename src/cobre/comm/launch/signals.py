"""Signals that the launcher forwards to its ranks, and when they may arrive."""

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
    """While the block runs, the first of these signals calls `tell`; the next one raises and so ends the block.

    What `Requests` takes for a repetition of the first is ignored.
    """
    # Python lets only the main thread install handlers; elsewhere signals keep their meaning.
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
    """Hold Ctrl-C back until the block has ended; a process that is started in it begins with SIGINT blocked.

    The mask, not a handler: a handler set aside would lose the signal, the kernel keeps a blocked one pending.
    """
    former = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former)


class SignalsToRanks:
    """The listener of `passing_on`: forwards a signal once all ranks run; before that the signal ends the run.

    A rank that was not started yet would never hear of it, and the run would wait for ranks that do not end.
    """

    pass_on: Callable[[signal.Signals], None] | None = None

    def __call__(self, signum: signal.Signals) -> None:
        """Called by the signal's handler."""
        if self.pass_on is None:
            raise end_at_once(signum)
        self.pass_on(signum)
