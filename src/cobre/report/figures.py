"""Figures and short summaries for notebooks. Everything is drawn as in the report."""

from collections.abc import Mapping
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from cobre.io.output.columns import numbers_of
from cobre.report.bounds import Bounds, bounds_of_table
from cobre.report.bounds_chart import bounds_chart, draw_bounds, legend_of
from cobre.report.canvas import house_style
from cobre.report.chart import Chart, Mark
from cobre.report.fan_charts import draw_fan, fan_legend
from cobre.report.notebook_legend import put_legend
from cobre.report.palette import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILLION
from cobre.report.simulated import NEEDED_COLUMNS, QUANTITIES, Cube, Fan, Simulated
from cobre.report.study_facts import StudyFacts
from cobre.report.svg import svg_of
from cobre.report.units import duration, money, percent

if TYPE_CHECKING:
    from cobre.study.results import SimulationResult, TrainingResult

COLOURS: Mapping[str, str] = {
    "storage": BLUE,
    "inflow": SKY,
    "hydro_generation": BLUE,
    "thermal_generation": ORANGE,
    "non_controllable_generation": GREEN,
    "deficit": VERMILLION,
    "load": SKY,
    "spot_price": PURPLE,
    "water_value": GREEN,
}


def plot_bounds(result: "TrainingResult") -> Figure:
    """Lower bound, sampled upper bound and its 95 % confidence band, by iteration."""
    with house_style():
        bounds = _bounds(result)
        figure, axes = draw_bounds(bounds)
        put_legend(figure, axes, legend_of(bounds))
    return figure


def plot_fan(result: "SimulationResult", quantity: str = "storage", entity: int | None = None) -> Figure:
    """Percentiles over scenarios by stage: the median, the middle half, and 5 to 95 %.

    quantity: one of storage, inflow, hydro_generation, thermal_generation, non_controllable_generation, deficit, load,
    spot_price and water_value. entity: the id of a plant or bus; None adds all of them up, where that means something.
    """
    cube = simulated_of(result).cube(_known(quantity, result.tables))
    fan = Fan.over_scenarios(_chosen(cube, quantity, entity), cube.labels)
    marks: tuple[Mark, ...] = fan_legend(COLOURS[quantity])
    with house_style():
        figure, axes = draw_fan(fan, cube.quantity.unit, COLOURS[quantity])
        put_legend(figure, axes, marks)
    return figure


def training_html(result: "TrainingResult") -> str:
    """For `_repr_html_`: the last numbers and the bounds."""
    bounds = _bounds(result)
    facts = {
        "iterations": f"{result.iterations} ({result.stop_reason})",
        "training": duration(result.training_seconds),
        "digest": result.digest[:16],
    }
    if not len(bounds):
        return _snippet("Training", facts, "")
    numbers = {
        "lower bound": money(bounds.lower[-1]),
        bounds.upper_name: money(bounds.upper[-1]) + ("" if bounds.is_exact else f" ± {money(bounds.half_width[-1])}"),
        "gap": percent(bounds.gap),
    }
    if (judged := result.verdict) is not None:
        numbers = {"verdict": judged.words} | numbers
    return _snippet("Training", numbers | facts, _drawn(bounds_chart(bounds, "cobre-bounds", "Bounds by iteration")))


def simulation_html(result: "SimulationResult") -> str:
    """For `_repr_html_`: what scenarios cost, and which tables there are."""
    tables = ", ".join(f"{name} ({table.num_rows:,} rows)" for name, table in result.tables.items())
    numbers = {
        "scenarios": f"{len(result.scenario_costs):,}",
        "mean cost": f"{money(result.mean_cost)} ± {money(result.half_width)} at 95 % confidence",
        "standard deviation": money(result.std_cost),
        "tables": tables,
        "digest": result.digest[:16],
    }
    if (note := result.cost_note) is not None:
        numbers = {"note": note} | numbers
    return _snippet("Simulation", numbers, "")


def simulated_of(result: "SimulationResult") -> Simulated:
    """The result's tables, as the report sees those of a directory."""
    tables = {
        name: {column: numbers_of(table[column]) for column in NEEDED_COLUMNS[name] if column in table.column_names}
        for name, table in result.tables.items()
        if name in NEEDED_COLUMNS
    }
    return Simulated(tables, StudyFacts({}))


def _known(quantity: str, tables: Mapping[str, Any]) -> str:
    possible = [name for name, found in QUANTITIES.items() if found.table in tables]
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
        raise ValueError(f"{name} does not add up: name one {cube.quantity.entity} with entity=; there are {known}")
    return cube.of(cube.entities[0])


def _bounds(result: "TrainingResult") -> Bounds:
    table = result.bounds
    bounds = bounds_of_table({name: numbers_of(table[name]) for name in Bounds.COLUMNS})
    is_exact = bool(result.history) and result.history[-1].is_exact
    return replace(bounds, is_exact=is_exact, is_risk_averse=result.is_risk_averse)


def _drawn(chart: Chart) -> str:
    """With a legend that needs no style sheet."""
    names = "".join(
        f'<span style="margin-right:14px"><span style="color:{mark.colour};opacity:{max(mark.strength, 0.5)}">'
        f"&#9632;</span> {escape(mark.name)}</span>"
        for mark in chart.legend
    )
    return f'<div style="font-size:12px">{names}</div>{svg_of(chart)}'


def _snippet(title: str, facts: Mapping[str, str], chart: str) -> str:
    """Takes the notebook's own colours for text; nothing is fetched, and no script runs."""
    rows = "".join(
        f'<tr><th style="text-align:left;font-weight:500;opacity:.75">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in facts.items()
    )
    return (
        '<div class="cobre-result" style="--ink:currentColor;--muted:currentColor;--grid:#8884;max-width:560px">'
        f'<strong>Cobre {escape(title.lower())}</strong><table style="margin:4px 0">{rows}</table>{chart}</div>'
    )
