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
from cobre.runs.labels import CONTROLLED, NOT_A_BOUND, PHASE_COLOURS
from cobre.runs.view import PHASES, RankTotal, RunView
from cobre.text import (
    bar,
    duration_compact,
    first_fitting,
    gap_percent,
    money,
    money_compact,
    printable_event,
    rate,
    sparkline,
)

WIDE = 72
FULL_WIDTH = 100
"""Maximum width: the eye loses track of longer lines."""

NAME_WIDTH = 12
NOTE_COLUMN = NAME_WIDTH + 25  # after a name and a value
CELL_PADDING = 2
MAX_SHOWN_RANKS = 8
STOPPING_TRAINING = "stopping after this iteration; Ctrl-C again ends at once"


def run_table(view: RunView, width: int, height: int, now: float, *, is_stopping: bool = False) -> RenderableType:
    """Lay out the state of a run for a terminal of that size. is_stopping: Ctrl-C was pressed."""
    notes = []
    if is_stopping and view.finished is None:
        notes = [_crop(STOPPING_TRAINING if view.phase == "training" else "stopping", "yellow")]
    if width < WIDE or height < 10:
        return Group(*_small_view(view, width, now), *notes)
    width = min(width, FULL_WIDTH) - 1
    ranks = max(1, min(MAX_SHOWN_RANKS, height - 11))
    steps = (_steps(view, width, now), *_progress(view, width - NAME_WIDTH, now))
    return Group(*_title(view), *steps, *_figures(view, width), *_loads(view, width, ranks), *notes)


def _title(view: RunView) -> list[Text]:
    started = view.started
    text = _dim(f"cobre {started.get('version', '')}  ")
    text.append(str(started.get("case", "")), style="bold")
    if "ranks" in started:
        text.append(f"  {workers_in_words(started)}", style="dim")
    reason = started.get("split_reason")
    return [text, _crop(str(reason), "dim")] if reason else [text]


def _steps(view: RunView, width: int, now: float) -> RenderableType:
    """Show the phase, its progress and its duration."""
    head = Text(f"{view.phase:<{NAME_WIDTH}}", style="red" if view.failed else "green")
    if (last := view.last) is None:
        head.append(duration_compact(view.seconds(now)))
        if (seconds_left := view.seconds_left) is not None and view.iteration_limit != 1:
            head.append(
                f", about {duration_compact(seconds_left)} left for {view.iteration_limit} iterations", style="dim"
            )
        return head
    count = f"{last['iteration']}" + (f" of {view.iteration_limit}" if view.iteration_limit else "")
    head.append(f"iteration {count}", style="bold")
    tail = Text(f"{rate(view.iterations_per_s, 'it')}   {duration_compact(view.seconds(now))}")
    if (seconds_left := view.seconds_left) is not None and seconds_left > 0:
        tail.append(f", {duration_compact(seconds_left)} left", style="dim")
    room = width - len(head) - len(tail) - 2 * CELL_PADDING
    if view.resumed is not None and len(resumed := f" (resumed after {view.resumed['iteration']})") <= room:
        head.append(resumed, style="dim")
        room -= len(resumed)
    row = Table.grid(padding=(0, CELL_PADDING))
    row.add_row(head, _progress_bar(view, room - 2), tail)
    return row


def _progress(view: RunView, room: int, now: float) -> Iterator[Text]:
    """Show the progress of the current iteration, once it has taken a second; at first the estimate.

    room: columns of a line. If the line is too long, the number of LPs is left out, not the time left.
    """
    if view.preparation is not None and view.finished is None and view.failed is None:
        yield _crop(f"{'':<{NAME_WIDTH}}{view.preparation_in_words}", "dim")
    if view.estimate is not None and view.last is None and view.finished is None:
        for line in textwrap.wrap(f"{view.estimate_in_words}{trial_advice(view.estimate)}", room):
            yield _crop(f"{'':<{NAME_WIDTH}}{line}", "dim")
    if view.progress is None or view.phase != "training":
        return
    pace = f", {rate(number_of(view.progress.get('solves_per_s')), 'LPs')}"
    if (seconds_left := number_of(view.progress.get("seconds_left"))) is not None:
        seconds_left = max(0.0, seconds_left - max(0.0, now - view.last_time))
        pace += f", {duration_compact(seconds_left)} left"
    words = first_fitting(room - len(pace), view.progress_in_words, view.progress_in_brief)
    yield _dim(f"{'':<{NAME_WIDTH}}").append(words).append(pace, style="dim")


