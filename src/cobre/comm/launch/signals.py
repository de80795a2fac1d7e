"""Signals: those that the launcher forwards to its ranks, and when SIGINT is blocked."""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from cobre.comm.errors import stop_exception

SAME_REQUEST_S = 5.0  # signals of one request that take different ways arrive within this time


class SignalRepeatFilter:
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
def forwarding_signals(signals: Sequence[signal.Signals], forward: Callable[[signal.Signals], None]) -> Iterator[None]:
    """While the block runs, the first of these signals calls `forward`; the next one raises in the block.

    Repetitions of the first one (see `SignalRepeatFilter`) are ignored.
    """
    # Python lets only the main thread install handlers; in other threads signals keep their handlers.
    if not signals or threading.current_thread() is not threading.main_thread():
        yield
        return
    has_come, requests = False, SignalRepeatFilter()

    def handle(number: int, _: FrameType | None) -> None:
        nonlocal has_come
        if requests.is_repetition(number):
            return
        if has_come:
            # Raised wherever the main thread is at this moment: unwinding its stack stops the ranks.
            raise stop_exception(number)
        # Before the call: should `forward` raise, the next signal must not be taken for the first.
        has_come = True
        forward(signal.Signals(number))

    previous = {number: signal.signal(number, handle) for number in signals}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Block SIGINT until the end of the block; a process that is started in it begins with SIGINT blocked.

    The signal mask rather than a handler: the kernel keeps a blocked signal pending, a replaced handler would lose it.
    """
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)


class SignalForwarder:
    """The callback of `forwarding_signals`: forwards a signal once all ranks run; before that, it stops the run.

    A rank that has not been started yet would not get the signal, and the run would wait for it.

    send_to_ranks: set when all ranks have been started.
    """

    send_to_ranks: Callable[[signal.Signals], None] | None = None

    def __call__(self, signum: signal.Signals) -> None:
        """Forward the signal, or raise; called by the signal handler."""
        if self.send_to_ranks is None:
            raise stop_exception(signum)
        self.send_to_ranks(signum)
