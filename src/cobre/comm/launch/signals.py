"""Signals that ask a run to end in its own way, and when they may come."""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from cobre.comm.errors import end_at_once


@contextmanager
def passing_on(signals: Sequence[signal.Signals], tell: Callable[[signal.Signals], None]) -> Iterator[None]:
    """While the block runs, the first of some signals is told; the next one is an exception that ends the block."""
    if not signals or threading.current_thread() is not threading.main_thread():
        yield
        return
    has_come = False

    def handle(number: int, _: FrameType | None) -> None:
        nonlocal has_come
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
