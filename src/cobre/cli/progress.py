"""Progress display of a run: a live table on a terminal, lines in a log, or warnings only."""

import os
import shutil
import signal
import sys
import threading
from typing import IO, TYPE_CHECKING, Protocol

from cobre.cli.standard_streams import echo
from cobre.runs.formatting import duration, rate, short_money
from cobre.wording import gap_percent, money

if TYPE_CHECKING:
    from cobre.core.verdict import PathCosts
    from cobre.runs.events import Event


def header(upper_bound: str) -> str:
    """Return the headings above the lines of iterations."""
    return f"{'iteration':>9}  {'lower bound $':>20}  {upper_bound:>24}  {'+- 95 %':>15}  {'cuts':>7}  {'s':>8}"


_WIDTH = len(header(""))
_FIRST_LINE_S = 10.0
_LINE_INTERVAL_S = 60.0
_STEP_INTERVAL_S = 10.0
_LONG_S = 600.0
_EARLIER = 20


class Progress(Protocol):
    """A display of a run: takes every event, and is closed at the end."""

    has_events: bool
    """Whether this process shows the run: only that of rank 0 gets events."""
    has_shown_bounds: bool
    """Whether the last bounds are on the screen already."""

    def expect(self, case: str) -> None:
        """Announce the case before workers are started, whose first event takes a second or two."""

    def emit(self, event: "Event") -> None:
        """Show one event of the run."""

    def close(self) -> None:
        """End the display; no more events come."""


def choose_progress(*, plain: bool, quiet: bool, stream: IO[str] | None = None) -> Progress:
    """Return a live table where it can be drawn, else lines; with `--quiet`, warnings only."""
    stream = stream or sys.stdout
    if quiet:
        return QuietProgress()
    if plain or not can_draw(stream):
        return LineProgress(stream)
    from cobre.cli.run_table import LiveProgress

    return LiveProgress(stream)


def can_draw(stream: IO[str]) -> bool:
    """Return whether a table can be drawn over itself: a terminal with cursor control and more than ASCII."""
    if not stream.isatty() or os.environ.get("TERM", "dumb") in ("dumb", "unknown", ""):
        return False
    return (getattr(stream, "encoding", "") or "").lower().replace("-", "") == "utf8"


class QuietProgress:
    """Warnings on standard error, and nothing else."""

    has_shown_bounds = False

    def __init__(self) -> None:
        self.has_events = False

    def expect(self, case: str) -> None:
        """Do nothing: the first event says that the run has started."""

    def emit(self, event: "Event") -> None:
        """Print the event if it is a warning."""
        self.has_events = True
        if event["event"] == "warning":
            echo(f"warning: {event['message']}", err=True)

    def close(self) -> None:
        """Do nothing: there is no display to close."""


