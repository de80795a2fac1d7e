"""Charts of a report."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from cobre.core.arrays import Floats
from cobre.records import dataclass
from cobre.report.bounds import Bounds
from cobre.text import digits, money_spelled, scale_for

# Colours after Okabe and Ito. In a page each is a CSS variable, with another value in dark mode.
#
# Each has a contrast of 3:1 or more to its background; those of one chart are distinguishable with any colour vision.
INK = "#1c2733"
MUTED = "#5b6875"
GRID = "#dfe4e9"
PAPER = "#fefefe"
BLUE = "#0062a0"
ORANGE = "#c27d00"
GREEN = "#00906a"
VERMILLION = "#a83200"
SKY = "#3895cf"
PURPLE = "#84406b"
GREY = "#7c8894"

VARIABLES = MappingProxyType(
    {
        INK: "--ink",
        MUTED: "--muted",
        GRID: "--grid",
        PAPER: "--card",
        BLUE: "--blue",
        ORANGE: "--orange",
        GREEN: "--green",
        VERMILLION: "--vermillion",
        SKY: "--sky",
        PURPLE: "--purple",
        GREY: "--grey",
    }
)


def variable(colour: str) -> str:
    """Return a colour as a CSS variable, with the colour itself as fallback."""
    return f"var({VARIABLES[colour]},{colour})"


# A chart as data; the script of the page draws it.

Drawing = Literal["line", "thin", "dash", "dots", "bar", "none"]


@dataclass(frozen=True, slots=True)
class Series:
    """Named numbers in the order of a chart's labels. drawing "none": only in cursor, table and CSV."""

    name: str
    values: Floats
    colour: str = ""
    drawing: Drawing = "line"

    def as_dict(self) -> dict[str, Any]:
        """Return the series in full precision; NaN and infinities are null."""
        values = [value if np.isfinite(value) else None for value in np.asarray(self.values, np.float64).tolist()]
        return {"name": self.name, "values": values, "colour": VARIABLES.get(self.colour, ""), "drawing": self.drawing}


