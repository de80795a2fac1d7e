"""Panels of `cobre top`: status line, figures of the run, load of each rank, plot of the bounds, and log lines."""

import time
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import Any

from rich.text import Text
from textual_plotext import PlotextPlot

from cobre.records import dataclass
from cobre.runs.events import Event, number_of
from cobre.runs.labels import PHASE_COLOURS
from cobre.runs.run_state import RunState
from cobre.runs.view import PHASES, RankTotal, RunView
from cobre.text import (
    bar,
    duration_compact,
    first_fitting,
    gap_percent,
    money,
    money_compact,
    printable,
    rate,
    vertical_bar,
)

COLOURS = {
    RunState.RUNNING: "green",
    RunState.FINISHED: "cyan",
    RunState.STOPPED: "yellow",
    RunState.FAILED: "red",
    RunState.KILLED: "yellow",
}

NAME_WIDTH = 12


def status_line(view: RunView, folder: Path, state: RunState, width: int, *, is_paused: bool) -> Text:
    """Return the state in one line; a path that is too long is shortened to its last name."""
    text = Text(no_wrap=True, overflow="ellipsis").append(f" {state.words} ", style=f"reverse {COLOURS[state]}")
    tail = Text(f"  {view.phase}" if state is RunState.RUNNING else "")
    tail.append(f"  {duration_compact(_seconds(view, state))}", style="dim")
    if is_paused:
        tail.append("  paused", style="bold yellow")
    case = str(view.started.get("case", folder))
    room = max(1, width - len(text) - len(tail) - 1)
    text.append(f" {first_fitting(room, case, Path(case).name)[:room]}", style="bold")
    return text.append(tail)


def _seconds(view: RunView, state: RunState) -> float:
    """Return the duration of the run in seconds, until now or, if it is not running, until its last event."""
    return view.seconds(time.time() if state is RunState.RUNNING else view.last_time)


def figures(view: RunView, state: RunState, width: int) -> Text:
    """Draw the panel of numbers: bounds, gap, cuts, solver work and times, one per line."""
    text = Text()
    if view.failed is not None:
        text.append(f"{view.failed.get('error')}\n\n", style="red")
    if state is RunState.KILLED:
        text.append(f"{killed_hint(view)}\n\n", style="yellow")
    is_elsewhere = state is RunState.RUNNING and view.last_activity.is_elsewhere
    if is_elsewhere:
        text.append(f"on {view.last_activity.host}, last event {_ago(view)} ago\n\n", style="dim")
    if (last := view.last) is None:
        text.append(f"{view.no_bounds_reason}\n", style="dim")
        return _append_rows(text, _rows_of_later_phases(view, width - NAME_WIDTH))
    limit = f" of {view.iteration_limit}" if view.iteration_limit else ""
    room = width - NAME_WIDTH
    pace = rate(view.iterations_per_s, "it")
    rows = (
        ("iteration", f"{last['iteration']}{limit}"),
        ("lower bound", _dollars(last["lower_bound"], room)),
        (view.path_costs.name, _dollars(last["upper_bound"], room)),
        ("± 95 %", "exact" if view.is_exact else f"{money(last['half_width'], 0)} $"),
        *_policy_cost(view, room),
        ("gap", first_fitting(room, *_gap_texts(view))),
        ("cuts", first_fitting(room, f"{last['cuts']:,} per stage", f"{last['cuts']:,}")),
        ("pace", first_fitting(room, f"{pace}, {rate(view.solves_per_s, 'LPs')}", pace)),
        *_rows_of_later_phases(view, room),
    )
    return _append_rows(text, rows).append("\n").append(_phases(view, width))


def _policy_cost(view: RunView, room: int) -> list[tuple[str, str]]:
    """Return rows for the cost of the policy with its interval, or a bound of it; empty if neither is known."""
    if (bound := view.computed_bound) is None:
        return []
    if not bound.confidence:
        return [("bound", _dollars(bound.value, room))]
    return [("policy cost", _dollars(bound.value, room)), ("± 95 %", f"{money(bound.half_width, 0)} $")]


def _gap_texts(view: RunView) -> list[str]:
    """Return descriptions of the gap, the longest first."""
    if view.gap is None:
        return ["none under a risk measure", "none"]
    gap, bound = gap_percent(view.gap), view.computed_bound
    if bound is None or not bound.gap_limit:
        return [gap]
    limit = bound.gap_limit.partition(" (")[0]
    return [f"{gap}, {bound.gap_limit}", f"{gap}, {limit}", f"{gap}, {limit.replace('at most', '≤')}", gap]


def killed_hint(view: RunView) -> str:
    """Explain why a run without a final event counts as killed: its lock is free, or its events are too old."""
    if view.last_activity.is_elsewhere:
        host = view.last_activity.host
        return f"no event for {_ago(view)}; it ran on another machine ({host}), which this one cannot see"
    return "no process on this machine is using the directory: the run was killed"


