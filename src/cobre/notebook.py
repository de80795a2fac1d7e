"""Progress in a notebook: a small table below the cell that changes while training goes on.

Shown when a notebook's kernel runs and nobody else listens. It is drawn a few times a second at most, whatever the
number of iterations, and nothing of IPython is imported elsewhere.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from importlib import import_module
from typing import Any

from cobre.runs.formatting import NOT_A_BOUND, duration, money, percent

Event = Mapping[str, Any]

REDRAW_S = 0.3
CURVE_WIDTH, CURVE_HEIGHT, MAX_POINTS = 220, 36, 110


@contextmanager
def progress() -> Iterator[Callable[[Event], None]]:
    """The listener for the events of a run: a display in a notebook, elsewhere one that ignores them."""
    display = _notebook_display()
    if display is None:
        yield lambda _: None
        return
    table = ProgressTable()
    shown = _Shown(table, display(table.html()))
    try:
        yield shown.emit
    finally:
        shown.draw()


def is_notebook() -> bool:
    """Whether this process is the kernel of a notebook; a plain terminal of IPython is not."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


def _notebook_display() -> "Callable[[str], Callable[[str], None]] | None":
    """Shows some HTML, and gives what changes it."""
    if not is_notebook():
        return None

    page = import_module("IPython.display")

    def show(text: str) -> Callable[[str], None]:
        handle = page.display(page.HTML(text), display_id=True)
        return lambda new: handle.update(page.HTML(new))

    return show


def show_figures() -> None:
    """Let a notebook draw figures inline, unless its backend has been set already."""
    if not is_notebook():
        return
    figure = import_module("matplotlib.figure").Figure
    shell = import_module("IPython").get_ipython()
    formatters = shell.display_formatter.formatters
    if not any(figure in formatters[kind].type_printers for kind in ("image/png", "image/svg+xml")):
        import_module("IPython.core.pylabtools").select_figure_formats(shell, {"svg"})


@dataclass
class ProgressTable:
    """What is known of a run so far, as HTML."""

    phase: str = "starting"
    iteration_limit: int | None = None
    last: Event | None = None
    upper_bound_words: str = "sampled"
    lower_bounds: list[float] = field(default_factory=list)
    warnings: int = 0

    def take(self, event: Event) -> None:
        """Take an event; kinds that say nothing here change nothing."""
        match event["event"]:
            case "phase":
                self.phase = str(event["name"])
                self.iteration_limit = event.get("iteration_limit", self.iteration_limit)
                if event.get("is_exact"):
                    self.upper_bound_words = "exact"
                elif event.get("is_risk_averse"):
                    self.upper_bound_words = NOT_A_BOUND
            case "warning":
                self.warnings += 1
            case "iteration":
                self.last = event
                self.lower_bounds.append(float(event["lower_bound"]))

    def html(self) -> str:
        """Takes the notebook's own colours; nothing is fetched, and no script runs."""
        rows = "".join(
            f'<tr><th style="text-align:left;font-weight:500;opacity:.75">{escape(name)}</th>'
            f'<td style="text-align:left">{value}</td></tr>'
            for name, value in self._rows().items()
        )
        return f'<div class="cobre-progress"><strong>Cobre</strong> {escape(self.phase)}<table>{rows}</table></div>'

    def _upper_bound(self, event: Event) -> str:
        spread = "" if self.upper_bound_words == "exact" else f" ± {money(event['half_width'])}"
        return f"{money(event['upper_bound'])}{spread} $ ({self.upper_bound_words})"

    def _rows(self) -> dict[str, str]:
        if self.last is None:
            return {}
        event = self.last
        limit = f" of {self.iteration_limit}" if self.iteration_limit else ""
        rows = {
            "iteration": f"{event['iteration']}{limit}, {duration(event['elapsed_s'])}",
            "lower bound": f"{money(event['lower_bound'])} $ {_curve(self.lower_bounds)}",
            "mean cost" if self.upper_bound_words == NOT_A_BOUND else "upper bound": self._upper_bound(event),
        }
        if self.upper_bound_words != NOT_A_BOUND:
            rows["gap"] = percent(event["gap"])
        if len(event.get("load", ())) > 1:
            rows["busy"] = ", ".join(_share(busy_s, waiting_s) for busy_s, waiting_s in event["load"])
        if self.warnings:
            rows["warnings"] = str(self.warnings)
        return rows


class _Shown:
    """A table and its place on the page."""

    def __init__(self, table: ProgressTable, update: Callable[[str], None]) -> None:
        self._table = table
        self._update = update
        self._next_s = 0.0

    def emit(self, event: Event) -> None:
        self._table.take(event)
        if (now_s := time.monotonic()) >= self._next_s:
            self._next_s = now_s + REDRAW_S
            self.draw()

    def draw(self) -> None:
        self._update(self._table.html())


def _curve(values: Sequence[float]) -> str:
    """The lower bound so far as a line, thinned out to what the eye can see."""
    shown = values[:: max(1, -(-len(values) // MAX_POINTS))]
    low, high = min(shown), max(shown)
    across, up = CURVE_WIDTH / max(1, len(shown) - 1), (CURVE_HEIGHT - 4) / ((high - low) or 1.0)
    points = " ".join(
        f"{place * across:.1f},{CURVE_HEIGHT - 2 - (value - low) * up:.1f}" for place, value in enumerate(shown)
    )
    return (
        f'<svg width="{CURVE_WIDTH}" height="{CURVE_HEIGHT}" role="img" aria-label="lower bound by iteration" '
        f'style="vertical-align:middle"><polyline points="{points}" fill="none" stroke="#0072b2" stroke-width="2"/>'
        "</svg>"
    )


def _share(busy_s: float, waiting_s: float) -> str:
    return f"{100 * busy_s / max(busy_s + waiting_s, 1e-9):.0f} %"
