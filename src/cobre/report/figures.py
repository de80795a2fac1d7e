"""Matplotlib figures for notebooks, in the style of the report: bounds, fans, and inline SVG."""

import io
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from cobre.io.output.results import RowsInMemory
from cobre.io.storage.arrow_columns import numbers_of
from cobre.report.bounds import Bounds, SimulationLike, TrainingLike, bounds_of_result
from cobre.report.charts import BLUE, GREY, GRID, INK, MUTED, ORANGE, VARIABLES, LegendEntry, legend_of, variable
from cobre.report.entity_rows import TableColumns
from cobre.report.simulated import (
    INNER_OPACITY,
    NEEDED_COLUMNS,
    OUTER_OPACITY,
    QUANTITIES,
    Cube,
    Fan,
    SimulationTables,
    fan_legend,
)
from cobre.report.stored_study import StoredStudy, kind_of
from cobre.runs.labels import KEYS, unit_of_column
from cobre.text import scale_for

if TYPE_CHECKING:
    import pyarrow as pa


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
    """Create a figure with one plot; the unit is written above the vertical axis."""
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


def integer_ticks(axes: Axes, first: float, last: float, pad: float = 0.5) -> None:
    """Give an axis integer ticks, for iterations or ranks from `first` to `last`."""
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True, steps=ROUND_STEPS))
    axes.set_xlim(first - pad, last + pad)


EDGE_WIDTH = 0.7  # of the lines at the ends of a faint band


def draw_bounds(bounds: Bounds) -> tuple[Figure, Axes]:
    """Draw the bounds by iteration, and the cost of the policy if it is known."""
    middle, half_width = bounds.policy_costs or (bounds.upper, bounds.half_width)
    low, high = middle - half_width, middle + half_width
    divisor, unit = scale_for(_largest(bounds.lower, high), "$")
    figure, axes = one_axes(f"{unit} by iteration")
    x = bounds.iteration
    mark = "o" if len(x) == 1 else ""
    axes.fill_between(x, low / divisor, high / divisor, color=ORANGE, alpha=0.25, linewidth=0)
    if bounds.policy_costs is not None:
        axes.plot(x, bounds.upper / divisor, color=GREY, linewidth=1.2, linestyle=":", marker=mark)
    axes.plot(x, middle / divisor, color=ORANGE, linewidth=1.2, marker=mark)
    axes.plot(x, bounds.lower / divisor, color=BLUE, linewidth=2.2, marker=mark)
    integer_ticks(axes, x[0], x[-1])
    return figure, axes


def draw_fan(fan: Fan, unit: str, colour: str) -> tuple[Figure, Axes]:
    """Draw a fan over stages: two bands, the median, and the mean as a dashed line."""
    drawn = np.vstack([fan.percentiles, fan.mean])
    finite = drawn[np.isfinite(drawn)]
    divisor, scaled = scale_for(float(np.max(np.abs(finite), initial=0.0)), unit)
    figure, axes = one_axes(scaled)
    x = np.arange(len(fan.labels))
    p5, p25, p50, p75, p95 = fan.percentiles / divisor
    axes.fill_between(x, p5, p95, color=colour, alpha=OUTER_OPACITY, linewidth=0)
    axes.fill_between(x, p25, p75, color=colour, alpha=INNER_OPACITY, linewidth=0)
    for end in (p5, p95):
        axes.fill_between(x, end, end, color=colour, linewidth=EDGE_WIDTH)
    axes.plot(x, p50, color=colour, marker="o" if len(x) == 1 else "")
    axes.plot(x, fan.mean / divisor, color=colour, linestyle="--", linewidth=1.2, marker="_" if len(x) == 1 else "")
    label_stages(axes, fan.labels)
    if np.min(finite, initial=0.0) >= 0:
        axes.set_ylim(bottom=0)
    return figure, axes


def _largest(*arrays: np.ndarray) -> float:
    values = np.concatenate(arrays)
    return float(np.max(np.abs(values[np.isfinite(values)]), initial=0.0))


def add_legend(figure: Figure, axes: Axes, entries: Sequence[LegendEntry]) -> None:
    """Add a legend in one row at the top, on a white background, also in dark notebooks."""
    figure.set_facecolor("white")
    axes.legend(
        handles=[_legend_artist(entry) for entry in entries],
        loc="lower right",
        bbox_to_anchor=(1, 1),
        ncols=len(entries),
        frameon=False,
        fontsize=9,
        columnspacing=1,
        handlelength=1.3,
    )


