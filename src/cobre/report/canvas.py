"""Empty figures of Matplotlib in the house style, for notebooks."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from cobre.report.palette import GRID, INK, MUTED

# One unit is a point of 1/72 inch, and a pixel of the page before it is scaled.
WIDTH, HEIGHT = 460.0, 250.0
MARGINS = {"left": 48.0, "right": 12.0, "top": 26.0, "bottom": 30.0}
MAX_STAGE_LABELS = 7
ROUND_STEPS = (1, 2, 2.5, 5, 10)

STYLE: dict[Any, Any] = {
    "figure.dpi": 72,
    "font.family": "DejaVu Sans",
    "font.size": 10.5,
    "axes.edgecolor": MUTED,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "grid.linestyle": "-",
    "text.color": INK,
    "text.parse_math": False,  # a name may have dollar signs
    "axes.labelcolor": MUTED,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "ytick.major.size": 0,
    "xtick.major.size": 3,
    "xtick.major.pad": 6,  # clear of the lowest number beside the other axis, also where a page makes letters larger
    "lines.linewidth": 1.8,
    "lines.solid_capstyle": "round",
    "svg.fonttype": "none",  # text stays text: it can be searched, and takes the page's font
    "svg.hashsalt": "cobre",  # the same chart has the same bytes
}


@contextmanager
def house_style() -> Iterator[None]:
    """For as long as a chart is made; the settings of a notebook come back afterwards."""
    with mpl.rc_context(STYLE):
        yield


def one_axes(unit: str, height: float = HEIGHT, left: float = MARGINS["left"]) -> tuple[Figure, Axes]:
    """A drawing with one plot; its unit is above the axis, where it reads horizontally."""
    figure = Figure(figsize=(WIDTH / 72, height / 72))
    width = WIDTH - left - MARGINS["right"]
    inner = height - MARGINS["top"] - MARGINS["bottom"]
    axes = figure.add_axes((left / WIDTH, MARGINS["bottom"] / height, width / WIDTH, inner / height))
    axes.text(2 / WIDTH, 1 - 9 / height, unit, transform=figure.transFigure, color=MUTED, va="center", fontsize=10)
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=ROUND_STEPS))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    return figure, axes


def label_stages(axes: Axes, labels: Sequence[str]) -> None:
    """Some of the labels, evenly spaced, and the whole width for the stages."""
    step = max(1, -(-len(labels) // MAX_STAGE_LABELS))
    axes.set_xticks(range(0, len(labels), step), labels[::step])
    axes.set_xlim(-0.5, len(labels) - 0.5)


def whole_numbers(axes: Axes, first: float, last: float, pad: float = 0.5) -> None:
    """Give an axis integer ticks, for iterations or ranks from `first` to `last`."""
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True, steps=ROUND_STEPS))
    axes.set_xlim(first - pad, last + pad)
