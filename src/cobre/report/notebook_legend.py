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


def _handle(mark: Mark) -> Artist:
    if mark.kind == "line":
        return Line2D([], [], color=mark.colour, label=mark.name)
    return Patch(facecolor=mark.colour, alpha=mark.strength, label=mark.name, linewidth=0)
