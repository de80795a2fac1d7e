"""Signals: those that the launcher forwards to its ranks, and when they are held back."""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from cobre.comm.errors import end_at_once

SAME_REQUEST_S = 5.0


class Requests:
    """Distinguishes a second request to stop from a repetition of the first one.

    SIGTERM is sent by programs, and often arrives along several ways at once: Slurm signals the tasks of a job both
    directly and through `srun`, and a process group may contain a launcher, which forwards it, and its ranks. A second
    Ctrl-C, on the other hand, is always deliberate.
    """

    def __init__(self) -> None:
        self._first: tuple[int, float] | None = None

    def is_repetition(self, number: int) -> bool:
        """Whether this signal repeats the first one: a SIGTERM within SAME_REQUEST_S of a SIGTERM."""
        now = time.monotonic()
        if self._first is None:
            self._first = (number, now)
            return False
        first, came_at = self._first
        return number == first == signal.SIGTERM and now - came_at < SAME_REQUEST_S


@contextmanager
def passing_on(signals: Sequence[signal.Signals], tell: Callable[[signal.Signals], None]) -> Iterator[None]:
    """While the block runs, the first of these signals calls `tell`; the next one raises in the block.

    Repetitions of the first one (see `Requests`) are ignored.
    """
    # Python lets only the main thread install handlers; in other threads signals keep their handlers.
    if not signals or threading.current_thread() is not threading.main_thread():
        yield
        return
    has_come, requests = False, Requests()

    def handle(number: int, _: FrameType | None) -> None:
        nonlocal has_come
        if requests.is_repetition(number):
            return
        if has_come:
            # Raised wherever the main thread is at this moment: unwinding its stack stops the ranks.
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
    """Block SIGINT until the end of the block; a process that is started in it begins with SIGINT blocked.

    The signal mask rather than a handler: the kernel keeps a blocked signal pending, a replaced handler would lose it.
    """
    former = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former)


class SignalsToRanks:
    """The callback of `passing_on`: forwards a signal once all ranks run; before that the signal stops the run.

    A rank that has not been started yet would not get the signal, and the run would wait for it.
    """

    pass_on: Callable[[signal.Signals], None] | None = None

    def __call__(self, signum: signal.Signals) -> None:
        """Forward the signal, or raise; called by the signal handler."""
        if self.pass_on is None:
            raise end_at_once(signum)
        self.pass_on(signum)