def _ago(view: RunView) -> str:
    return duration_compact(max(0.0, time.time() - view.last_time))


def _append_rows(text: Text, rows: Iterable[tuple[str, str]]) -> Text:
    for name, value in rows:
        text.append(f"{name:<{NAME_WIDTH}}", style="dim").append(f"{value}\n", style="bold")
    return text


def _dollars(value: float | None, room: int) -> str:
    """Format an amount in $ with as many digits as there is room for."""
    return first_fitting(room, f"{money(value)} $", f"{money(value, 0)} $", money_compact(value))


def plain_panels(view: RunView, folder: Path) -> str:
    """Return the panels as plain text, for a pipe."""
    state = view.state(folder)
    parts = [status_line(view, folder, state, 1000, is_paused=False), figures(view, state, 60)]
    if view.loads:
        parts.append(rank_timeline(view, 80))
    return "\n\n".join(part.plain.strip() for part in parts)


def _rows_of_later_phases(view: RunView, room: int) -> list[tuple[str, str]]:
    """Return the rows on progress, simulation and checkpoints, as far as they apply."""
    rows = []
    if view.progress is not None:
        full, brief = (text.partition(": ")[2] for text in (view.progress_in_words, view.progress_in_brief))
        rows.append(("now", first_fitting(room, full, brief, brief.replace(" pass", ""))[: max(0, room)]))
    if view.seconds_left:
        rows.append(("left", duration_compact(view.seconds_left)))
    if view.simulated is not None:
        rows.append(("simulated", _dollars(view.simulated.get("mean_cost"), room)))
    if view.is_simulation_only and view.simulated is not None:
        rows.append(("± 95 %", f"{money(view.simulated.get('half_width'), 0)} $"))
        rows.append(("scenarios", f"{view.simulated.get('scenarios')}"))
    if view.simulated is not None and view.simulated.get("controlled_mean_cost") is not None:
        rows.append(("controlled", _dollars(view.simulated.get("controlled_mean_cost"), room)))
        rows.append(("± 95 %", f"{money(view.simulated.get('controlled_half_width'), 0)} $"))
    if view.checkpoint is not None:
        rows.append(("checkpoint", f"iteration {view.checkpoint.get('iteration')}"))
    return rows


def _phases(view: RunView, width: int) -> Text:
    text = Text()
    total = sum(view.phase_seconds.values()) or 1.0
    room = max(4, min(20, width - 22))
    for name in PHASES:
        share = view.phase_seconds[name] / total
        text.append(f"{name:<10}", style="dim").append(bar(share, room), style=PHASE_COLOURS[name])
        text.append(f" {100 * share:3.0f} %\n")
    return text


def rank_timeline(view: RunView, width: int) -> Text:
    """Draw a line for each rank, with a bar for each recent iteration: the busy share of the rank."""
    if not view.loads:
        return Text(view.no_bounds_reason, style="dim")
    text = Text(no_wrap=True, overflow="crop")
    room = max(4, width - 18)
    recent = view.iterations[-room:]
    for rank, total in enumerate(view.loads):
        text.append(f"rank {rank:<4}", style="dim")
        for event in recent:
            text.append(*_load_bar(event.get("load", ()), rank))
        text.append(f" {100 * total.busy_share:3.0f} %\n")
    return text


def _load_bar(loads: list[list[float]], rank: int) -> tuple[str, str]:
    if rank >= len(loads):
        return " ", ""
    busy_s, waiting_s = loads[rank]
    share = RankTotal(busy_s, waiting_s).busy_share
    colour = "green" if share > 0.8 else "yellow" if share > 0.5 else "red"
    return vertical_bar(share), colour


# Bounds by iteration, or the gap between them.

LOWER, UPPER, COST = "cyan", "orange", "green"
RECENT = 50
LABEL_WIDTH = 9  # numbers of the axis, and the frame


class PlotRange(Enum):
    """The iterations that are plotted. The bounds of the first ones are far off, so by default these are left out."""

    SETTLED = "without the first fifth"
    ALL = "all iterations"
    RECENT = f"the last {RECENT}"

    @property
    def next(self) -> "PlotRange":
        """The next range, cyclically."""
        kinds = list(PlotRange)
        return kinds[(kinds.index(self) + 1) % len(kinds)]


@dataclass(frozen=True, slots=True)
class Curve:
    """The points of a curve; iterations without a value are left out."""

    name: str
    colour: str
    iterations: list[int]
    values: list[float]
    is_sampled: bool


