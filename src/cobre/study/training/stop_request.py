"""Ctrl-C, SIGTERM and a time limit: remembered when they come, acted upon at the end of the iteration."""

import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

from cobre.comm.errors import stop_exception
from cobre.comm.launch.signals import SignalRepeatFilter
from cobre.sddp.training.hooks import Interruption

_Handler = Callable[[int, FrameType | None], Any] | int | None
_SIGNALS = {signal.SIGINT: Interruption.INTERRUPTED, signal.SIGTERM: Interruption.TERMINATED}


class StopRequest:
    """While its `with` block runs, the first SIGINT or SIGTERM asks to stop; the second one ends at once.

    SIGTERM that comes again within seconds is still the first one (`SignalRepeatFilter`).
    Signals are taken in the main thread only, as Python has it; elsewhere only the time limit counts.
    """

    def __init__(self, time_limit_s: float | None = None) -> None:
        self._deadline = None if time_limit_s is None else time.monotonic() + time_limit_s
        self._wanted = Interruption.NONE
        self._previous: dict[signal.Signals, _Handler] = {}
        self._requests = SignalRepeatFilter()

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._previous = {number: signal.signal(number, self._take) for number in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous = {}

    def ask(self, why: Interruption = Interruption.INTERRUPTED) -> None:
        """Ask to stop after this iteration, from any thread; asking again makes no difference."""
        if self._wanted is Interruption.NONE:
            self._wanted = why

    def is_wanted(self) -> bool:
        """Whether a signal, the time limit or a caller has asked for the end."""
        return self.interruption() is not Interruption.NONE

    def interruption(self) -> Interruption:
        """Why the run should end, as far as a signal, the time limit or a caller has asked; else NONE."""
        if self._wanted is Interruption.NONE and self._deadline is not None and time.monotonic() >= self._deadline:
            return Interruption.TIME_LIMIT
        return self._wanted

    def _take(self, number: int, _: FrameType | None) -> None:
        if self._requests.is_repetition(number):
            return
        if self._wanted not in (Interruption.NONE, Interruption.REQUESTED):
            raise stop_exception(number)
        self._wanted = _SIGNALS[signal.Signals(number)]
