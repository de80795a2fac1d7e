"""Empty Matplotlib figures in the style of the report, for notebooks."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from cobre.report.palette import GRID, INK, MUTED

# In points of 1/72 inch: pixels of the page before scaling.
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
    "text.parse_math": False,  # names may contain dollar signs
    "axes.labelcolor": MUTED,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "ytick.major.size": 0,
    "xtick.major.size": 3,
    "xtick.major.pad": 6,  # does not touch the lowest label of the vertical axis, also in larger fonts
    "lines.linewidth": 1.8,
    "lines.solid_capstyle": "round",
    "svg.fonttype": "none",  # text stays text: searchable, in the font of the page
    "svg.hashsalt": "cobre",  # the same chart has the same bytes
}


@contextmanager
def house_style() -> Iterator[None]:
    """Apply the style of the report to charts made in the block; the notebook's settings are restored after it."""
    with mpl.rc_context(STYLE):
        yield


def one_axes(unit: str, height: float = HEIGHT, left: float = MARGINS["left"]) -> tuple[Figure, Axes]:
    """A figure with one plot; the unit is written above the vertical axis."""
    figure = Figure(figsize=(WIDTH / 72, height / 72))
    width = WIDTH - left - MARGINS["right"]
    inner = height - MARGINS["top"] - MARGINS["bottom"]
    axes = figure.add_axes((left / WIDTH, MARGINS["bottom"] / height, width / WIDTH, inner / height))
    axes.text(2 / WIDTH, 1 - 9 / height, unit, transform=figure.transFigure, color=MUTED, va="center", fontsize=10)
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=ROUND_STEPS))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    return figure, axes


def label_stages(axes: Axes, labels: Sequence[str]) -> None:
    """Label at most `MAX_STAGE_LABELS` stages, evenly spaced, over the full width."""
    step = max(1, -(-len(labels) // MAX_STAGE_LABELS))
    axes.set_xticks(range(0, len(labels), step), labels[::step])
    axes.set_xlim(-0.5, len(labels) - 0.5)


def whole_numbers(axes: Axes, first: float, last: float, pad: float = 0.5) -> None:
    """Give an axis integer ticks, for iterations or ranks from `first` to `last`."""
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True, steps=ROUND_STEPS))
    axes.set_xlim(first - pad, last + pad)