def add_title(figure: Figure, axes: Axes, title: str) -> None:
    """Add a title above the legend; the figure grows by a line, its axes keep their size."""
    height, line_height = figure.get_figheight(), 0.28
    position = axes.get_position()
    figure.set_figheight(height + line_height)
    scale = height / (height + line_height)
    axes.set_position((position.x0, position.y0 * scale, position.width, position.height * scale))
    for unit in axes.texts:
        unit.set_y(unit.get_position()[1] * scale)
    figure.text(0.01, 1.0 - 0.06 / (height + line_height), title, ha="left", va="top", fontsize=10)


def _legend_artist(entry: LegendEntry) -> Artist:
    if entry.drawing in ("line", "dash"):
        return Line2D([], [], color=entry.colour, label=entry.name, linestyle="-" if entry.drawing == "line" else "--")
    return Patch(facecolor=entry.colour, alpha=entry.strength, label=entry.name, linewidth=0)


# Matplotlib figures as inline SVG for notebooks.

_SIZE = re.compile(r' (?:width|height)="[^"]*pt"')
_STYLE = re.compile(r"<defs>\s*<style[^>]*>.*?</style>\s*</defs>", re.DOTALL)
_METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
_COLOUR = re.compile("|".join(VARIABLES), re.IGNORECASE)
_NAME = re.compile(r'(\bid="|url\(#|href="#)')
_FONT = re.compile(r"'DejaVu Sans'")


def svg_of(figure: Figure, key: str, description: str) -> str:
    """Render the figure as SVG that scales with the page and takes its colours and font; its ids begin with `key`."""
    with house_style():
        stream = io.StringIO()
        canvas: Any = FigureCanvasSVG(figure)
        with warnings.catch_warnings():
            # Matplotlib only measures with its own font; the browser's font has these glyphs.
            warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
            canvas.print_svg(stream, metadata={"Date": None, "Creator": None})  # savefig would draw the figure twice
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = _STYLE.sub("", _METADATA.sub("", _SIZE.sub("", text)))
    text = _COLOUR.sub(lambda match: variable(match[0].lower()), text)
    text = _NAME.sub(lambda match: f"{match[0]}{key}-", text)
    text = _FONT.sub("var(--font, sans-serif)", text)
    label = escape(description, quote=True)
    return text.replace("<svg", f'<svg role="img" aria-label="{label}"', 1).strip()


# Figures for notebooks, in the colours of the report.


def plot_bounds(result: TrainingLike) -> Figure:
    """Draw the lower bound, and the cost of the policy with its 95 % confidence band, by iteration.

    Without an estimate of this cost, the band is that of the sampled upper bound.
    """
    with house_style():
        bounds = bounds_of_result(result)
        figure, axes = draw_bounds(bounds)
        add_legend(figure, axes, legend_of(bounds))
    return figure


def plot_fan(result: SimulationLike, quantity: str = "storage", entity: int | None = None) -> Figure:
    """Draw percentiles over scenarios by stage: the median, the middle half, and 5 to 95 %.

    quantity: a key of `QUANTITIES` whose table the result has. entity: the id of a plant, bus or line; None:
    the sum over all of them. Raises ValueError if there is no such quantity or entity, or no meaningful sum.
    """
    cube = tables_of_result(result).cube(_require_quantity(quantity, result.tables))
    fan = Fan.over_scenarios(_values_to_plot(cube, quantity, entity), cube.labels)
    with house_style():
        figure, axes = draw_fan(fan, cube.quantity.unit, cube.quantity.colour)
        add_legend(figure, axes, fan_legend(cube.quantity.colour))
        add_title(figure, axes, _title(result, cube, entity))
    return figure


def _title(result: SimulationLike, cube: Cube, entity: int | None) -> str:
    """Return the quantity and its entity, or the table if it is a sum over all entities."""
    if entity is None and len(cube.entities) > 1:
        return f"{cube.quantity.title}, all {cube.quantity.table}"
    kind = kind_of(f"{cube.quantity.id_column}")
    id_ = cube.entities[0] if entity is None else entity
    return f"{cube.quantity.title}, {StoredStudy(result.facts).entity_name(kind or cube.quantity.table, id_)}"


def tables_of_result(result: SimulationLike) -> SimulationTables:
    """Return the tables of a result in the form that the report reads from a directory."""
    tables = {
        name: TableColumns(RowsInMemory(table)) for name, table in result.tables.items() if name in NEEDED_COLUMNS
    }
    return SimulationTables(tables, StoredStudy(result.facts))


