"""Percentiles over scenarios by stage: one large fan, or many small ones side by side."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure

from cobre.report.canvas import WIDTH, house_style, label_stages, one_axes
from cobre.report.chart import Chart, Mark, Panel, Series, panel_of
from cobre.report.entity_rows import Floats
from cobre.report.palette import BLUE, INK, MUTED
from cobre.report.simulated import PERCENTILES, Fan
from cobre.report.units import digits, scale_for

COLUMNS = 3
GAP, HEAD, CELL = 14.0, 17.0, 88.0
OUTER, INNER = 0.18, 0.32
EDGE = 0.7  # a line at the ends of a band, which is faint


@dataclass(frozen=True, slots=True)
class NamedFan:
    """A fan of one plant or bus."""

    name: str
    fan: Fan

    @property
    def largest(self) -> float:
        """The height of the highest band."""
        top = self.fan.percentiles[-1]
        return float(np.max(top[np.isfinite(top)], initial=0.0))


def fan_legend(colour: str) -> tuple[Mark, ...]:
    """From the inside out."""
    return (
        Mark("median", colour),
        Mark("25 to 75 %", colour, "band", INNER + OUTER),
        Mark("5 to 95 % of the scenarios", colour, "band", OUTER),
    )


def fan_chart(fan: Fan, key: str, title: str, unit: str, colour: str = BLUE) -> Chart:
    """One fan with axes."""
    with house_style():
        figure, axes = draw_fan(fan, unit, colour)
    panel = panel_of(axes, "", unit, range(len(fan.labels)), fan.labels, _series(fan))
    middle = fan.percentiles[2]
    said = f"the median goes from {digits(middle[0])} {unit} in {fan.labels[0]} to {digits(middle[-1])} {unit}"
    return Chart(key, title, f"{title}: {said} in {fan.labels[-1]}.", figure, (panel,), fan_legend(colour))


def draw_fan(fan: Fan, unit: str, colour: str) -> tuple[Figure, Axes]:
    """Two bands and a line, with final limits."""
    finite = fan.percentiles[np.isfinite(fan.percentiles)]
    divisor, scaled = scale_for(float(np.max(np.abs(finite), initial=0.0)), unit)
    figure, axes = one_axes(scaled)
    x = np.arange(len(fan.labels))
    p5, p25, p50, p75, p95 = fan.percentiles / divisor
    axes.fill_between(x, p5, p95, color=colour, alpha=OUTER, linewidth=0)
    axes.fill_between(x, p25, p75, color=colour, alpha=INNER, linewidth=0)
    edges = [np.column_stack([x, end]) for end in (p5, p95)]
    axes.add_collection(LineCollection(edges, color=colour, linewidth=EDGE), autolim=False)
    axes.plot(x, p50, color=colour, marker="o" if len(x) == 1 else "")
    label_stages(axes, fan.labels)
    if np.min(finite, initial=0.0) >= 0:
        axes.set_ylim(bottom=0)
    return figure, axes


def panels_chart(fans: Sequence[NamedFan], key: str, title: str, unit: str, colour: str, note: str) -> Chart:
    """Small fans in rows; each has its own height, which stands beside its name."""
    with house_style():
        figure, axes = _sheet(-(-len(fans) // COLUMNS))
        panels = [_cell(place, named, unit) for place, named in enumerate(fans)]
        _draw_cells(axes, fans, panels, colour)
    names = ", ".join(named.name for named in fans)
    said = f"{title}, a fan of percentiles for each of {names}."
    labels = fans[0].fan.labels
    scale = f"Each plot goes from {labels[0]} to {labels[-1]} and up to the number beside its name; the thin line is 0."
    return Chart(key, title, said, figure, panels, fan_legend(colour), f"{scale} {note}".strip())


def _sheet(rows: int) -> tuple[Figure, Axes]:
    """One plot in the drawing's own units for all cells: an axes for each of them would take half a second."""
    height = rows * CELL
    figure = Figure(figsize=(WIDTH / 72, height / 72))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, WIDTH)
    axes.set_ylim(height, 0)
    return figure, axes


def _cell(place: int, named: NamedFan, unit: str) -> Panel:
    row, column = divmod(place, COLUMNS)
    width = (WIDTH - (COLUMNS - 1) * GAP) / COLUMNS
    left, top = column * (width + GAP), row * CELL + HEAD
    box = (left, top, left + width, top + CELL - HEAD - 10)
    count = len(named.fan.labels)
    across = left + width * (np.arange(count) + 0.5) / count
    return Panel(named.name, unit, named.fan.labels, _series(named.fan), box, across.tolist())


def _draw_cells(axes: Axes, fans: Sequence[NamedFan], panels: Sequence[Panel], colour: str) -> None:
    heights = [_down(named, panel) for named, panel in zip(fans, panels, strict=True)]
    for low, high, strength in ((0, 4, OUTER), (1, 3, INNER)):
        bands = [_band(panel, down[low], down[high]) for panel, down in zip(panels, heights, strict=True)]
        axes.add_collection(PolyCollection(bands, facecolor=colour, alpha=strength, linewidth=0), autolim=False)
    lines = [_points(panel, down[2]) for panel, down in zip(panels, heights, strict=True)]
    axes.add_collection(LineCollection(lines, color=colour, linewidth=1.5), autolim=False)
    edges = [_points(panel, down[end]) for panel, down in zip(panels, heights, strict=True) for end in (0, 4)]
    axes.add_collection(LineCollection(edges, color=colour, linewidth=EDGE), autolim=False)
    zeros = [_zero_line(named, panel) for named, panel in zip(fans, panels, strict=True)]
    axes.add_collection(LineCollection(zeros, color=MUTED, linewidth=0.6), autolim=False)
    for named, panel in zip(fans, panels, strict=True):
        left, top, right, _ = panel.box
        axes.text(left, top - 4, _shortened(named.name), color=INK, fontsize=9.5)
        axes.text(right, top - 4, f"{digits(named.largest, 3)}", color=MUTED, fontsize=8.5, ha="right")


def _down(named: NamedFan, panel: Panel) -> Floats:
    """Where percentiles lie in the drawing."""
    return _placed(named.fan.percentiles, named, panel)


def _zero_line(named: NamedFan, panel: Panel) -> list[tuple[float, float]]:
    at = float(_placed(np.zeros(1), named, panel)[0])
    return [(panel.box[0], at), (panel.box[2], at)]


def _placed(values: Floats, named: NamedFan, panel: Panel) -> Floats:
    """On a scale from 0 or the least to the largest, in a drawing where y goes down."""
    _, top, _, bottom = panel.box
    finite = named.fan.percentiles[np.isfinite(named.fan.percentiles)]
    low, high = float(np.min(finite, initial=0.0)), float(np.max(finite, initial=0.0))
    down: Floats = bottom - (values - low) / ((high - low) or 1.0) * (bottom - top)
    return down


def _points(panel: Panel, down: Floats) -> Floats:
    """Only stages in which the entity is there."""
    points = np.column_stack([panel.positions, down])
    kept: Floats = points[np.isfinite(down)]
    return kept


def _band(panel: Panel, low: Floats, high: Floats) -> Floats:
    return np.concatenate([_points(panel, low), _points(panel, high)[::-1]])


def _shortened(name: str, most: int = 16) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _series(fan: Fan) -> list[Series]:
    percentiles = [Series(f"{p} %", values) for p, values in zip(PERCENTILES, fan.percentiles, strict=True)]
    percentiles[2] = Series("median", fan.percentiles[2])
    return [*percentiles, Series("mean", fan.mean)]
