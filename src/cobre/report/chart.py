"""A chart: a drawing, and the numbers behind it that a cursor shows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Series:
    """Named numbers in the order of a panel's labels."""

    name: str
    values: NDArray[np.float64]

    def as_dict(self) -> dict[str, Any]:
        """Every digit of every number; what is not a number is null."""
        return {"name": self.name, "values": [value if np.isfinite(value) else None for value in self.values.tolist()]}


@dataclass(frozen=True, slots=True)
class Panel:
    """One plot of a chart. `box` is left, top, right and bottom, and `positions` are across, in the drawing's units."""

    title: str
    unit: str
    labels: Sequence[str]
    series: Sequence[Series]
    box: tuple[float, float, float, float]
    positions: Sequence[float]

    def as_dict(self) -> dict[str, Any]:
        """For the script of the page, and for anyone who reads the numbers back."""
        return {
            "title": self.title,
            "unit": self.unit,
            "labels": list(self.labels),
            "series": [series.as_dict() for series in self.series],
            "box": [round(edge, 2) for edge in self.box],
            "positions": [round(position, 2) for position in self.positions],
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
    """`explanation` tells how to read it; `description`, in one sentence, what one who does not see it should know."""

    key: str
    title: str
    description: str
    figure: Figure
    panels: Sequence[Panel]
    legend: Sequence[Mark] = ()
    note: str = ""
    explanation: str = ""

    def explained(self, words: str) -> "Chart":
        """The same chart with a line below its title."""
        return replace(self, explanation=words)


def panel_of(
    axes: Axes, title: str, unit: str, x: Iterable[float], labels: Sequence[str], series: Sequence[Series]
) -> Panel:
    """The whole of an axes as a panel; limits must be final."""
    height = axes.figure.bbox.height
    frame = axes.get_window_extent()
    across = axes.transData.transform(np.array([[at, 0.0] for at in x]).reshape(-1, 2))[:, 0]
    box = (frame.x0, height - frame.y1, frame.x1, height - frame.y0)
    return Panel(title, unit, labels, series, box, across.tolist())