def _require_quantity(quantity: str, tables: Mapping[str, Any]) -> str:
    names = [name for name, entry in QUANTITIES.items() if entry.table in tables and not entry.is_violation]
    if quantity not in names:
        raise ValueError(f"there is no {quantity!r} to plot; this result has {', '.join(names)}")
    return quantity


def _values_to_plot(cube: Cube, name: str, entity: int | None) -> np.ndarray[Any, np.dtype[np.float64]]:
    ids = ", ".join(map(str, cube.entities))
    if entity is not None:
        if entity not in cube.entities:
            raise ValueError(f"{name} has no {cube.quantity.id_column} {entity!r}; there are {ids}")
        return cube.of(entity)
    if cube.quantity.adds_up:
        return cube.total()
    if len(cube.entities) > 1:
        raise ValueError(f"{name} cannot be summed: choose one {cube.quantity.id_column} with entity=; there are {ids}")
    return cube.of(cube.entities[0])


ADDED_OVER_BLOCKS = ("_mwh", "_cost", "_reward")
NOT_ADDED_OVER_ENTITIES = ("_price", "_per_hm3", "_per_mw", "_per_mwh", "_factor")


def plot_table(result: SimulationLike, table: str, column: str, entity: int | None = None) -> Figure:
    """Draw percentiles over scenarios of a column.

    Energy and cost are added over blocks, other numbers averaged. entity: None: the sum over all entities. Raises
    ValueError, with the known names, for an unknown column or entity, and for a sum without meaning.
    """
    rows = _rows_of_entity(result.table(table), table, column, entity)
    scenario, stage = (np.unique(numbers_of(rows[name]), return_inverse=True) for name in KEYS[:2])
    values = numbers_of(rows[column]).astype(np.float64)
    cell = scenario[1] * len(stage[0]) + stage[1]
    size = len(scenario[0]) * len(stage[0])
    totals = np.bincount(cell, values, size).astype(np.float64)
    if not column.endswith(ADDED_OVER_BLOCKS):
        totals = totals / np.maximum(1, _blocks(rows, cell, size))
    fan = Fan.over_scenarios(
        totals.reshape(len(scenario[0]), -1), StoredStudy(result.facts).stage_labels(stage[0].tolist())
    )
    with house_style():
        figure, axes = draw_fan(fan, unit_of_column(column).replace("m3", "m³"), BLUE)
        add_legend(figure, axes, fan_legend(BLUE))
        add_title(figure, axes, _table_title(result, rows, table, column, entity))
    return figure


def _table_title(result: SimulationLike, rows: "pa.Table", table: str, column: str, entity: int | None) -> str:
    """Return the column and its entity, or the table if it is a sum over all entities."""
    owner = _id_column(rows)
    kind = None if owner is None else kind_of(owner)
    if entity is None or kind is None:
        return f"{column}, {table}"
    return f"{column}, {StoredStudy(result.facts).entity_name(kind, entity)}"


def _blocks(rows: "pa.Table", cell: "np.ndarray", size: int) -> "np.ndarray":
    """Count the blocks by scenario and stage, from the rows of one entity."""
    owner = _id_column(rows)
    if "block_id" not in rows.column_names or owner is None:
        return np.bincount(cell, minlength=size)
    counts = np.bincount(cell, minlength=size)
    entities = len(np.unique(numbers_of(rows[owner])))
    return counts / max(1, entities)


def _id_column(rows: "pa.Table") -> str | None:
    return next((name for name in rows.column_names if name.endswith("_id") and name not in KEYS), None)


def _rows_of_entity(rows: "pa.Table", table: str, column: str, entity: int | None) -> "pa.Table":
    names = rows.column_names
    if not set(KEYS[:2]) <= set(names):
        raise ValueError(f"the table {table} has no scenarios and stages to plot")
    known = [name for name in names if not name.endswith("_id")]
    if column not in known:
        raise ValueError(f"the table {table} has no {column!r} to plot; it has {', '.join(known)}")
    owner = _id_column(rows)
    ids = [] if owner is None else sorted(set(rows[owner].to_pylist()))
    if entity is not None:
        if entity not in ids:
            raise ValueError(f"the table {table} has no {owner} {entity!r}; there are {', '.join(map(str, ids))}")
        return rows.filter(numbers_of(rows[owner]) == entity)
    if len(ids) > 1 and column.endswith(NOT_ADDED_OVER_ENTITIES):
        listed = ", ".join(map(str, ids))
        raise ValueError(f"{column} cannot be summed: choose one {owner} with entity=; there are {listed}")
    return rows
