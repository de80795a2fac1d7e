"""A run on a terminal: a table that is drawn over itself a few times a second, at a cost that is kept small."""

import contextlib
import sys
import threading
import time
from typing import IO, TYPE_CHECKING

from rich.console import Console
from rich.live import Live

from cobre import __version__
from cobre.cli.run_table import run_table
from cobre.cli.signal_watcher import SignalWatcher
from cobre.runs.formatting import printable_event
from cobre.runs.view import RunView

if TYPE_CHECKING:
    from cobre.runs.events import Event

MIN_INTERVAL_S = 0.5
MAX_CPU_SHARE = 0.003
"""Largest share of one core that drawing may take: a slow terminal is drawn less often."""


class LiveProgress:
    """Events change the picture; a thread of its own draws it, so that a run never waits for a terminal."""

    has_shown_bounds = True

    def __init__(self, stream: IO[str] | None = None) -> None:
        self.has_events = False
        self._console = Console(file=stream or sys.stdout, highlight=False)
        self._view = RunView()
        self._lock = threading.Lock()
        self._live: Live | None = None
        self._began: float | None = None
        self._signals: SignalWatcher | None = None
        self._stop = threading.Event()
        self._drawer = threading.Thread(target=self._draw_until_stopped, name="cobre-progress", daemon=True)

    def expect(self, case: str) -> None:
        """Open the table with the case's name while workers are being started."""
        self._began = time.time()
        self._signals = SignalWatcher()
        self._view.take({"event": "run_started", "time": self._began, "case": case, "version": __version__})
        self._open()

    def emit(self, event: "Event") -> None:
        """Take an event; warnings stay on the screen above the table."""
        self.has_events = True
        event = printable_event(event)
        if event["event"] == "run_started" and self._began is not None:
            event = {**event, "time": self._began}  # the user has been waiting since then
        with self._lock:
            self._view.take(event)
        if self._live is None:
            self._open()
        if event["event"] == "warning":
            self._console.print(f"warning: {event['message']}", style="yellow", markup=False)

    def close(self) -> None:
        """Draw the last picture, which stays, and give the terminal back."""
        self._stop.set()
        if self._live is None:
            return
        self._drawer.join(timeout=5.0)
        with contextlib.suppress(OSError):  # the terminal may be gone; the run is not
            self._draw()
            self._live.stop()
        self._live = None
        if self._signals is not None:
            self._signals.close()
            self._signals = None

    def _open(self) -> None:
        self._live = Live(console=self._console, auto_refresh=False, vertical_overflow="crop")
        self._live.start()
        self._drawer.start()

    def _draw_until_stopped(self) -> None:
        interval_s = 0.0
        while not self._stop.wait(interval_s):
            try:
                cost_s = self._draw()
            except OSError:
                return
            interval_s = max(MIN_INTERVAL_S, cost_s / MAX_CPU_SHARE)

    def _draw(self) -> float:
        """Draw the table; returns the CPU time that it took."""
        began = time.thread_time()
        with self._lock:
            is_stopping = self._signals is not None and self._signals.has_arrived()
            table = run_table(self._view, *self._console.size, time.time(), is_stopping=is_stopping)
        if self._live is not None:
            self._live.update(table, refresh=True)
        return time.thread_time() - began
