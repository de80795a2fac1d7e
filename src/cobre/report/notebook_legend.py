"""A legend inside a figure, for notebooks."""

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from cobre.report.chart import Mark


def put_legend(figure: Figure, axes: Axes, marks: Sequence[Mark]) -> None:
    """Add a legend in one row at the top, on a white background, also in dark notebooks."""
    figure.set_facecolor("white")
    axes.legend(
        handles=[_handle(mark) for mark in marks],
        loc="lower right",
        bbox_to_anchor=(1, 1),
        ncols=len(marks),
        frameon=False,
        fontsize=9,
        columnspacing=1,
        handlelength=1.3,
    )


def put_title(figure: Figure, axes: Axes, title: str) -> None:
    """Say what is drawn, above the legend; the figure grows by a line, its axes keep their size."""
    height, line = figure.get_figheight(), 0.28
    place = axes.get_position()
    figure.set_figheight(height + line)
    shrunk = height / (height + line)
    axes.set_position((place.x0, place.y0 * shrunk, place.width, place.height * shrunk))
    for unit in axes.texts:
        unit.set_y(unit.get_position()[1] * shrunk)
    figure.text(0.01, 1.0 - 0.06 / (height + line), title, ha="left", va="top", fontsize=10)


def _handle(mark: Mark) -> Artist:
    if mark.kind in ("line", "dash"):
        return Line2D([], [], color=mark.colour, label=mark.name, linestyle="-" if mark.kind == "line" else "--")
    return Patch(facecolor=mark.colour, alpha=mark.strength, label=mark.name, linewidth=0)
