"""Histograms of costs, and stacked bars: sources of generation, phases, ranks."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from cobre.core.arrays import Floats
from cobre.records import dataclass
from cobre.report.chart import Chart, Mark, Series
from cobre.report.palette import INK, SKY
from cobre.runs.formatting import digits, money_in_words, scale_for

# Styles of vertical lines, in order: distinguishable without colours.
LINES = ("dash", "dots")


@dataclass(frozen=True, slots=True)
class StackLayer:
    """A layer of a stacked chart, on top of the layers before it."""

    name: str
    colour: str
    values: Floats


def histogram_chart(costs: Floats, lines: Mapping[str, float], key: str, title: str) -> Chart:
    """A histogram of the costs of scenarios ($), with named vertical lines, at most one for each style of LINES."""
    divisor, unit = scale_for(float(np.abs(costs).max()), "$")
    counts, edges = np.histogram(costs, _bins(costs))
    shares = np.cumsum(counts) / len(costs)
    return Chart(
        key,
        title,
        f"{len(costs)} scenarios cost between {money_in_words(costs.min())} and {money_in_words(costs.max())}.",
        "scenarios",
        [f"{digits(a / divisor)} to {digits(b / divisor)} {unit}" for a, b in pairwise(edges)],
        (
            Series("scenarios", counts.astype(float), SKY, "bar"),
            Series("share that costs no more", shares, drawing="none"),
        ),
        legend=[Mark(name, INK, kind) for name, kind in zip(lines, LINES, strict=False)],
        x=((edges[:-1] + edges[1:]) / 2).tolist(),
        axis="values",
        x_divisor=divisor,
        counted=f", by cost in {unit}",
        verticals=[(name, value, kind) for (name, value), kind in zip(lines.items(), LINES, strict=False)],
    )


def _bins(costs: Floats) -> int:
    """The number of bins: 1.5 times the square root of the number of scenarios, from 5 to 40."""
    return int(np.clip(np.sqrt(len(costs)) * 1.5, 5, 40))


def stages_chart(
    layers: Sequence[StackLayer], line: StackLayer | None, labels: Sequence[str], key: str, title: str, unit: str
) -> Chart:
    """Layers by stage, and a line such as the load that they should add up to."""
    return _stacked(layers, line, labels, key, title, unit)


def numbers_chart(
    layers: Sequence[StackLayer], numbers: Floats, counted: str, key: str, title: str, unit: str
) -> Chart:
    """Layers by number: by iteration or by rank (`counted`)."""
    labels = [f"{counted} {number:.0f}" for number in numbers]
    return _stacked(layers, None, labels, key, title, unit, numbers.tolist(), counted)


def _stacked(
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
    legend = [Mark(layer.name, layer.colour, "bar") for layer in layers]
    legend += [Mark(line.name, INK, "dash")] if line else []
    parts = ", ".join(f"{layer.name} {digits(float(layer.values.sum()))} {unit}" for layer in layers)
    said = f"{title}, added up over all bars: {parts}."
    return Chart(
        key,
        title,
        said,
        unit,
        labels,
        series,
        legend=legend,
        x=x,
        axis="numbers" if counted else "stages",
        counted=counted,
        is_stacked=True,
    )
