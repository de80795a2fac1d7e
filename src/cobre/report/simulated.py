"""Results of a simulation by scenario, stage and entity."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np

from cobre.core.arrays import Floats
from cobre.records import dataclass
from cobre.report.charts import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILLION,
    Band,
    Chart,
    Drawing,
    LegendEntry,
    Series,
)
from cobre.report.entity_rows import Columns, EntityRows, block_hours, last_block, mean_over_blocks, sum_over_blocks
from cobre.report.stored_study import StoredStudy
from cobre.runs.labels import COST_COMPONENTS, ID_COLUMNS, KEYS, MIN_COST
from cobre.text import digits

PERCENTILES = (5, 25, 50, 75, 95)

CELLS_AT_ONCE = 1 << 12  # sorted together: few enough for the CPU cache


def percentiles(values: Floats, percents: Sequence[float] = PERCENTILES) -> Floats:
    """Return percentiles over the first axis, the scenarios, as by `numpy.percentile`; NaN where any value is NaN."""
    scenarios, shape = values.shape[0], values.shape[1:]
    flat = values.reshape(scenarios, -1)
    result = np.empty((len(percents), flat.shape[1]), np.float64)
    rank = np.asarray(percents, np.float64) / 100.0 * (scenarios - 1)
    below = np.floor(rank).astype(np.intp)
    above = np.minimum(below + 1, scenarios - 1)
    share = (rank - below)[:, None]
    for first in range(0, flat.shape[1], CELLS_AT_ONCE):
        ordered = np.sort(flat[:, first : first + CELLS_AT_ONCE], axis=0)
        low, high = ordered[below], ordered[above]
        interpolated = low + (high - low) * share
        interpolated[:, np.isnan(ordered[-1])] = np.nan  # NaN is sorted to the end
        result[:, first : first + CELLS_AT_ONCE] = interpolated
    return result.reshape(len(percents), *shape)


# Quantities of plants, buses and lines in a simulation: their columns, and how they are shown.


Aggregation = Literal["power", "last", "average", "total"]


@dataclass(frozen=True, slots=True)
class Quantity:
    """A column of a table, and how it is shown.

    aggregation: from blocks to a stage. power: energy divided by the hours of the stage; last: the value of the last
    block; average: weighted by hours; total: the sum. adds_up: the sum over entities has a meaning. is_violation: shown
    only for entities with a violation.
    """

    title: str
    unit: str
    table: str
    column: str
    aggregation: Aggregation
    adds_up: bool = True
    colour: str = BLUE
    is_violation: bool = False

    @property
    def id_column(self) -> str:
        """The column with the ids of the entities."""
        return ID_COLUMNS[self.table]


def _hydro(title: str, unit: str, column: str, aggregation: Aggregation, colour: str = BLUE, **more: bool) -> Quantity:
    return Quantity(title, unit, "hydros", column, aggregation, colour=colour, **more)


def _violation(title: str, unit: str, column: str, aggregation: Aggregation = "average") -> Quantity:
    return _hydro(title, unit, column, aggregation, VERMILLION, is_violation=True)


def _bus(title: str, unit: str, column: str, aggregation: Aggregation, colour: str, **more: bool) -> Quantity:
    return Quantity(title, unit, "buses", column, aggregation, colour=colour, **more)


def _source(title: str, column: str, aggregation: Aggregation, colour: str, **more: bool) -> Quantity:
    return Quantity(title, "MW", "non_controllables", column, aggregation, colour=colour, **more)


QUANTITIES: Mapping[str, Quantity] = {
    "storage": _hydro("Stored water", "hm³", "storage_final_hm3", "last"),
    "inflow": _hydro("Natural inflow", "m³/s", "incremental_inflow_m3s", "last", SKY),
    "hydro_generation": _hydro("Hydro generation", "MW", "generation_mwh", "power"),
    "thermal_generation": Quantity("Thermal generation", "MW", "thermals", "generation_mwh", "power", colour=ORANGE),
    "non_controllable_generation": _source("Wind, solar and other generation", "generation_mwh", "power", GREEN),
    "deficit": _bus("Deficit", "MW", "deficit_mwh", "power", VERMILLION),
    "load": _bus("Load", "MW", "load_mwh", "power", SKY),
    "spot_price": _bus("Spot price", "$/MWh", "spot_price", "average", PURPLE, adds_up=False),
    "water_value": _hydro("Water value", "$/hm³", "water_value_per_hm3", "last", GREEN, adds_up=False),
    "turbined": _hydro("Turbined flow", "m³/s", "turbined_m3s", "average"),
    "spillage": _hydro("Spillage", "m³/s", "spillage_m3s", "average", VERMILLION),
    "outflow": _hydro("Outflow", "m³/s", "outflow_m3s", "average", SKY),
    "evaporation": _hydro("Evaporation", "m³/s", "evaporation_m3s", "average", GREY),
    "diverted": _hydro("Diverted flow", "m³/s", "diverted_outflow_m3s", "average", GREY),
    "storage_violation": _violation("Storage below its minimum", "hm³", "storage_violation_below_hm3", "last"),
    "filling_violation": _violation("Filling target missed", "hm³", "filling_target_violation_hm3", "last"),
    "outflow_below": _violation("Outflow below its minimum", "m³/s", "outflow_slack_below_m3s"),
    "outflow_above": _violation("Outflow above its maximum", "m³/s", "outflow_slack_above_m3s"),
    "turbined_below": _violation("Turbined flow below its minimum", "m³/s", "turbined_slack_m3s"),
    "generation_below": _violation("Generation below its minimum", "MW", "generation_slack_mw"),
    "evaporation_over": _violation("Evaporation above the model's", "m³/s", "evaporation_violation_pos_m3s"),
    "evaporation_under": _violation("Evaporation below the model's", "m³/s", "evaporation_violation_neg_m3s"),
    "withdrawal_over": _violation("Withdrawal in excess", "m³/s", "water_withdrawal_violation_pos_m3s"),
    "withdrawal_under": _violation("Withdrawal not met", "m³/s", "water_withdrawal_violation_neg_m3s"),
    "negative_inflow": _violation("Correction of negative inflow", "m³/s", "inflow_nonnegativity_slack_m3s", "last"),
    "thermal_cost": Quantity("Cost of thermal generation", "$", "thermals", "generation_cost", "total", colour=GREY),
    "excess": _bus("Excess power", "MW", "excess_mwh", "power", GREY),
    "available": _source("Available power", "available_mw", "average", SKY),
    "curtailment": _source("Curtailment", "curtailment_mwh", "power", VERMILLION),
    "line_flow": Quantity("Flow", "MW", "exchanges", "net_flow_mwh", "power", False, BLUE),
    "line_losses": Quantity("Losses", "MW", "exchanges", "losses_mwh", "power", colour=GREY),
    "contract_power": Quantity("Contracted power", "MW", "contracts", "power_mw", "average"),
    "contract_cost": Quantity("Cost of the contract", "$", "contracts", "total_cost", "total", colour=GREY),
    "pumped": Quantity("Pumped flow", "m³/s", "pumping_stations", "pumped_flow_m3s", "average", colour=SKY),
    "pumping_power": Quantity("Power used", "MW", "pumping_stations", "power_consumption_mw", "average", colour=ORANGE),
}

# Kinds of entities in the explorer: key in study.json, title, and quantities in the order of the page.
KINDS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "hydros": (
        "Hydro plants",
        (
            "storage",
            "hydro_generation",
            "turbined",
            "spillage",
            "inflow",
            "outflow",
            "water_value",
            "evaporation",
            "diverted",
            *(name for name, quantity in QUANTITIES.items() if quantity.is_violation),
        ),
    ),
    "thermals": ("Thermal plants", ("thermal_generation", "thermal_cost")),
    "buses": ("Buses", ("spot_price", "load", "deficit", "excess")),
    "lines": ("Lines", ("line_flow", "line_losses")),
    "non_controllables": (
        "Wind, solar and other",
        ("non_controllable_generation", "available", "curtailment"),
    ),
    "contracts": ("Contracts", ("contract_power", "contract_cost")),
    "pumping_stations": ("Pumping stations", ("pumped", "pumping_power")),
}


# Columns that every table of `cobre run` has; other columns may be missing.
NEEDED_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "costs": ("scenario_id", "stage_id", "immediate_cost", "discount_factor"),
    **{quantity.table: (*KEYS, quantity.id_column) for quantity in QUANTITIES.values()},
}


@dataclass(frozen=True, slots=True)
class Cube:
    """A quantity as an array S x T x E (scenarios, stages, entities), with labels of stages and ids of entities."""

    quantity: Quantity
    values: Floats
    labels: list[str]
    entities: tuple[int, ...]

    def of(self, entity: int) -> Floats:
        """Return S x T: the values of one entity."""
        values_of_entity: Floats = self.values[:, :, self.entities.index(entity)]
        return values_of_entity

    def total(self) -> Floats:
        """Return S x T: the sum over entities; missing ones count as 0."""
        total: Floats = np.nansum(self.values, axis=2)
        return total


@dataclass(frozen=True, slots=True)
class Fan:
    """Percentiles over scenarios, and the mean, by stage."""

    labels: list[str]
    percentiles: Floats
    mean: Floats

    @classmethod
    def over_scenarios(cls, values: Floats, labels: list[str]) -> "Fan":
        """Compute the fan of S x T numbers."""
        return cls(labels, percentiles(values), values.mean(axis=0))


class SimulationTables:
    """The tables of a simulation, read by quantity."""

    def __init__(self, tables: Mapping[str, Columns], study: StoredStudy) -> None:
        self._tables = tables
        self._study = study
        self._rows: dict[str, EntityRows] = {}

    def has(self, name: str) -> bool:
        """Return whether the tables have this quantity for any entity."""
        quantity = QUANTITIES[name]
        table = self._tables.get(quantity.table)
        if table is None or quantity.column not in table:
            return False
        return bool(self.rows(quantity.table).entities)

    def cube(self, name: str) -> Cube:
        """Read a quantity by scenario, stage and entity."""
        quantity = QUANTITIES[name]
        rows = self.rows(quantity.table)
        values = rows.reduce_blocks(quantity.column, lambda grid: self._values(rows, quantity, grid))
        return Cube(quantity, values, self._study.stage_labels(rows.stages), rows.entities)

    def cube_and_block_means(self, name: str) -> tuple[Cube, Floats]:
        """Read a quantity, and its means over scenarios by stage, entity and block, in one pass."""
        quantity = QUANTITIES[name]
        rows = self.rows(quantity.table)
        sums = np.zeros(rows.shape[1:])

        def reduced(grid: Floats) -> Floats:
            np.add(sums, self._by_block(rows, quantity, grid).sum(axis=0), out=sums)
            return self._values(rows, quantity, grid)

        values = rows.reduce_blocks(quantity.column, reduced)
        return Cube(quantity, values, self._study.stage_labels(rows.stages), rows.entities), sums / len(rows.scenarios)

    def blocks(self, name: str) -> Floats:
        """Return S x T x E x B: values by block, energy as mean power. As large as the column of the table."""
        quantity = QUANTITIES[name]
        rows = self.rows(quantity.table)
        return self._by_block(rows, quantity, rows.grid(quantity.column))

    def _by_block(self, rows: EntityRows, quantity: Quantity, grid: Floats) -> Floats:
        if quantity.aggregation != "power":
            return grid
        hours = self.hours(rows)
        return grid / np.where(hours > 0, hours, np.nan)[:, None, :]

    def _values(self, rows: EntityRows, quantity: Quantity, grid: Floats) -> Floats:
        match quantity.aggregation:
            case "last":
                return last_block(grid)
            case "average":
                return mean_over_blocks(grid, self.hours(rows))
            case "total":
                return sum_over_blocks(grid)
        hours = self._study.hours(rows.stages) or self.hours(rows).sum(axis=1)
        power: Floats = sum_over_blocks(grid) / np.asarray(hours)[:, None]
        return power

    def rows(self, table: str) -> EntityRows:
        """Return the rows of a table, indexed by scenario, stage and entity."""
        if table not in self._rows:
            self._rows[table] = EntityRows(self._tables[table], ID_COLUMNS.get(table))
        return self._rows[table]

    def hours(self, rows: EntityRows) -> Floats:
        """Return T x B: hours of each block, for the stages of a table."""
        known = self._study.block_hours(rows.stages, len(rows.blocks))
        return self._hours_of_buses if known is None else known

    @cached_property
    def _hours_of_buses(self) -> Floats:
        return block_hours(self.rows("buses"))

    def scenario_costs(self) -> Floats:
        """Return the cost of each scenario in $, discounted to the first stage."""
        costs, rows = self._tables["costs"], self.rows("costs")
        return np.asarray(rows.by_scenario(costs["immediate_cost"] * costs["discount_factor"]))

    def component_costs(self) -> dict[str, float]:
        """Return the mean of each cost component of at least `MIN_COST`, in $ discounted to the first stage."""
        costs, rows = self._tables["costs"], self.rows("costs")
        means = {
            title: float(rows.by_scenario(costs[name] * costs["discount_factor"]).mean())
            for name, title in COST_COMPONENTS.items()
            if name in costs
        }
        return {title: mean for title, mean in means.items() if abs(mean) >= MIN_COST}


# Limits of lines, and how often they are reached.

LIMIT_TOLERANCE = 1e-6  # a flow is at its limit within this share of the limit, or of 1 MW


def limits(study: StoredStudy, rows: EntityRows) -> tuple[Floats, Floats] | None:
    """Return L x T x B limits in MW, direct and reverse; None if study.json has no limits."""
    records = {entry["id"]: entry for entry in study.line_limits if isinstance(entry.get("id"), int)}
    shape = (len(rows.entities), len(rows.stages), len(rows.blocks))
    direct, reverse = (
        np.array([_limits_of(records.get(id_, {}), name, shape[1:]) for id_ in rows.entities]).reshape(shape)
        for name in ("direct_mw", "reverse_mw")
    )
    return None if np.isnan(direct).all() else (direct, reverse)


def _limits_of(entry: Mapping[str, Any], name: str, shape: tuple[int, int]) -> Floats:
    """Return T x B limits in MW; NaN where the limit is unknown or infinite."""
    by_stage = np.full(shape, np.nan)
    for stage, by_block in enumerate(entry.get(name, ())[: shape[0]]):
        for block, value in enumerate(by_block[: shape[1]]):
            by_stage[stage, block] = np.nan if value is None else value
    return by_stage


def limits_by_stage(study: StoredStudy, rows: EntityRows, hours: Floats) -> tuple[Floats, Floats]:
    """Return L x T limits in MW, both directions: the mean weighted by hours; NaN where unknown."""
    line_limits = limits(study, rows)
    if line_limits is None:
        nothing = np.full((len(rows.entities), len(rows.stages)), np.nan)
        return nothing, nothing
    weights = hours / hours.sum(axis=1, keepdims=True)
    direct, reverse = ((np.where(weights > 0, values, 0.0) * weights).sum(axis=2) for values in line_limits)
    return direct, reverse


def congestion(study: StoredStudy, rows: EntityRows, hours: Floats) -> Floats | None:
    """Return L x 2 x T: the share of hours, over scenarios, at the limit, in the direct and the reverse direction."""
    line_limits = limits(study, rows)
    if line_limits is None:
        return None
    weights = hours / hours.sum(axis=1, keepdims=True)
    sums = np.zeros((2, *line_limits[0].shape[:2]))
    for grid in rows.grids("net_flow_mw"):
        flow = np.moveaxis(grid, 2, 1)  # S x L x T x B
        for direction, (sign, limit) in enumerate(zip((1.0, -1.0), line_limits, strict=True)):
            sums[direction] += _share_at(sign * flow, limit, weights)
    return np.moveaxis(sums / len(rows.scenarios), 0, 1)


def _share_at(flow: Floats, limit: Floats, weights: Floats) -> Floats:
    """Return L x T: shares of hours at the limit, summed over scenarios.

    A limit of 0 (out of service) does not count.
    """
    slack = LIMIT_TOLERANCE * np.maximum(limit, 1.0)
    is_full = (flow >= limit - slack) & (limit > slack)
    shares: Floats = (is_full * weights).sum(axis=(0, 3))
    return shares


OUTER_OPACITY, INNER_OPACITY = 0.18, 0.32


def fan_legend(colour: str) -> tuple[LegendEntry, ...]:
    """Return median, mean and the two percentile bands, the inner one first."""
    return (
        LegendEntry("median", colour),
        LegendEntry("mean", colour, "dash"),
        LegendEntry("25 to 75 %", colour, "band", INNER_OPACITY + OUTER_OPACITY),
        LegendEntry("5 to 95 % of the scenarios", colour, "band", OUTER_OPACITY),
    )


def fan_chart(fan: Fan, key: str, title: str, unit: str, colour: str = BLUE) -> Chart:
    """Draw median and mean, with bands of 25 to 75 % and 5 to 95 %.

    The mean matters where few scenarios dominate: a price may have a median of 0 and a mean of hundreds.
    """
    middle, mean = fan.percentiles[2], fan.mean
    development = (
        f"the median goes from {digits(middle[0])} {unit} (mean {digits(mean[0])}) in {fan.labels[0]} "
        f"to {digits(middle[-1])} {unit} (mean {digits(mean[-1])})"
    )
    bands = (Band(4, 0, colour, OUTER_OPACITY), Band(3, 1, colour, INNER_OPACITY))
    description = f"{title}: {development} in {fan.labels[-1]}."
    return Chart(key, title, description, unit, fan.labels, _series(fan, colour), bands, fan_legend(colour))


def _series(fan: Fan, colour: str) -> list[Series]:
    names = ["median" if percentile == 50 else f"{percentile} %" for percentile in PERCENTILES]
    drawings: tuple[Drawing, ...] = ("thin", "none", "line", "none", "thin")
    series = [
        Series(name, values, colour, drawing)
        for name, values, drawing in zip(names, fan.percentiles, drawings, strict=True)
    ]
    return [*series, Series("mean", fan.mean, colour, "dash")]