class BoundsPlot(PlotextPlot):
    """A plot of the bounds, or of the gap, by iteration."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.shown = PlotRange.SETTLED
        self.shows_gap = False
        self._view = RunView()

    def show(self, view: RunView) -> None:
        """Plot the bounds of a run."""
        self._view = view
        self.replot()

    def replot(self) -> None:
        """Redraw the plot, after new iterations or a change of range or quantity."""
        figure = self.plt
        figure.clear_data()
        curves = [curve for curve in self._curves() if curve.values]
        for curve in curves:
            draw = figure.scatter if curve.is_sampled else figure.plot
            marker = "dot" if curve.is_sampled else "braille"  # distinguishable without colours
            draw(curve.iterations, curve.values, label=curve.name, color=curve.colour, marker=marker)
        if curves:
            first, last = curves[0].iterations[0], curves[0].iterations[-1]
            figure.xticks(sorted({first + round(quarter * (last - first) / 4) for quarter in range(5)}))
        figure.title(self._title() if curves else self._view.no_bounds_reason)
        self.refresh()

    def _title(self) -> str:
        """Return a title that fits above the plot; plotext leaves out a longer one."""
        quantity = "gap, %" if self.shows_gap and self._view.gap is not None else "bounds, M$"
        title = f"{quantity} ({self.shown.value})"
        return title if len(title) < self.size.width - LABEL_WIDTH else quantity

    def _curves(self) -> list[Curve]:
        costs = self._view.path_costs
        if self.shows_gap and self._view.gap is not None:
            return [self._curve("gap", UPPER, "gap", 100.0)]
        policy_curves = [] if costs.is_exact else [self._curve("cost of the policy", COST, "policy_cost", 1e-6)]
        return [
            self._curve(f"{costs.name} ({costs.label})", UPPER, "upper_bound", 1e-6),
            *policy_curves,
            self._curve("lower bound", LOWER, "lower_bound", 1e-6),
        ]

    def _curve(self, name: str, colour: str, key: str, factor: float) -> Curve:
        count = len(self._view.iterations)
        first = {PlotRange.ALL: 0, PlotRange.SETTLED: count // 5, PlotRange.RECENT: max(0, count - RECENT)}[self.shown]
        numbers = [event["iteration"] for event in self._view.iterations]
        points = [
            (number, factor * value)
            for number, value in zip(numbers[first:], self._view.series(key)[first:], strict=True)
            if value is not None
        ]
        iterations, values = [number for number, _ in points], [value for _, value in points]
        return Curve(name, colour, iterations, values, is_sampled=key != "lower_bound" and not self._view.is_exact)


def event_line(event: Event) -> str:
    """Format an event as one line with the time of day; empty for kinds that are not shown."""
    text = printable(_text(event), lines=False)
    return f"{time.strftime('%H:%M:%S', time.localtime(event.get('time', 0.0)))}  {text}" if text else ""


def _text(event: Event) -> str:  # noqa: PLR0911 - one answer for each kind
    match event["event"]:
        case "run_started":
            return _start(event)
        case "phase" | "preparation":
            return _step(event)
        case "warning":
            return f"warning: {event.get('message')}"
        case "iteration":
            return _iteration(event)
        case "checkpoint" | "resumed":
            return _checkpoint_text(event)
        case "training_finished":
            return f"training ended: {event.get('stop_reason')}; digest {str(event.get('digest'))[:16]}"
        case "simulation_finished":
            return f"simulated {event.get('scenarios')} scenarios: mean {money(event.get('mean_cost'))} $"
        case "run_finished":
            return f"ended after {duration_compact(event.get('seconds'))}"
        case "run_failed":
            return f"failed: {event.get('error')}"
        case _:
            return ""


def _checkpoint_text(event: Event) -> str:
    """Describe a checkpoint that was written, or that training continues from."""
    if event["event"] == "resumed":
        return f"resumed after iteration {event.get('iteration')}"
    return f"checkpoint of iteration {event.get('iteration')} in {duration_compact(event.get('seconds'))}"


def _step(event: Event) -> str:
    """Describe a phase of the run, or a step of its preparation and its progress."""
    if event["event"] == "phase":
        return f"{event.get('name')} ..."
    progress = f", {event.get('done')} of {event.get('total')}" if event.get("total") else ""
    return f"{event.get('step')}{progress}"


def _start(event: Event) -> str:
    resumed = " (resumed)" if event.get("is_resumed") else ""
    ranks = f"{event.get('ranks')} rank{'s' * (event.get('ranks') != 1)} on {event.get('backend')}"
    return f"cobre {event.get('version')} on {event.get('host')}, {ranks}{resumed}"


def _iteration(event: Event) -> str:
    """Describe an iteration in less than half of 80 columns; the gap stands for the upper bound."""
    gap = number_of(event.get("gap"))
    return f"{event.get('iteration'):>3}  {money_compact(event.get('lower_bound'))}, gap {gap_percent(gap)}"