class LineProgress:
    """One line for each iteration: the same in a log as on a terminal, where lines that do not fit are shorter."""

    has_shown_bounds = False

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._stream = stream or sys.stdout
        from cobre.runs.view import RunView  # its NumPy would delay every other command

        self._view = RunView()
        self._is_narrow = self._stream.isatty() and shutil.get_terminal_size().columns < _WIDTH
        self.has_events = False
        self._shown_iteration = 0
        self._next_line_s = _FIRST_LINE_S
        self._shown_step = ""
        self._next_step_s = 0.0

    def expect(self, case: str) -> None:
        """Do nothing: the first event says that the run has started."""

    def emit(self, event: "Event") -> None:
        """Print the line of an event; events without one are ignored."""
        self.has_events = True
        self._view.take(event)
        match event["event"]:
            case "warning":
                echo(f"warning: {event['message']}", err=True)
            case "run_started":
                self._print(f"cobre {event['version']}: {event['case']}, {workers_in_words(event)}")
                if reason := event.get("split_reason"):
                    self._print(f"  {reason}")
            case "phase":
                self._announce(event)
            case "resumed":
                self._show_earlier(event)
            case "progress":
                self._print_progress(event)
            case "preparation":
                self._print_preparation(event)
            case "estimate":
                self._print(f"  {self._view.estimate_in_words}{trial_advice(event)}")
            case "iteration":
                self._print(_short_line(event, self._view.gap) if self._is_narrow else _line(event))

    def close(self) -> None:
        """Do nothing: there is no display to close."""

    def _announce(self, event: "Event") -> None:
        self._print(f"{event['name']} ...")
        if event["name"] == "training" and not self._is_narrow:
            costs = "cost of the policy $" if self._view.has_policy_cost else _heading(self._view.path_costs)
            self._print(header(costs))

    def _show_earlier(self, event: "Event") -> None:
        """Print the last iterations before a resume, and where training continues."""
        for iteration in self._view.iterations[-_EARLIER:]:
            self._print(_short_line(iteration, iteration.get("policy_gap")) if self._is_narrow else _line(iteration))
        self._print(f"  resumed after iteration {event['iteration']}")

    def _print_preparation(self, event: "Event") -> None:
        """Print a line for each step, and within one every ten seconds."""
        if event["step"] == self._shown_step and event["elapsed_s"] < self._next_step_s:
            return
        self._shown_step, self._next_step_s = event["step"], event["elapsed_s"] + _STEP_INTERVAL_S
        self._print(f"  {self._view.preparation_in_words} ({duration(event['elapsed_s'])})")

    def _print_progress(self, event: "Event") -> None:
        """Print a line after ten seconds of an iteration and then every minute, so that logs stay short."""
        if event["iteration"] != self._shown_iteration:
            self._shown_iteration, self._next_line_s = event["iteration"], _FIRST_LINE_S
        if event["elapsed_s"] < self._next_line_s:
            return
        self._next_line_s = event["elapsed_s"] + _LINE_INTERVAL_S
        parts = [self._view.progress_in_words, rate(event["solves_per_s"], "LPs")]
        if (left := event.get("seconds_left")) is not None:
            parts.append(f"{duration(left)} left")
        if (study_left := self._view.seconds_left) is not None and self._view.iteration_limit != 1:
            parts.append(f"training {duration(study_left)}")
        self._print(f"  {', '.join(parts)}")

    def _print(self, text: str) -> None:
        echo(text, file=self._stream)


def trial_advice(event: "Event") -> str:
    """Return how to try a study first whose estimate is longer than ten minutes; else nothing."""
    if (event.get("seconds") or 0.0) < _LONG_S:
        return ""
    return "; for a trial of minutes add --iterations 2 --forward-passes 2 --scenarios 10"


def workers_in_words(event: "Event") -> str:
    """Describe the processes and threads of a run, from its `run_started` event."""
    threads = f"{event['threads']} thread{'s' * (event['threads'] > 1)}"
    return f"{event['ranks']} workers ({event['backend']}), {threads} each" if event["ranks"] > 1 else threads


def _heading(costs: "PathCosts") -> str:
    return f"{costs.name} $ ({costs.label if costs.is_bound else 'not a bound'})"


def _line(event: "Event") -> str:
    """Return the line of an iteration, with the cost of the policy where it is known, else the mean of the paths."""
    cost, half_width = event["upper_bound"], event["half_width"]
    if event.get("policy_cost_paths"):
        cost, half_width = event["policy_cost"], event["policy_cost_half_width"]
    spread = "-" if half_width is None else money(half_width, 0)
    return (
        f"{event['iteration']:>9}  {money(event['lower_bound']):>20}  {money(cost):>24}  "
        f"{spread:>15}  {event['cuts']:>7}  {event['elapsed_s']:>8.2f}"
    )


def _short_line(event: "Event", gap: float | None) -> str:
    line = f"{event['iteration']:>5} {short_money(event['lower_bound']):>13}"
    return line if gap is None else f"{line} {gap_percent(gap):>9}"


# Notices SIGINT and SIGTERM beside their handlers, so that a display can say that a run is stopping.


class SignalWatcher:
    """A watcher of signals, whose numbers Python writes into a pipe; handlers are not changed."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self._previous: int | None = None
        if threading.current_thread() is threading.main_thread():  # elsewhere Python refuses
            self._previous = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        self._received = False

    def has_arrived(self) -> bool:
        """Return whether SIGINT or SIGTERM has arrived."""
        try:
            numbers = os.read(self._reader, 4096)
        except BlockingIOError:
            numbers = b""
        self._received |= any(number in (signal.SIGINT, signal.SIGTERM) for number in numbers)
        return self._received

    def close(self) -> None:
        """Close the pipe, and restore the previous wakeup descriptor."""
        if self._previous is not None:
            signal.set_wakeup_fd(self._previous)
        os.close(self._reader)
        os.close(self._writer)
