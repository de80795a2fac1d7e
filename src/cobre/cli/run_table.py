"""Live table of a run: bounds, gap, time by phase and load of each rank, fitted to the size of the terminal."""

import contextlib
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from typing import IO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from cobre import __version__
from cobre.cli.run_output import SignalWatcher, trial_advice, workers_in_words
from cobre.core.bounds import BOUND_NAMES, BoundMethod
from cobre.core.verdict import ComputedBound
from cobre.runs.events import Event, number_of
from cobre.runs.formatting import (
    CONTROLLED,
    NOT_A_BOUND,
    PHASE_COLOURS,
    bar,
    duration,
    printable_event,
    rate,
    short_money,
    sparkline,
)
from cobre.runs.view import PHASES, RankTotal, RunView
from cobre.wording import gap_percent, money

WIDE = 72
FULL_WIDTH = 100
"""No wider than this, however wide the terminal is: eyes lose the line."""

NAME_WIDTH = 12
MAX_RANKS = 8
STOPPING = "stopping after this iteration; Ctrl-C again ends at once"


def run_table(view: RunView, width: int, height: int, now: float, *, is_stopping: bool = False) -> RenderableType:
    """Lay out the state of a run for a terminal of that size. is_stopping: Ctrl-C was pressed."""
    notes = [_short(STOPPING, "yellow")] if is_stopping and view.finished is None else []
    if width < WIDE or height < 10:
        return Group(*_small_view(view, width, now), *notes)
    width = min(width, FULL_WIDTH) - 1
    ranks = max(1, min(MAX_RANKS, height - 11))
    steps = (_steps(view, width, now), *_progress(view, width - NAME_WIDTH, now))
    return Group(*_title(view), *steps, *_figures(view, width), *_loads(view, width, ranks), *notes)


def _title(view: RunView) -> list[Text]:
    started = view.started
    text = _line(f"cobre {started.get('version', '')}  ")
    text.append(str(started.get("case", "")), style="bold")
    if "ranks" in started:
        text.append(f"  {workers_in_words(started)}", style="dim")
    reason = started.get("split_reason")
    return [text, _short(str(reason), "dim")] if reason else [text]


def _steps(view: RunView, width: int, now: float) -> RenderableType:
    """Show the phase, its progress and its duration."""
    head = Text(f"{view.phase:<{NAME_WIDTH}}", style="red" if view.failed else "green")
    if (last := view.last) is None:
        head.append(duration(view.seconds(now)))
        if (left := view.seconds_left) is not None and view.iteration_limit != 1:
            head.append(f", about {duration(left)} left for {view.iteration_limit} iterations", style="dim")
        return head
    count = f"{last['iteration']}" + (f" of {view.iteration_limit}" if view.iteration_limit else "")
    head.append(f"iteration {count}", style="bold")
    if view.resumed is not None:
        head.append(f" (resumed after {view.resumed['iteration']})", style="dim")
    tail = Text(f"{rate(view.iterations_per_s, 'it')}   {duration(view.seconds(now))}")
    if (left := view.seconds_left) is not None and left > 0:
        tail.append(f", {duration(left)} left", style="dim")
    row = Table.grid(padding=(0, 2))
    row.add_row(head, _progress_bar(view, width - len(head) - len(tail) - 6), tail)
    return row


def _progress(view: RunView, room: int, now: float) -> Iterator[Text]:
    """Show the progress of the present iteration, once it has taken a second; at first the estimate.

    room: columns of a line. Where the number of LPs does not fit, it is left out, not the time left.
    """
    if view.preparation is not None and view.finished is None and view.failed is None:
        yield _short(f"{'':<{NAME_WIDTH}}{view.preparation_in_words}", "dim")
    if view.estimate is not None and view.last is None and view.finished is None:
        for line in textwrap.wrap(f"{view.estimate_in_words}{trial_advice(view.estimate)}", room):
            yield _short(f"{'':<{NAME_WIDTH}}{line}", "dim")
    if view.progress is None or view.phase != "training":
        return
    pace = f", {rate(number_of(view.progress.get('solves_per_s')), 'LPs')}"
    if (left := number_of(view.progress.get("seconds_left"))) is not None:
        left = max(0.0, left - max(0.0, now - view.last_time))
        pace += f", {duration(left)} left"
    full = view.progress_in_words
    words = full if len(full) + len(pace) <= room else view.progress_in_brief
    yield _line(f"{'':<{NAME_WIDTH}}").append(words).append(pace, style="dim")


def _progress_bar(view: RunView, width: int) -> RenderableType:
    if not view.iteration_limit or view.last is None or width < 8:
        return Text("")
    return ProgressBar(total=view.iteration_limit, completed=view.last["iteration"], width=min(width, 40))


def _figures(view: RunView, width: int) -> Iterator[RenderableType]:
    if (last := view.last) is not None:
        yield from _bounds(view, last, width)
    if view.simulated is not None:
        simulated = view.simulated
        mean = _half_width(simulated["half_width"]).append(f", {simulated['scenarios']} scenarios", style="dim")
        yield _row("simulated", f"{money(simulated['mean_cost']):>20} $", mean)
        if simulated.get("controlled_mean_cost") is not None:
            spread = _half_width(simulated.get("controlled_half_width")).append(f", {CONTROLLED}", style="dim")
            yield _row("", f"{money(simulated['controlled_mean_cost']):>20} $", spread)
    if view.last is not None:
        yield _phases(view)


