"""Figures for notebooks, in the colours of the report."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from cobre.io.storage.arrow_columns import numbers_of
from cobre.report.bounds import SimulationLike, TrainingLike, bounds_of_result
from cobre.report.charts import BLUE, Mark, legend_of
from cobre.report.entity_rows import ArrowColumns
from cobre.report.notebook_plots import draw_bounds, draw_fan, house_style, put_legend, put_title
from cobre.report.simulated import NEEDED_COLUMNS, QUANTITIES, Cube, Fan, Simulated, fan_legend
from cobre.report.study_facts import StudyFacts, kind_of
from cobre.runs.formatting import unit_of_column

if TYPE_CHECKING:
    import pyarrow as pa


def plot_bounds(result: TrainingLike) -> Figure:
    """Lower bound, sampled upper bound and its 95 % confidence band, by iteration."""
    with house_style():
        bounds = bounds_of_result(result)
        figure, axes = draw_bounds(bounds)
        put_legend(figure, axes, legend_of(bounds))
    return figure


def plot_fan(result: SimulationLike, quantity: str = "storage", entity: int | None = None) -> Figure:
    """Percentiles over scenarios by stage: the median, the middle half, and 5 to 95 %.

    quantity: a key of `quantities.QUANTITIES` whose table the result has. entity: the id of a plant, bus or line; None:
    the sum over all of them. Raises ValueError if there is no such quantity or entity, or no meaningful sum.
    """
    cube = simulated_of(result).cube(_known(quantity, result.tables))
    fan = Fan.over_scenarios(_chosen_figures(cube, quantity, entity), cube.labels)
    marks: tuple[Mark, ...] = fan_legend(cube.quantity.colour)
    with house_style():
        figure, axes = draw_fan(fan, cube.quantity.unit, cube.quantity.colour)
        put_legend(figure, axes, marks)
        put_title(figure, axes, _title(result, cube, entity))
    return figure


def _title(result: SimulationLike, cube: Cube, entity: int | None) -> str:
    """The quantity, and whose it is: the name of a plant, bus or line, or the sum over all of them."""
    if entity is None and len(cube.entities) > 1:
        return f"{cube.quantity.title}, all {cube.quantity.table}"
    kind = kind_of(f"{cube.quantity.entity}")
    id_ = cube.entities[0] if entity is None else entity
    return f"{cube.quantity.title}, {StudyFacts(result.facts).entity_name(kind or cube.quantity.table, id_)}"


def simulated_of(result: SimulationLike) -> Simulated:
    """The tables of a result in the form that the report reads from a directory."""
    tables = {name: ArrowColumns(table) for name, table in result.tables.items() if name in NEEDED_COLUMNS}
    return Simulated(tables, StudyFacts(result.facts))


def _known(quantity: str, tables: Mapping[str, Any]) -> str:
    possible = [name for name, found in QUANTITIES.items() if found.table in tables and not found.is_violation]
    if quantity not in possible:
        raise ValueError(f"there is no {quantity!r} to plot; this result has {', '.join(possible)}")
    return quantity


def _chosen_figures(cube: Cube, name: str, entity: int | None) -> np.ndarray[Any, np.dtype[np.float64]]:
    known = ", ".join(map(str, cube.entities))
    if entity is not None:
        if entity not in cube.entities:
            raise ValueError(f"{name} has no {cube.quantity.entity} {entity!r}; there are {known}")
        return cube.of(entity)
    if cube.quantity.adds_up:
        return cube.total()
    if len(cube.entities) > 1:
        raise ValueError(f"{name} cannot be summed: choose one {cube.quantity.entity} with entity=; there are {known}")
    return cube.of(cube.entities[0])


# Any numeric column of a simulation's table as a fan over scenarios, by stage: a Matplotlib figure.


KEYS = ("scenario_id", "stage_id", "block_id")

ADDED_OVER_BLOCKS = ("_mwh", "_cost", "_reward")

NOT_ADDED_OVER_ENTITIES = ("_price", "_per_hm3", "_per_mw", "_per_mwh", "_factor")


def plot_table(result: SimulationLike, table: str, column: str, entity: int | None = None) -> Figure:
    """Percentiles over scenarios of a column.

    Energy and cost are added over blocks, other numbers averaged. entity: None: the sum over all entities. Raises
    ValueError, with the known names, for an unknown column or entity, and for a sum without meaning.
    """
    rows = _chosen(result.table(table), table, column, entity)
    scenario, stage = (np.unique(numbers_of(rows[name]), return_inverse=True) for name in KEYS[:2])
    values = numbers_of(rows[column]).astype(np.float64)
    cell = scenario[1] * len(stage[0]) + stage[1]
    size = len(scenario[0]) * len(stage[0])
    totals = np.bincount(cell, values, size).astype(np.float64)
    if not column.endswith(ADDED_OVER_BLOCKS):
        totals = totals / np.maximum(1, _blocks(rows, cell, size))
    fan = Fan.over_scenarios(
        totals.reshape(len(scenario[0]), -1), StudyFacts(result.facts).stage_labels(stage[0].tolist())
    )
    with house_style():
        figure, axes = draw_fan(fan, unit_of_column(column).replace("m3", "m³"), BLUE)
        put_legend(figure, axes, fan_legend(BLUE))
        put_title(figure, axes, _table_title(result, rows, table, column, entity))
    return figure


def _table_title(result: SimulationLike, rows: "pa.Table", table: str, column: str, entity: int | None) -> str:
    """The column, and whose it is: the name of an entity, or its table where all are added up."""
    owner = _owner(rows)
    kind = None if owner is None else kind_of(owner)
    if entity is None or kind is None:
        return f"{column}, {table}"
    return f"{column}, {StudyFacts(result.facts).entity_name(kind, entity)}"


def _blocks(rows: "pa.Table", cell: "np.ndarray", size: int) -> "np.ndarray":
    """The number of blocks by scenario and stage, from the rows of one entity."""
    owner = _owner(rows)
    if "block_id" not in rows.column_names or owner is None:
        return np.bincount(cell, minlength=size)
    counts = np.bincount(cell, minlength=size)
    entities = len(np.unique(numbers_of(rows[owner])))
    return counts / max(1, entities)


def _owner(rows: "pa.Table") -> str | None:
    return next((name for name in rows.column_names if name.endswith("_id") and name not in KEYS), None)


def _chosen(rows: "pa.Table", table: str, column: str, entity: int | None) -> "pa.Table":
    names = rows.column_names
    if not set(KEYS[:2]) <= set(names):
        raise ValueError(f"the table {table} has no scenarios and stages to plot")
    known = [name for name in names if not name.endswith("_id")]
    if column not in known:
        raise ValueError(f"the table {table} has no {column!r} to plot; it has {', '.join(known)}")
    owner = _owner(rows)
    ids = [] if owner is None else sorted(set(rows[owner].to_pylist()))
    if entity is not None:
        if entity not in ids:
            raise ValueError(f"the table {table} has no {owner} {entity!r}; there are {', '.join(map(str, ids))}")
        return rows.filter(numbers_of(rows[owner]) == entity)
    if len(ids) > 1 and column.endswith(NOT_ADDED_OVER_ENTITIES):
        there = ", ".join(map(str, ids))
        raise ValueError(f"{column} cannot be summed: choose one {owner} with entity=; there are {there}")
    return rows