def _progress_bar(view: RunView, width: int) -> RenderableType:
    if not view.iteration_limit or view.last is None or width < 8:
        return Text("")
    return ProgressBar(total=view.iteration_limit, completed=view.last["iteration"], width=min(width, 40))


def _figures(view: RunView, width: int) -> Iterator[RenderableType]:
    if (last := view.last) is not None:
        yield from _bounds(view, last, width)
    if view.simulated is not None:
        simulated = view.simulated
        spread = _half_width(simulated["half_width"])
        yield _row(
            "simulated", f"{money(simulated['mean_cost']):>20} $", f"{spread}, {simulated['scenarios']} scenarios"
        )
        if simulated.get("controlled_mean_cost") is not None:
            spread = _half_width(simulated.get("controlled_half_width"))
            note = first_fitting(width - NOTE_COLUMN, f"{spread}, {CONTROLLED}", spread)
            yield _row("controlled", f"{money(simulated['controlled_mean_cost']):>20} $", note)
    if view.last is not None:
        yield _phases(view)


def _bounds(view: RunView, last: Event, width: int) -> Iterator[RenderableType]:
    line = sparkline(view.series("lower_bound"), width - NOTE_COLUMN - 3)
    yield _row("lower bound", f"{money(last['lower_bound']):>20} $", line, "cyan")
    yield _row(view.path_costs.name, f"{money(last['upper_bound']):>20} $", _spread(view, last["half_width"]))
    if (bound := view.computed_bound) is not None:
        name = "policy cost" if bound.method == BoundMethod.SAMPLED else "upper bound"
        yield _row(name, f"{money(bound.value):>20} $", _bound_note(bound))
    gap = "-" if view.gap is None else gap_percent(view.gap)
    limit = (
        "" if bound is None or view.gap is None or not bound.gap_limit else f"{bound.gap_limit.partition(' (')[0]}, "
    )
    advice = "; `cobre bound` computes a bound" if view.gap is None else ""
    cuts, pace = f"{last['cuts']:,} cuts", rate(view.solves_per_s, "LPs")
    note = first_fitting(
        width - NOTE_COLUMN,
        f"{limit}{cuts} per stage, {pace}{advice}",
        f"{limit}{cuts}, {pace}{advice}",
        f"{limit}{cuts}{advice}",
    )
    yield _row("gap", f"{gap:>22}", note)


def _bound_note(bound: ComputedBound) -> str:
    """Return the note next to a bound: the interval of a sample, else the method."""
    if bound.confidence is None:
        return BOUND_NAMES[bound.method]
    return f"± {money_compact(bound.half_width)} (estimated, {100 * bound.confidence:g} %)"


def _spread(view: RunView, half_width: float | None) -> str:
    if view.is_exact:
        return "exact: all paths"
    if not view.path_costs.is_bound:
        return f"± {money_compact(half_width)} ({NOT_A_BOUND})"
    return _half_width(half_width)


def _half_width(value: float | None) -> str:
    return f"± {money_compact(value)} (sampled, 95 %)"


def _row(name: str, value: str, note: str, note_style: str = "dim") -> RenderableType:
    text = _dim(f"{name:<{NAME_WIDTH}}")
    return text.append(value, style="bold").append("   ").append(note, style=note_style)


def _phases(view: RunView) -> Text:
    """Show shares of training time by phase: forward, backward, bound, exchange."""
    total = sum(view.phase_seconds.values()) or 1.0
    text = _dim(f"{'time':<{NAME_WIDTH}}")
    for name in PHASES:
        share = view.phase_seconds[name] / total
        text.append(f"{name} ", style=PHASE_COLOURS[name]).append(f"{100 * share:.0f} %   ", style="bold")
    return text


def _loads(view: RunView, width: int, max_ranks: int) -> Iterator[Text]:
    """Show each rank's share of busy time; of many ranks, the busiest, which the others wait for."""
    if len(view.loads) < 2:
        return
    order = sorted(range(len(view.loads)), key=lambda rank: -view.loads[rank].busy_s)
    busiest = sorted(order[:max_ranks])
    for rank in busiest:
        yield _load(f"rank {rank}", view.loads[rank], width - NAME_WIDTH - 12)
    if hidden := len(order) - len(busiest):
        yield _dim(f"{'':<{NAME_WIDTH}}and {hidden} ranks with less to do")


