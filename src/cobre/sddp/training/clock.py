"""Measures where the time of an iteration goes."""

import time


class Clock:
    """Wall seconds of this rank by phase, and of each piece of work between two exchanges."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self.seconds = dict.fromkeys(("forward", "backward", "bound", "exchange"), 0.0)
        self.work: list[float] = []

    def lap(self, phase: str) -> None:
        """Everything since the last lap was this phase."""
        now = time.monotonic()
        elapsed, self._last = now - self._last, now
        self.seconds[phase] += elapsed
        if phase != "exchange":
            self.work.append(elapsed)
