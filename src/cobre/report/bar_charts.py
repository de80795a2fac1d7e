"""How often a cost occurs, and what adds up to a whole: sources, phases, ranks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from matplotlib.collections import PolyCollection

from cobre.report.canvas import house_style, label_stages, one_axes, whole_numbers
from cobre.report.chart import Chart, Mark, Series, panel_of
from cobre.report.entity_rows import Floats
from cobre.report.palette import INK, PAPER, SKY
from cobre.report.units import digits, money, scale_for

# Kinds of marks in a legend, and how lines of these kinds are drawn: told apart without colours.
LINES: Sequence[tuple[str, tuple[float, tuple[float, float]]]] = (("dash", (0, (5, 2.5))), ("dots", (0, (1.2, 1.8))))


@dataclass(frozen=True, slots=True)
class Layer:
    """What is put on top of the layers before it."""

    name: str
    colour: str
    values: Floats


def histogram_chart(costs: Floats, lines: Mapping[str, float], key: str, title: str) -> Chart:
    """Bars of how many scenarios cost so much, and lines by name, at most one for each of LINES."""
    divisor, unit = scale_for(float(np.abs(costs).max()), "$")
    counts, edges = np.histogram(costs, _bins(costs))
    with house_style():
        figure, axes = one_axes(f"scenarios, by cost in {unit}")
        axes.bar(edges[:-1] / divisor, counts, np.diff(edges) / divisor * 0.94, align="edge", color=SKY, linewidth=0)
        for value, (_, pattern) in zip(lines.values(), LINES, strict=False):
            axes.axvline(value / divisor, color=PAPER, linewidth=4.5)  # sets the line off from bars of any colour
            axes.axvline(value / divisor, color=INK, linestyle=pattern, linewidth=1.8)
    middles = (edges[:-1] + edges[1:]) / 2 / divisor
    labels = [f"{digits(a / divisor)} to {digits(b / divisor)} {unit}" for a, b in pairwise(edges)]
    shares = np.cumsum(counts) / len(costs)
    series = (Series("scenarios", counts.astype(float)), Series("share that costs no more", shares))
    panel = panel_of(axes, "", "", middles, labels, series)
    legend = [Mark(name, INK, kind) for name, (kind, _) in zip(lines, LINES, strict=False)]
    said = f"{len(costs)} scenarios cost between {money(costs.min())} and {money(costs.max())}."
    return Chart(key, title, said, figure, (panel,), legend)


def _bins(costs: Floats) -> int:
    """About as many as the data carry: the square root of their number, from 5 to 40."""
    return int(np.clip(np.sqrt(len(costs)) * 1.5, 5, 40))


def stages_chart(
    layers: Sequence[Layer], line: Layer | None, labels: Sequence[str], key: str, title: str, unit: str
) -> Chart:
    """Layers by stage, and a line that they should reach."""
    return _stacked(layers, line, np.arange(len(labels), dtype=float), labels, key, title, unit)


def numbers_chart(layers: Sequence[Layer], numbers: Floats, counted: str, key: str, title: str, unit: str) -> Chart:
    """Layers by whole numbers of what is counted: iterations or ranks."""
    labels = [f"{counted} {number:.0f}" for number in numbers]
    return _stacked(layers, None, numbers, labels, key, title, unit, counted)


def _stacked(
    layers: Sequence[Layer],
    line: Layer | None,
    x: Floats,
    labels: Sequence[str],
    key: str,
    title: str,
    unit: str,
    counted: str = "",
) -> Chart:
    tops = np.cumsum([layer.values for layer in layers], axis=0)
    divisor, scaled = scale_for(float(np.nanmax(tops[-1], initial=0.0)), unit)
    with house_style():
        figure, axes = one_axes(f"{scaled} by {counted}" if counted else scaled)
        for layer, top in zip(layers, tops / divisor, strict=True):
            bars = _bars(x, top - layer.values / divisor, top)
            axes.add_collection(PolyCollection(list(bars), facecolor=layer.colour, linewidth=0), autolim=False)
        if line:
            axes.plot(x, line.values / divisor, color=line.colour, linewidth=1.4, linestyle=(0, (4, 3)))
        whole_numbers(axes, x[0], x[-1], pad=0.6) if counted else label_stages(axes, labels)
        axes.set_ylim(0, _headroom(tops[-1] / divisor, line.values / divisor if line else tops[-1] / divisor))
    series = [Series(layer.name, layer.values) for layer in (*layers, *([line] if line else []))]
    legend = [Mark(layer.name, layer.colour, "bar") for layer in layers]
    legend += [Mark(line.name, INK, "dash")] if line else []
    panel = panel_of(axes, "", unit, x.tolist(), labels, series)
    parts = ", ".join(f"{layer.name} {digits(float(layer.values.sum()))} {unit}" for layer in layers)
    return Chart(key, title, f"{title}, added up over all bars: {parts}.", figure, (panel,), legend)


def _bars(x: Floats, bottom: Floats, top: Floats) -> Floats:
    """Corners, bars x 4 x 2; a patch for each would take far longer to draw. Many bars have no room between them."""
    half = 0.42 if len(x) <= 60 else 0.5
    corners = [(x - half, bottom), (x - half, top), (x + half, top), (x + half, bottom)]
    return np.stack([np.column_stack(corner) for corner in corners], axis=1)


def _headroom(*tops: Floats) -> float:
    """A little above the highest."""
    return 1.05 * max(float(np.nanmax(top, initial=0.0)) for top in tops) or 1.0
