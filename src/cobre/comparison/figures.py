"""Matplotlib figures of a comparison: both studies by stage, and below them the difference with its 95 % interval."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from cobre.comparison.measures import title_of, unit_of
from cobre.comparison.page import DrawnRow, column_of, stage_rows
from cobre.comparison.result import StudyComparison
from cobre.comparison.text import scale_of
from cobre.report.charts import BLUE, GREY, INK, MUTED, ORANGE
from cobre.report.figures import ROUND_STEPS, WIDTH, house_style, label_stages

HEIGHT, LEFT, RIGHT, TOP, BOTTOM, GAP = 300.0, 58.0, 12.0, 26.0, 30.0, 34.0
UPPER = 0.56  # share of the height of the two plots


def plot(comparison: StudyComparison, quantity: str, entity: int | str | None) -> Figure:
    """Draw A and B by stage, and their difference below, with Matplotlib; title and legend are in the figure."""
    rows = stage_rows(comparison, quantity, entity)
    with house_style():
        figure = _draw(rows, quantity)
        upper = figure.axes[0]
        title = title_of(quantity) if entity is None else f"{title_of(quantity)} of {rows[0]['entity']}"
        upper.texts[0].set_text(f"{title}, {upper.texts[0].get_text()}")
        look: DrawnRow = {"ncols": 2, "frameon": False, "fontsize": 9.5, "labelcolor": INK, "borderaxespad": 0.0}
        upper.legend(["A", "B"], loc="lower right", bbox_to_anchor=(1.0, 1.0), **look)
    return figure


def _draw(rows: Sequence[DrawnRow], quantity: str) -> Figure:
    """Draw two plots, one above the other, with the same stages."""
    a, b, difference, half_width = (column_of(rows, name) for name in ("a", "b", "difference", "half_width"))
    divisor, unit = scale_of(rows, unit_of(quantity))
    spreads = np.nan_to_num(half_width).tolist()
    scaled = [{"a": value, "b": spread} for value, spread in zip(difference.tolist(), spreads, strict=True)]
    low_divisor, low_unit = scale_of(scaled, unit_of(quantity))
    figure = Figure(figsize=(WIDTH / 72, HEIGHT / 72))
    levels, differences = _two_axes(figure, unit, f"B - A, {low_unit}")
    positions = np.arange(len(rows))
    levels.plot(positions, a / divisor, color=BLUE, marker=_marker(positions))
    levels.plot(positions, b / divisor, color=ORANGE, linestyle=(0, (5, 2.5)), marker=_marker(positions))
    differences.bar(positions, difference / low_divisor, 0.7, color=GREY, linewidth=0)
    differences.errorbar(
        positions,
        difference / low_divisor,
        np.nan_to_num(half_width) / low_divisor,
        fmt="none",
        ecolor=INK,
        elinewidth=0.9,
    )
    differences.axhline(0.0, color=MUTED, linewidth=0.8)
    for axes in (levels, differences):
        label_stages(axes, [row["stage"] for row in rows])
    levels.tick_params(labelbottom=False)
    return figure


def _marker(x: "np.ndarray[Any, Any]") -> str:
    return "o" if len(x) == 1 else ""


def _two_axes(figure: Figure, above: str, below: str) -> tuple[Axes, Axes]:
    inner_height = HEIGHT - TOP - BOTTOM - GAP
    heights = (UPPER * inner_height, (1 - UPPER) * inner_height)
    bottoms = (BOTTOM + heights[1] + GAP, BOTTOM)
    axes_pair = []
    for bottom, height, unit in zip(bottoms, heights, (above, below), strict=True):
        frame = (LEFT / WIDTH, bottom / HEIGHT, (WIDTH - LEFT - RIGHT) / WIDTH, height / HEIGHT)
        axes = figure.add_axes(frame)
        label_y = (bottom + height + 14) / HEIGHT
        axes.text(2 / WIDTH, label_y, unit, transform=figure.transFigure, color=MUTED, va="center", fontsize=10)
        axes.yaxis.set_major_locator(MaxNLocator(4, steps=ROUND_STEPS))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        axes_pair.append(axes)
    return axes_pair[0], axes_pair[1]