def _load(name: str, total: RankTotal, width: int) -> Text:
    share = total.busy_share
    text = _dim(f"{name:<{NAME_WIDTH}}")
    return text.append(bar(share, min(width, 50)), style="green").append(f" {100 * share:3.0f} % busy", style="dim")


def _small_view(view: RunView, width: int, now: float) -> Iterator[Text]:
    """Yield the run in a few short lines, for terminals too small for the table."""
    last = view.last
    if last is None:
        yield _crop(f"{view.phase} {duration_compact(view.seconds(now))}")
        if view.progress is not None:
            yield _crop(first_fitting(width - 1, view.progress_in_words, view.progress_in_brief))
        yield from _small_simulation(view)
        return
    limit = f"/{view.iteration_limit}" if view.iteration_limit else ""
    yield _crop(f"{view.phase} {last['iteration']}{limit}  {duration_compact(view.seconds(now))}", "bold")
    yield _crop(f"lower {money_compact(last['lower_bound'])}")
    spread = " (exact)" if view.is_exact else f" ± {money_compact(last['half_width'])}"
    yield _crop(f"{'upper' if view.path_costs.is_bound else 'mean '} {money_compact(last['upper_bound'])}{spread}")
    if view.gap is not None:
        yield _crop(f"gap   {gap_percent(view.gap)}")
    yield _crop(sparkline(view.series("lower_bound"), width - 1), "cyan")
    if len(view.loads) > 1:
        shares = [100 * total.busy_share for total in view.loads]
        yield _crop(f"ranks {min(shares):.0f} to {max(shares):.0f} % busy", "dim")
    yield from _small_simulation(view)


def _small_simulation(view: RunView) -> Iterator[Text]:
    if view.simulated is not None:
        yield _crop(
            f"simulated {money_compact(view.simulated['mean_cost'])} ± {money_compact(view.simulated['half_width'])}"
        )


def _dim(text: str) -> Text:
    """Return dim text on one line, to which text in other styles is appended."""
    return Text(no_wrap=True, overflow="ellipsis").append(text, style="dim")


def _crop(text: str, style: str = "") -> Text:
    return Text(text, style=style, no_wrap=True, overflow="crop")


# The display: the table is redrawn at most twice a second, and less often where drawing is slow.

MIN_INTERVAL_S = 0.5
MAX_CPU_SHARE = 0.003
"""Maximum share of one core that drawing may take."""


class LiveProgress:
    """A live table, drawn by its own thread so that a run never waits for a terminal."""

    has_shown_bounds = True

    def __init__(self, stream: IO[str] | None = None) -> None:
        self.has_events = False
        self._console = Console(file=stream or sys.stdout, highlight=False)
        self._view = RunView()
        self._lock = threading.Lock()
        self._live: Live | None = None
        self._start_time: float | None = None
        self._signals: SignalWatcher | None = None
        self._stop = threading.Event()
        self._drawer = threading.Thread(target=self._draw_until_stopped, name="cobre-progress", daemon=True)

    def expect(self, case: str) -> None:
        """Open the table with the case's name while workers are being started."""
        self._start_time = time.time()
        self._signals = SignalWatcher()
        self._view.take({"event": "run_started", "time": self._start_time, "case": case, "version": __version__})
        self._open_display()

    def emit(self, event: "Event") -> None:
        """Add an event to the table; warnings are printed above it."""
        self.has_events = True
        event = printable_event(event)
        if event["event"] == "run_started" and self._start_time is not None:
            event = {**event, "time": self._start_time}  # the user has been waiting since then
        with self._lock:
            self._view.take(event)
        if self._live is None:
            self._open_display()
        if event["event"] == "warning":
            self._console.print(f"warning: {event['message']}", style="yellow", markup=False)

    def close(self) -> None:
        """Draw the final table, which stays on the screen, and restore the terminal."""
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
        """Draw the table; return the CPU time in seconds."""
        start_s = time.thread_time()
        with self._lock:
            is_stopping = self._signals is not None and self._signals.has_arrived()
            table = run_table(self._view, *self._console.size, time.time(), is_stopping=is_stopping)
        if self._live is not None:
            self._live.update(table, refresh=True)
        return time.thread_time() - start_s