def _bounds(view: RunView, last: Event, width: int) -> Iterator[RenderableType]:
    line = sparkline(view.series("lower_bound"), width - NAME_WIDTH - 28)
    yield _row("lower bound", f"{money(last['lower_bound']):>20} $", Text(line, style="cyan"))
    yield _row(view.path_costs.name, f"{money(last['upper_bound']):>20} $", _spread(view, last["half_width"]))
    effort = f"{last['cuts']:,} cuts per stage, {rate(view.solves_per_s, 'LPs')}"
    if (found := view.computed_bound) is not None:
        yield _row(_bound_name(found), f"{money(found.value):>20} $", _bound_note(found))
    if view.gap is not None:
        limit = "" if found is None or not found.gap_limit else f"{found.gap_limit.partition(' (')[0]}, "
        yield _row("gap", f"{gap_percent(view.gap):>22}", Text(f"{limit}{effort}", style="dim"))
    else:
        yield _row("gap", f"{'-':>22}", Text(f"{effort}; `cobre bound` computes a bound", style="dim"))


def _bound_name(found: ComputedBound) -> str:
    return "policy cost" if found.method == BoundMethod.SAMPLED else "upper bound"


def _bound_note(found: ComputedBound) -> Text:
    """Describe a bound beside its value: the interval of a sample, else how it was computed."""
    if found.confidence is None:
        return Text(BOUND_NAMES[found.method], style="dim")
    return Text(f"± {short_money(found.half_width)} (estimated, {100 * found.confidence:g} %)", style="dim")


def _spread(view: RunView, half_width: float | None) -> Text:
    if view.is_exact:
        return Text("exact: all paths", style="dim")
    if not view.path_costs.is_bound:
        return Text(f"± {short_money(half_width)} ({NOT_A_BOUND})", style="dim")
    return _half_width(half_width)


def _half_width(value: float | None) -> Text:
    return Text(f"± {short_money(value)} (sampled, 95 %)", style="dim")


def _row(name: str, value: str, note: Text) -> RenderableType:
    text = _line(f"{name:<{NAME_WIDTH}}")
    return text.append(value, style="bold").append("   ").append(note)


def _phases(view: RunView) -> Text:
    """Show shares of training time by phase: forward, backward, bound, exchange."""
    total = sum(view.phase_seconds.values()) or 1.0
    text = _line(f"{'time':<{NAME_WIDTH}}")
    for name in PHASES:
        share = view.phase_seconds[name] / total
        text.append(f"{name} ", style=PHASE_COLOURS[name]).append(f"{100 * share:.0f} %   ", style="bold")
    return text


def _loads(view: RunView, width: int, max_ranks: int) -> Iterator[Text]:
    """Show each rank's share of busy time; of many, those that the others wait for."""
    if len(view.loads) < 2:
        return
    order = sorted(range(len(view.loads)), key=lambda rank: -view.loads[rank].busy_s)
    shown = sorted(order[:max_ranks])
    for rank in shown:
        yield _load(f"rank {rank}", view.loads[rank], width - NAME_WIDTH - 12)
    if hidden := len(order) - len(shown):
        yield Text(f"{'':<{NAME_WIDTH}}and {hidden} ranks with less to do", style="dim")


def _load(name: str, total: RankTotal, width: int) -> Text:
    share = total.busy_share
    text = _line(f"{name:<{NAME_WIDTH}}")
    return text.append(bar(share, min(width, 50)), style="green").append(f" {100 * share:3.0f} % busy", style="dim")


def _small_view(view: RunView, width: int, now: float) -> Iterator[Text]:
    """Yield the run in a few short lines, for terminals too small for the table."""
    last = view.last
    if last is None:
        yield _short(f"{view.phase} {duration(view.seconds(now))}")
        if view.progress is not None:
            yield _short(view.progress_in_words if len(view.progress_in_words) < width else view.progress_in_brief)
        yield from _small_simulation(view)
        return
    of = f"/{view.iteration_limit}" if view.iteration_limit else ""
    yield _short(f"{view.phase} {last['iteration']}{of}  {duration(view.seconds(now))}", "bold")
    yield _short(f"lower {short_money(last['lower_bound'])}")
    spread = " (exact)" if view.is_exact else f" ± {short_money(last['half_width'])}"
    yield _short(f"{'upper' if view.path_costs.is_bound else 'mean '} {short_money(last['upper_bound'])}{spread}")
    if view.gap is not None:
        yield _short(f"gap   {gap_percent(view.gap)}")
    yield _short(sparkline(view.series("lower_bound"), width - 1), "cyan")
    if len(view.loads) > 1:
        shares = [100 * total.busy_share for total in view.loads]
        yield _short(f"ranks {min(shares):.0f} to {max(shares):.0f} % busy", "dim")
    yield from _small_simulation(view)


def _line(name: str) -> Text:
    """Return a name in dim style, to which values of other styles are appended."""
    return Text(no_wrap=True, overflow="ellipsis").append(name, style="dim")


def _small_simulation(view: RunView) -> Iterator[Text]:
    if view.simulated is not None:
        yield _short(
            f"simulated {short_money(view.simulated['mean_cost'])} ± {short_money(view.simulated['half_width'])}"
        )


def _short(text: str, style: str = "") -> Text:
    return Text(text, style=style, no_wrap=True, overflow="crop")


# A run on a terminal: a table that is drawn over itself a few times a second, at a cost that is kept small.

MIN_INTERVAL_S = 0.5
MAX_CPU_SHARE = 0.003
"""Largest share of one core that drawing may take: a slow terminal is drawn less often."""


class LiveProgress:
    """A live table, drawn by its own thread so that a run never waits for a terminal."""

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
        self._open_display()

    def emit(self, event: "Event") -> None:
        """Take an event; warnings stay on the screen above the table."""
        self.has_events = True
        event = printable_event(event)
        if event["event"] == "run_started" and self._began is not None:
            event = {**event, "time": self._began}  # the user has been waiting since then
        with self._lock:
            self._view.take(event)
        if self._live is None:
            self._open_display()
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

    def _open_display(self) -> None:
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