@dataclass(frozen=True, slots=True)
class Band:
    """The area between two series, which are given by their indices in `Chart.series`."""

    upper: int
    lower: int
    colour: str
    strength: float

    def as_dict(self) -> dict[str, Any]:
        """Return the band as JSON, for the script of the page."""
        return {
            "upper": self.upper,
            "lower": self.lower,
            "colour": VARIABLES[self.colour],
            "strength": self.strength,
        }


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """An entry of the legend: a name, and how its symbol is drawn."""

    name: str
    colour: str
    drawing: Literal["line", "dash", "dots", "bar", "band"] = "line"
    strength: float = 1.0


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart. `explanation`: how to read it; `description`: one sentence for readers who cannot see it.

    x: positions of the labels. axis: stages (each with its label), numbers (iterations, ranks; `counted` names them) or
    values. verticals: named vertical lines. is_stacked: bars are on top of each other.
    """

    key: str
    title: str
    description: str
    unit: str
    labels: Sequence[str]
    series: Sequence[Series]
    bands: Sequence[Band] = ()
    legend: Sequence[LegendEntry] = ()
    x: Sequence[float] = ()
    axis: Literal["stages", "numbers", "values"] = "stages"
    counted: str = ""
    x_divisor: float = 1.0
    verticals: Sequence[tuple[str, float, str]] = ()
    is_stacked: bool = False
    note: str = ""
    explanation: str = ""

    def explained(self, explanation: str) -> "Chart":
        """Return the chart with an explanation, which is shown below the title."""
        return replace(self, explanation=explanation)

    @property
    def scale(self) -> tuple[float, str]:
        """The divisor of numbers on the axis, and the scaled unit."""
        return scale_for(self._largest(), self.unit)

    def _largest(self) -> float:
        plotted = [np.asarray(series.values) for series in self.series if self.is_stacked or series.drawing != "none"]
        if self.is_stacked:
            bars = [np.asarray(series.values) for series in self.series if series.drawing == "bar"]
            plotted.append(np.sum(bars, axis=0))
        values = np.concatenate([np.ravel(values) for values in plotted]) if plotted else np.zeros(0)
        return float(np.max(np.abs(values[np.isfinite(values)]), initial=0.0))

    @property
    def caption(self) -> str:
        """The text above the vertical axis: its unit, and the quantity of the other axis."""
        unit = self.scale[1]
        if not self.counted:
            return unit
        return f"{unit}{self.counted}" if self.counted.startswith(",") else f"{unit} by {self.counted}"

    def as_dict(self) -> dict[str, Any]:
        """Return the chart as JSON, for the script of the page and for programs that read the numbers back."""
        divisor, unit = self.scale
        return {
            "title": self.title,
            "unit": self.unit,
            "divisor": divisor,
            "scaled_unit": unit,
            "caption": self.caption,
            "labels": list(self.labels),
            "x": [float(at) for at in self.x] or list(range(len(self.labels))),
            "x_divisor": self.x_divisor,
            "axis": self.axis,
            "is_stacked": self.is_stacked,
            "series": [series.as_dict() for series in self.series],
            "bands": [band.as_dict() for band in self.bands],
            "verticals": [{"name": name, "at": at, "drawing": drawing} for name, at, drawing in self.verticals],
        }


# Histograms of costs, and stacked bars: sources of generation, phases, ranks.

# Styles of vertical lines, in order: distinguishable without colours.
LINES: tuple[Literal["dash", "dots"], ...] = ("dash", "dots")


@dataclass(frozen=True, slots=True)
class StackLayer:
    """A layer of a stacked chart, on top of the layers before it."""

    name: str
    colour: str
    values: Floats


def histogram_chart(costs: Floats, lines: Mapping[str, float], key: str, title: str) -> Chart:
    """Draw a histogram of scenario costs ($), with at most two named vertical lines."""
    divisor, unit = scale_for(float(np.abs(costs).max()), "$")
    # Bins: 1.5 times the square root of the number of scenarios, from 5 to 40.
    counts, edges = np.histogram(costs, int(np.clip(np.sqrt(len(costs)) * 1.5, 5, 40)))
    shares = np.cumsum(counts) / len(costs)
    return Chart(
        key,
        title,
        f"{len(costs)} scenarios cost between {money_spelled(costs.min())} and {money_spelled(costs.max())}.",
        "scenarios",
        [f"{digits(a / divisor)} to {digits(b / divisor)} {unit}" for a, b in pairwise(edges)],
        (
            Series("scenarios", counts.astype(float), SKY, "bar"),
            Series("share that costs no more", shares, drawing="none"),
        ),
        legend=[LegendEntry(name, INK, drawing) for name, drawing in zip(lines, LINES, strict=False)],
        x=((edges[:-1] + edges[1:]) / 2).tolist(),
        axis="values",
        x_divisor=divisor,
        counted=f", by cost in {unit}",
        verticals=[(name, value, kind) for (name, value), kind in zip(lines.items(), LINES, strict=False)],
    )


def stages_chart(
    layers: Sequence[StackLayer], line: StackLayer | None, labels: Sequence[str], key: str, title: str, unit: str
) -> Chart:
    """Draw layers by stage, and a line to compare their sum with, such as the load."""
    return _stacked_chart(layers, line, labels, key, title, unit)


def numbers_chart(
    layers: Sequence[StackLayer], numbers: Floats, counted: str, key: str, title: str, unit: str
) -> Chart:
    """Draw layers by iteration or rank (`counted`)."""
    labels = [f"{counted} {number:.0f}" for number in numbers]
    return _stacked_chart(layers, None, labels, key, title, unit, numbers.tolist(), counted)


def _stacked_chart(
    layers: Sequence[StackLayer],
    line: StackLayer | None,
    labels: Sequence[str],
    key: str,
    title: str,
    unit: str,
    x: Sequence[float] = (),
    counted: str = "",
) -> Chart:
    series = [Series(layer.name, layer.values, layer.colour, "bar") for layer in layers]
    series += [Series(line.name, line.values, line.colour, "dash")] if line else []
    legend = [LegendEntry(layer.name, layer.colour, "bar") for layer in layers]
    legend += [LegendEntry(line.name, INK, "dash")] if line else []
    totals = ", ".join(f"{layer.name} {digits(float(layer.values.sum()))} {unit}" for layer in layers)
    description = f"{title}, added up over all bars: {totals}."
    return Chart(
        key,
        title,
        description,
        unit,
        labels,
        series,
        legend=legend,
        x=x,
        axis="numbers" if counted else "stages",
        counted=counted,
        is_stacked=True,
    )


# Convergence: the lower bound against the cost of the policy or the sampled upper bound, with a confidence band.

BAND = 0.25
POLICY_COST = "cost of the policy"


def _with_band(name: str, values: Floats, half_widths: Floats, spread: str) -> tuple[Series, ...]:
    """Return a thin line, its half widths, and the ends of its band: series 1 to 4 of a chart."""
    return (
        Series(name, values, ORANGE, "thin"),
        Series(spread, half_widths, drawing="none"),
        Series("low end of the band", values - half_widths, drawing="none"),
        Series("high end of the band", values + half_widths, drawing="none"),
    )


def legend_of(bounds: Bounds) -> tuple[LegendEntry, ...]:
    """Return the legend of bounds: lower bound, and cost of the policy or upper bound with its confidence band.

    An exact bound has no band.
    """
    band = () if bounds.is_exact else (LegendEntry("its 95 % confidence band", ORANGE, "band", BAND),)
    if bounds.policy_costs is None:
        return (LegendEntry("lower bound", BLUE), LegendEntry(bounds.upper_name, ORANGE), *band)
    return (
        LegendEntry("lower bound", BLUE),
        LegendEntry(POLICY_COST, ORANGE),
        *band,
        LegendEntry(bounds.upper_name, GREY, "dots"),
    )


def bounds_chart(bounds: Bounds, key: str, title: str, *, with_paths: bool = True) -> Chart:
    """Draw the bounds by iteration, with the band of the cost of the policy, or of the sampled upper bound.

    with_paths: whether the mean of sampled paths is drawn next to the cost of the policy; it is in the numbers anyway.
    """
    costs = bounds.policy_costs
    if costs is None:
        others = _with_band(bounds.upper_name, bounds.upper, bounds.half_width, "± 95 %")
    else:
        others = (
            *_with_band(POLICY_COST, *costs, "its ± 95 %"),
            Series(bounds.upper_name, bounds.upper, GREY, "dots" if with_paths else "none"),
            Series("± 95 %", bounds.half_width, drawing="none"),
        )
    first, last = money_spelled(bounds.lower[0]), money_spelled(bounds.lower[-1])
    development = f"goes from {first} to {last} in {len(bounds)} iterations" if len(bounds) > 1 else f"is {last}"
    return Chart(
        key,
        title,
        f"The lower bound {development}.",
        "$",
        [f"iteration {number}" for number in bounds.iteration],
        (
            Series("lower bound", bounds.lower, BLUE),
            *others,
        ),
        () if bounds.is_exact else (Band(4, 3, ORANGE, BAND),),
        legend_of(bounds)[: None if with_paths or costs is None else -1],
        bounds.iteration.tolist(),
        "numbers",
        "iteration",
    )
