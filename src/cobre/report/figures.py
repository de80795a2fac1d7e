"""Figures for notebooks, in the colours of the report."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from cobre.report.bounds_chart import legend_of
from cobre.report.canvas import house_style
from cobre.report.chart import Mark
from cobre.report.fan_charts import fan_legend
from cobre.report.notebook_legend import put_legend, put_title
from cobre.report.notebook_plots import draw_bounds, draw_fan
from cobre.report.quantities import QUANTITIES
from cobre.report.result_bounds import bounds_of_result
from cobre.report.result_protocols import SimulationLike, TrainingLike
from cobre.report.simulated import NEEDED_COLUMNS, Cube, Fan, Simulated
from cobre.report.study_facts import StudyFacts, kind_of
from cobre.report.table_columns import ArrowColumns


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
    fan = Fan.over_scenarios(_chosen(cube, quantity, entity), cube.labels)
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


def _chosen(cube: Cube, name: str, entity: int | None) -> np.ndarray[Any, np.dtype[np.float64]]:
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
