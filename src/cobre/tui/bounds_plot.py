"""Bounds by iteration, or the gap between them."""

from enum import Enum
from typing import Any

from textual_plotext import PlotextPlot

from cobre.records import dataclass
from cobre.runs.view import RunView

LOWER, UPPER = "cyan", "orange"
RECENT = 50
LABEL_WIDTH = 9  # of numbers beside the axis, and the frame


class Shown(Enum):
    """Which iterations: the first ones are so far off that the others look the same beside them."""

    SETTLED = "without the first fifth"
    ALL = "all iterations"
    RECENT = f"the last {RECENT}"

    @property
    def next(self) -> "Shown":
        """The range after this one; the first after the last."""
        kinds = list(Shown)
        return kinds[(kinds.index(self) + 1) % len(kinds)]


@dataclass(frozen=True, slots=True)
class Curve:
    """Points of a line; iterations without a number are left out."""

    name: str
    colour: str
    iterations: list[int]
    values: list[float]
    is_sampled: bool


class BoundsPlot(PlotextPlot):
    """Plots the bounds, or the gap, of the run that was shown last."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.shown = Shown.SETTLED
        self.is_gap = False
        self._view = RunView()

    def show(self, view: RunView) -> None:
        """Plot the bounds of a run."""
        self._view = view
        self.replot()

    def replot(self) -> None:
        """Plot again, after new iterations or another choice."""
        figure = self.plt
        figure.clear_data()
        curves = [curve for curve in self._curves() if curve.values]
        for curve in curves:
            draw = figure.scatter if curve.is_sampled else figure.plot
            marker = "dot" if curve.is_sampled else "braille"  # told apart without colours
            draw(curve.iterations, curve.values, label=curve.name, color=curve.colour, marker=marker)
        if curves:
            figure.xticks(_ticks(curves[0].iterations))
        figure.title(self._title() if curves else self._view.no_bounds_reason)
        self.refresh()

    def _title(self) -> str:
        """A title that does not fit above the plot would not be drawn at all."""
        what = "gap, %" if self.is_gap and self._view.path_costs.is_bound else "bounds, M$"
        whole = f"{what} ({self.shown.value})"
        return whole if len(whole) < self.size.width - LABEL_WIDTH else what

    def _curves(self) -> list[Curve]:
        costs = self._view.path_costs
        if self.is_gap and costs.is_bound:
            return [self._curve("gap", UPPER, "gap", 100.0)]
        return [
            self._curve(f"{costs.name} ({costs.label})", UPPER, "upper_bound", 1e-6),
            self._curve("lower bound", LOWER, "lower_bound", 1e-6),
        ]

    def _curve(self, name: str, colour: str, key: str, factor: float) -> Curve:
        count = len(self._view.iterations)
        first = {Shown.ALL: 0, Shown.SETTLED: count // 5, Shown.RECENT: max(0, count - RECENT)}[self.shown]
        numbers = [event["iteration"] for event in self._view.iterations]
        points = [
            (number, factor * value)
            for number, value in zip(numbers[first:], self._view.series(key)[first:], strict=True)
            if value is not None
        ]
        iterations, values = [number for number, _ in points], [value for _, value in points]
        return Curve(name, colour, iterations, values, is_sampled=key != "lower_bound" and not self._view.is_exact)


def _ticks(iterations: list[int]) -> list[float]:
    """A few whole numbers, the first and the last among them."""
    first, last = iterations[0], iterations[-1]
    return sorted({first + round(part * (last - first) / 4) for part in range(5)})
