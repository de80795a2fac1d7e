"""Signals: those that the launcher forwards to its ranks, and when SIGINT is blocked."""

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from cobre._native import count_signal, take_signal_count
from cobre.comm.errors import stop_exception

SAME_REQUEST_S = 5.0  # signals of one request that arrive by different paths do so within this time


class SignalRepeatFilter:
    """Filter that distinguishes a second request to stop from a repetition of the first one.

    SIGTERM is sent by programs, and often arrives by several paths at once: Slurm signals the tasks of a job both
    directly and through `srun`, and a process group may contain both a launcher, which forwards it, and its ranks. A
    second Ctrl-C, on the other hand, is always deliberate.
    """

    def __init__(self) -> None:
        self._first: tuple[int, float] | None = None

    def is_repetition(self, number: int) -> bool:
        """Return whether this signal repeats the first one: a SIGTERM within SAME_REQUEST_S of a SIGTERM."""
        now = time.monotonic()
        if self._first is None:
            self._first = (number, now)
            return False
        first, arrived_at = self._first
        return number == first == signal.SIGTERM and now - arrived_at < SAME_REQUEST_S


class SignalCounter:
    """Counter of arrivals, for signal handlers: Python calls a handler once for all arrivals since the last call.

    Two Ctrl-C during one native call, or one Python statement, would count as one.
    """

    def __init__(self) -> None:
        self._merged_arrivals = False

    def start(self, numbers: Iterable[int]) -> None:
        """Count these signals, which have Python handlers already; ends when another handler is installed."""
        for number in numbers:
            count_signal(number)

    def arrivals(self, number: int) -> int:
        """Return the number of arrivals since the last call; to be called by the signal's handler."""
        count = take_signal_count(number)
        if count == 0 and not self._merged_arrivals:
            return 1  # from Python itself (`_thread.interrupt_main`): no signal of the kernel's
        # The second of two arrivals makes Python call the handler again, which then finds none.
        self._merged_arrivals = count > 1
        return count


@contextmanager
def forwarding_signals(signals: Sequence[signal.Signals], forward: Callable[[signal.Signals], None]) -> Iterator[None]:
    """Call `forward` for the first two of these signals that arrive in the block; the third one raises in it.

    Repetitions of the first one (see `SignalRepeatFilter`) are ignored.
    """
    # Python lets only the main thread install handlers; in other threads signals keep their handlers.
    if not signals or threading.current_thread() is not threading.main_thread():
        yield
        return
    forwarded, requests, counter = 0, SignalRepeatFilter(), SignalCounter()

    def handle(number: int, _: FrameType | None) -> None:
        nonlocal forwarded
        for _arrival in range(counter.arrivals(number)):
            if requests.is_repetition(number):
                continue
            if forwarded == 2:
                # Raised wherever the main thread is at this moment: unwinding its stack stops the ranks.
                raise stop_exception(number)
            # Before the call: should `forward` raise, the next signal must not be taken for this one.
            forwarded += 1
            forward(signal.Signals(number))

    previous = {number: signal.signal(number, handle) for number in signals}
    counter.start(signals)
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

    send_to_ranks: set when all ranks have been started. on_second_signal: called after the second signal was sent.
    second_signal: None until it is received.
    """

    send_to_ranks: Callable[[signal.Signals], None] | None = None
    on_second_signal: Callable[[], None] | None = None
    second_signal: signal.Signals | None = None

    def __init__(self, signals: Sequence[signal.Signals]) -> None:
        self._signals = signals
        self._first: signal.Signals | None = None

    def __call__(self, signum: signal.Signals) -> None:
        """Forward the signal, or raise; called by the signal handler."""
        if self.send_to_ranks is None:
            raise stop_exception(signum)
        if self._first is None:
            self._first = signum
            self.send_to_ranks(signum)
            return
        self.second_signal = signum
        # As another signal than the first, where there is one: the kernel keeps one pending signal of each kind, and a
        # rank that had no core since the first would get one of the two.
        self.send_to_ranks(next((other for other in self._signals if other is not self._first), signum))
        if self.on_second_signal is not None:
            self.on_second_signal()
