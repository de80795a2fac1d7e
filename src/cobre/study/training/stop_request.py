"""Requests to stop training, after the iteration or inside it: Ctrl-C, SIGTERM and time limits."""

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

# Time that an iteration may take after SIGTERM or the time limit. SIGKILL follows SIGTERM, in containers after 10 s and
# in Slurm after 30 s, and the policy has to be written by then.
GRACE_PERIOD_S = 5.0


class NoIterationError(CobreError):
    """A time limit that ended before the first iteration did: there is no policy."""

    remedy = "allow more time, at least for one iteration"


class StopRequest:
    """A context in which the first SIGINT or SIGTERM requests a stop after the iteration.

    The second signal drops the iteration: training ends with the previous one. SIGTERM and the time limit do the same
    after GRACE_PERIOD_S. The third signal raises `KeyboardInterrupt`, and so does the second if no iteration can be
    dropped: before and after `train`, and on mpi, where a rank that leaves a collective ends the job. SIGTERM repeated
    within seconds counts once (`SignalRepeatFilter`). Python delivers signals to the main thread only; in other threads
    only the time limit has an effect.
    """

    def __init__(self, time_limit_s: float | None = None) -> None:
        self._deadline = None if time_limit_s is None else time.monotonic() + time_limit_s
        self._reason = Interruption.NONE
        self._requested_at = 0.0
        self._previous: dict[signal.Signals, _Handler] = {}
        self._repeats = SignalRepeatFilter()
        self._counter = SignalCounter()
        self._comm: Backend | None = None
        self._is_iterating = False
        self._drop_requested = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._previous = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
            self._counter.start(_SIGNALS)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous = {}

    def allow_dropping(self, comm: Backend) -> None:
        """Allow iterations to be dropped, in the world of this communicator; not on mpi."""
        self._comm = None if comm.backend == "mpi" else comm

    @contextmanager
    def iterating(self) -> Iterator[None]:
        """Allow the iteration in the block to be dropped."""
        self._is_iterating = True
        try:
            self.check()
            yield
        finally:
            self._is_iterating = False

    def request_stop(self, why: Interruption = Interruption.INTERRUPTED) -> None:
        """Request a stop after this iteration, from any thread; later requests have no effect."""
        if self._reason is Interruption.NONE:
            self._reason, self._requested_at = why, time.monotonic()

    def is_requested(self) -> bool:
        """Return whether a signal, the time limit or the caller has requested a stop."""
        return self.interruption() is not Interruption.NONE

    def interruption(self) -> Interruption:
        """Return the reason of a requested stop; NONE without a request."""
        if self._reason is Interruption.NONE and self._deadline is not None and time.monotonic() >= self._deadline:
            return Interruption.TIME_LIMIT
        return self._reason

    def check(self) -> None:
        """Raise `IterationDropped` if the iteration must not be finished; the solver polls this."""
        if self._is_iterating and (reason := self._drop_reason()) is not Interruption.NONE:
            raise IterationDropped(reason)

    def raise_if_signalled_late(self, ended_by: StopKind) -> None:
        """Raise `KeyboardInterrupt` for a signal after the last iteration: later steps must not begin."""
        if ended_by.is_interruption:
            return
        for number, interruption in _SIGNALS.items():
            if self._reason is interruption:
                raise stop_exception(number)

    def no_policy_error(self, why: Interruption) -> BaseException:
        """Return the exception that ends a run whose first iteration was dropped."""
        if why is Interruption.TIME_LIMIT:
            return NoIterationError(
                "the time limit was reached before the first iteration was complete: there is no policy. "
                "Allow more time (--time-limit), or fewer forward passes"
            )
        return stop_exception(
            next((number for number, interruption in _SIGNALS.items() if interruption is why), signal.SIGINT)
        )

    def _drop_reason(self) -> Interruption:
        if self._comm is None:
            return Interruption.NONE
        if self._drop_requested:
            return self._reason
        now = time.monotonic()
        if self._reason is Interruption.TERMINATED and now >= self._requested_at + GRACE_PERIOD_S:
            return self._reason
        if self._deadline is not None and now >= self._deadline + GRACE_PERIOD_S:
            return Interruption.TIME_LIMIT
        return Interruption.NONE

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        for _arrival in range(self._counter.arrivals(number)):
            self._request(number)

    def _request(self, number: int) -> None:
        if self._repeats.is_repetition(number):
            return
        if self._reason in (Interruption.NONE, Interruption.REQUESTED):
            self._reason, self._requested_at = _SIGNALS[signal.Signals(number)], time.monotonic()
            return
        if self._drop_requested or self._comm is None:
            raise stop_exception(number)
        self._drop_requested = True
        # A rank that waits for another one is not polled by a solver. Between two calls an exception could interrupt an
        # operation that must be atomic.
        if self._is_iterating and self._comm.state == "busy":
            raise IterationDropped(self._reason)


# SIGTERM in scripts. `cobre.train` handles the signal and returns the policy so far. But the process was asked to end,
# and a script that trains in a loop would start the next training.

_is_terminated = False


def deliver_pending_sigterm(ended_by: StopKind | None) -> None:
    """Deliver the SIGTERM that ended a training to the script's own handler, if it has one.

    Without one the script continues, so that it can save the result, until it calls Cobre again (`exit_if_terminated`).
    """
    global _is_terminated  # noqa: PLW0603 - signals are process-wide
    if ended_by is not StopKind.TERMINATED:
        return
    handler = signal.getsignal(signal.SIGTERM)
    if handler is signal.SIG_DFL:
        _is_terminated = True
    elif callable(handler):
        signal.raise_signal(signal.SIGTERM)


def exit_if_terminated() -> None:
    """Raise SystemExit with the exit code of SIGTERM if it ended an earlier training; called before work begins.

    A script that has installed a handler in the meantime continues.
    """
    global _is_terminated  # noqa: PLW0603 - as above
    if not _is_terminated:
        return
    _is_terminated = False  # a notebook shows SystemExit and continues: its user decides
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        logger.warning("SIGTERM ended the last training: this process exits instead of starting more work")
        raise SystemExit(TERMINATED)
