"""Progress before the first iteration: events that say what is being done, and how far it is.

Steps of small cases are over before anybody could read of them, so an event is emitted when a step has begun or goes on
and half a second has passed since the last one. The functions that prepare call back once for each stage; that is all
it costs.
"""

import time

from cobre.core.steps import Step
from cobre.runs.events import EventListener, new_event

INTERVAL_S = 0.5
"""Shortest time between two events."""


class PreparationProgress:
    """Emits `preparation` events; an object of this class is a `Report`."""

    def __init__(self, emit: EventListener) -> None:
        self._emit = emit
        self._began = time.monotonic()
        self._next = self._began + INTERVAL_S

    def __call__(self, step: Step, done: int = 0, total: int = 0) -> None:
        """Take a step, and emit an event if one is due."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + INTERVAL_S
        parts = {"done": done, "total": total} if total else {}
        self._emit(new_event("preparation", step=step.value, elapsed_s=now - self._began, **parts))
