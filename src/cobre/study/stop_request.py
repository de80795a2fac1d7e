"""Ctrl-C, SIGTERM and time limits, which stop training after the iteration or inside it."""

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self

from cobre.comm import Backend
from cobre.comm.errors import stop_exception
from cobre.comm.exit_report import TERMINATED
from cobre.comm.launch.signals import SignalCounter, SignalRepeatFilter
from cobre.core.stopping import StopKind
from cobre.errors import CobreError
from cobre.sddp.training.loop import Interruption, IterationDropped

logger = logging.getLogger("cobre")

_Handler = Callable[[int, FrameType | None], Any] | int | None
_SIGNALS = {signal.SIGINT: Interruption.INTERRUPTED, signal.SIGTERM: Interruption.TERMINATED}

# How long an iteration may last after SIGTERM or the time limit. What sent SIGTERM kills soon: containers after 10 s,
# Slurm after 30 s, and the policy has to be written by then.
FINISH_S = 5.0


class NoIterationError(CobreError):
    """A time limit that ended before the first iteration did: there is no policy."""

    remedy = "allow more time, at least for one iteration"


class StopRequest:
    """A block in which the first SIGINT or SIGTERM asks to stop after the iteration.

    The second one drops the iteration: training ends with the one before. So do SIGTERM and the time limit, FINISH_S
    after they came. The third signal raises `KeyboardInterrupt`, and so does the second where no iteration can be
    dropped: outside of `train`, and on mpi, where a rank that leaves a collective ends the job.
    SIGTERM that comes again within seconds is still the first one (`SignalRepeatFilter`).
    Signals are taken in the main thread only, as Python has it; elsewhere only the time limit counts.
    """

    def __init__(self, time_limit_s: float | None = None) -> None:
        self._deadline = None if time_limit_s is None else time.monotonic() + time_limit_s
        self._wanted = Interruption.NONE
        self._wanted_at = 0.0
        self._previous: dict[signal.Signals, _Handler] = {}
        self._requests = SignalRepeatFilter()
        self._counter = SignalCounter()
        self._comm: Backend | None = None
        self._is_iterating = False
        self._drops = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._previous = {number: signal.signal(number, self._take) for number in _SIGNALS}
            self._counter.start(_SIGNALS)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous = {}

    def use(self, comm: Backend) -> None:
        """Allow iterations to be dropped, in a world of ranks that end by this communicator."""
        self._comm = None if comm.backend == "mpi" else comm

    @contextmanager
    def iterating(self) -> Iterator[None]:
        """Let the iteration in the block be dropped."""
        self._is_iterating = True
        try:
            self.check()
            yield
        finally:
            self._is_iterating = False

    def request_stop(self, why: Interruption = Interruption.INTERRUPTED) -> None:
        """Request a stop after this iteration, from any thread; requesting it again makes no difference."""
        if self._wanted is Interruption.NONE:
            self._wanted, self._wanted_at = why, time.monotonic()

    def is_wanted(self) -> bool:
        """Return whether a signal, the time limit or the caller has requested the end."""
        return self.interruption() is not Interruption.NONE

    def interruption(self) -> Interruption:
        """Return why the run should end, if a signal, the time limit or a caller has asked; else NONE."""
        if self._wanted is Interruption.NONE and self._deadline is not None and time.monotonic() >= self._deadline:
            return Interruption.TIME_LIMIT
        return self._wanted

    def check(self) -> None:
        """Raise `IterationDropped` where the iteration must not be finished; called often by the solver."""
        if self._is_iterating and (reason := self._drop_reason()) is not Interruption.NONE:
            raise IterationDropped(reason)

    def finish(self, ended_by: StopKind) -> None:
        """Raise `KeyboardInterrupt` for a signal that did not end training: what follows must not begin either."""
        if ended_by.is_interruption:
            return
        for number, interruption in _SIGNALS.items():
            if self._wanted is interruption:
                raise stop_exception(number)

    def without_policy(self, why: Interruption) -> BaseException:
        """Return the exception that ends a run whose first iteration was dropped."""
        if why is Interruption.TIME_LIMIT:
            return NoIterationError(
                "the time limit was reached before the first iteration was complete: there is no policy. "
                "Allow more time (--time-limit), or fewer forward passes"
            )
        return stop_exception(next((number for number, known in _SIGNALS.items() if known is why), signal.SIGINT))

    def _drop_reason(self) -> Interruption:
        if self._comm is None:
            return Interruption.NONE
        if self._drops:
            return self._wanted
        now = time.monotonic()
        if self._wanted is Interruption.TERMINATED and now >= self._wanted_at + FINISH_S:
            return self._wanted
        if self._deadline is not None and now >= self._deadline + FINISH_S:
            return Interruption.TIME_LIMIT
        return Interruption.NONE

    def _take(self, number: int, _: FrameType | None) -> None:
        for _arrival in range(self._counter.arrivals(number)):
            self._request(number)

    def _request(self, number: int) -> None:
        if self._requests.is_repetition(number):
            return
        if self._wanted in (Interruption.NONE, Interruption.REQUESTED):
            self._wanted, self._wanted_at = _SIGNALS[signal.Signals(number)], time.monotonic()
            return
        if self._drops or self._comm is None:
            raise stop_exception(number)
        self._drops = True
        # A rank that waits for another one cannot be asked by the solver. Between two calls, on the other hand, an
        # exception could interrupt an operation that must be atomic.
        if self._is_iterating and self._comm.state == "busy":
            raise IterationDropped(self._wanted)


# SIGTERM in scripts. `cobre.train` takes the signal, so that the policy of the iterations so far is not lost, and
# returns it; but what was asked to end is the process, and a script that trains in a loop would go on with the next.

_is_terminated = False


def pass_on_termination(ended_by: StopKind | None) -> None:
    """Deliver a SIGTERM that ended the training of a script: to the script's own handler, now, if it has one.

    Without one the script goes on, so that it can keep the result, until its next call of Cobre
    (`exit_if_terminated`).
    """
    global _is_terminated  # noqa: PLW0603 - a signal is the process's, too
    if ended_by is not StopKind.TERMINATED:
        return
    handler = signal.getsignal(signal.SIGTERM)
    if handler is signal.SIG_DFL:
        _is_terminated = True
    elif callable(handler):
        signal.raise_signal(signal.SIGTERM)


def exit_if_terminated() -> None:
    """Raise SystemExit with the code of SIGTERM if that has ended an earlier training; called before work begins.

    Not if the script has installed a handler since: then it has taken the matter into its own hands.
    """
    global _is_terminated  # noqa: PLW0603 - as above
    if not _is_terminated:
        return
    _is_terminated = False  # a notebook shows SystemExit and goes on: its user decides
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        logger.warning("SIGTERM ended the last training: this process exits instead of starting more work")
        raise SystemExit(TERMINATED)
