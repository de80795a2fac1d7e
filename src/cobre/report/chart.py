"""A chart as data; the script of the page draws it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from cobre.core.arrays import Floats
from cobre.records import dataclass
from cobre.report.palette import VARIABLES
from cobre.runs.formatting import scale_for

Drawing = Literal["line", "thin", "dash", "dots", "bar", "none"]


@dataclass(frozen=True, slots=True)
class Series:
    """Named numbers in the order of a chart's labels. "none": not drawn, only in cursor, table and CSV."""

    name: str
    values: Floats
    colour: str = ""
    drawing: Drawing = "line"

    def as_dict(self) -> dict[str, Any]:
        """The series in full precision; NaN and infinities are null."""
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
        """The band in the form that the script of the page reads."""
        return {
            "upper": self.upper,
            "lower": self.lower,
            "colour": VARIABLES[self.colour],
            "strength": self.strength,
        }


@dataclass(frozen=True, slots=True)
class Mark:
    """An entry of the legend: `kind` is band, line, dash, dots or bar."""

    name: str
    colour: str
    kind: str = "line"
    strength: float = 1.0


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart. `explanation`: how to read it; `description`: one sentence for readers who cannot see it.

    x: positions of the labels. `axis` is stages (each with its label), numbers (iterations, ranks) or values;
    `counted` names what the numbers count. `verticals` are named vertical lines. Bars of a stacked chart are added up.
    """

    key: str
    title: str
    description: str
    unit: str
    labels: Sequence[str]
    series: Sequence[Series]
    bands: Sequence[Band] = ()
    legend: Sequence[Mark] = ()
    x: Sequence[float] = ()
    axis: Literal["stages", "numbers", "values"] = "stages"
    counted: str = ""
    x_divisor: float = 1.0
    verticals: Sequence[tuple[str, float, str]] = ()
    is_stacked: bool = False
    note: str = ""
    explanation: str = ""

    def explained(self, explanation: str) -> "Chart":
        """The same chart with a line below its title."""
        return replace(self, explanation=explanation)

    @property
    def scale(self) -> tuple[float, str]:
        """The divisor of numbers on the axis, and the scaled unit."""
        return scale_for(self._largest(), self.unit)

    def _largest(self) -> float:
        drawn = [np.asarray(series.values) for series in self.series if self.is_stacked or series.drawing != "none"]
        if self.is_stacked:
            bars = [np.asarray(series.values) for series in self.series if series.drawing == "bar"]
            drawn.append(np.sum(bars, axis=0))
        found = np.concatenate([np.ravel(values) for values in drawn]) if drawn else np.zeros(0)
        return float(np.max(np.abs(found[np.isfinite(found)]), initial=0.0))

    @property
    def caption(self) -> str:
        """The text above the vertical axis: its unit, and the quantity of the other axis."""
        unit = self.scale[1]
        if not self.counted:
            return unit
        return f"{unit}{self.counted}" if self.counted.startswith(",") else f"{unit} by {self.counted}"

    def as_dict(self) -> dict[str, Any]:
        """The chart as JSON, for the script of the page and for programs that read the numbers back."""
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
