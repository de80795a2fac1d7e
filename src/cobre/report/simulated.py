"""What a simulation's tables say, by scenario, stage and entity."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from cobre.core.indicators import NEGLIGIBLE
from cobre.report.entity_rows import Columns, EntityRows, Floats, block_hours
from cobre.report.study_facts import StudyFacts

KEYS = ("scenario_id", "stage_id")
PERCENTILES = (5, 25, 50, 75, 95)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number of a table; `way` tells what becomes of blocks, and power is energy over the stage's hours."""

    title: str
    unit: str
    table: str
    entity: str
    number: str
    way: Literal["power", "last", "average"]
    adds_up: bool = True


QUANTITIES: Mapping[str, Quantity] = {
    "storage": Quantity("Stored water", "hm³", "hydros", "hydro_id", "storage_final_hm3", "last"),
    "inflow": Quantity("Natural inflow", "m³/s", "hydros", "hydro_id", "incremental_inflow_m3s", "last"),
    "hydro_generation": Quantity("Hydro generation", "MW", "hydros", "hydro_id", "generation_mwh", "power"),
    "thermal_generation": Quantity("Thermal generation", "MW", "thermals", "thermal_id", "generation_mwh", "power"),
    "non_controllable_generation": Quantity(
        "Generation of wind, sun and the like",
        "MW",
        "non_controllables",
        "non_controllable_id",
        "generation_mwh",
        "power",
    ),
    "deficit": Quantity("Load that is not served", "MW", "buses", "bus_id", "deficit_mwh", "power"),
    "load": Quantity("Load", "MW", "buses", "bus_id", "load_mwh", "power"),
    "spot_price": Quantity("Spot price", "$/MWh", "buses", "bus_id", "spot_price", "average", adds_up=False),
    "water_value": Quantity("Water value", "$/hm³", "hydros", "hydro_id", "water_value_per_hm3", "last", adds_up=False),
}
COST_COMPONENTS = {
    "thermal_cost": "Thermal generation",
    "anticipated_thermal_cost": "Thermal generation decided ahead",
    "contract_cost": "Contracts",
    "deficit_cost": "Load that is not served",
    "excess_cost": "Excess of power",
    "storage_violation_cost": "Storage below its least",
    "filling_target_cost": "Filling targets missed",
    "outflow_violation_below_cost": "Outflow below its least",
    "outflow_violation_above_cost": "Outflow above its most",
    "turbined_violation_cost": "Turbined flow below its least",
    "generation_violation_cost": "Hydro generation below its least",
    "evaporation_violation_cost": "Evaporation not met",
    "withdrawal_violation_cost": "Withdrawals not met",
    "inflow_penalty_cost": "Negative inflows",
    "spillage_cost": "Spillage",
    "diversion_cost": "Diversion",
    "turbined_cost": "Turbined flow",
    "exchange_cost": "Exchange between buses",
    "generic_violation_cost": "User's constraints",
    "non_controllable_reward": "Reward of available sources",
    "curtailment_cost": "Curtailment",
}
SOMETIMES_MISSING = frozenset({"anticipated_thermal_cost"})  # only where some plant decides ahead
NEEDED_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "costs": (*KEYS, "immediate_cost", "discount_factor", *COST_COMPONENTS),
    "hydros": (
        *KEYS,
        "hydro_id",
        "storage_final_hm3",
        "incremental_inflow_m3s",
        "generation_mwh",
        "water_value_per_hm3",
    ),
    "thermals": (*KEYS, "thermal_id", "generation_mwh", "generation_cost"),
    "non_controllables": (*KEYS, "non_controllable_id", "generation_mwh"),
    "buses": (*KEYS, "block_id", "bus_id", "load_mw", "load_mwh", "deficit_mwh", "spot_price"),
}


@dataclass(frozen=True, slots=True)
class Cube:
    """S x T x E numbers, with the ids of the entities."""

    quantity: Quantity
    values: Floats
    labels: list[str]
    entities: tuple[int, ...]

    def of(self, entity: int) -> Floats:
        """S x T of one entity."""
        chosen: Floats = self.values[:, :, self.entities.index(entity)]
        return chosen

    def total(self) -> Floats:
        """S x T, added over entities; those that are not there count nothing."""
        added: Floats = np.nansum(self.values, axis=2)
        return added


@dataclass(frozen=True, slots=True)
class Fan:
    """Percentiles over scenarios, and the mean, by stage."""

    labels: list[str]
    percentiles: Floats
    mean: Floats

    @classmethod
    def over_scenarios(cls, values: Floats, labels: list[str]) -> "Fan":
        """Of S x T numbers."""
        return cls(labels, np.percentile(values, PERCENTILES, axis=0), values.mean(axis=0))


class Simulated:
    """The tables of a simulation, by name, as columns."""

    def __init__(self, tables: Mapping[str, Columns], study: StudyFacts) -> None:
        self._tables = tables
        self._study = study
        self._rows: dict[str, EntityRows] = {}

    def has(self, quantity: str) -> bool:
        """Whether the tables tell this quantity of anything at all."""
        table = self._tables.get(QUANTITIES[quantity].table)
        return table is not None and len(table["stage_id"]) > 0

    def cube(self, name: str) -> Cube:
        """A quantity by scenario, stage and entity."""
        quantity = QUANTITIES[name]
        rows = self.rows(quantity.table, quantity.entity)
        return Cube(quantity, self._values(rows, quantity), self._study.stage_labels(rows.stages), rows.entities)

    def _values(self, rows: EntityRows, quantity: Quantity) -> Floats:
        if quantity.way == "last":
            return rows.last(quantity.number)
        if quantity.way == "average":
            return rows.average(quantity.number, self._block_hours)
        hours = self._study.hours(rows.stages) or self._hours_of_blocks(rows.stages)
        power: Floats = rows.total(quantity.number) / np.array(hours)[:, None]
        return power

    def rows(self, table: str, entity: str | None) -> EntityRows:
        """The rows of a table, found by scenario, stage and entity."""
        if table not in self._rows:
            self._rows[table] = EntityRows(self._tables[table], entity)
        return self._rows[table]

    @cached_property
    def _block_hours(self) -> Floats:
        return block_hours(self._tables["buses"])

    def _hours_of_blocks(self, stages: tuple[int, ...]) -> list[float]:
        """Those of one bus in one scenario, whose blocks are all blocks."""
        rows = self.rows("buses", "bus_id")
        buses = self._tables["buses"]
        is_first = (buses["scenario_id"] == rows.scenarios[0]) & (buses["bus_id"] == rows.entities[0])
        stage, hours = buses["stage_id"][is_first], self._block_hours[is_first]
        return [float(hours[stage == wanted].sum()) for wanted in stages]

    def scenario_costs(self) -> Floats:
        """What each scenario costs in $ of the first stage's money."""
        costs, rows = self._tables["costs"], self.rows("costs", None)
        return np.asarray(rows.by_scenario(costs["immediate_cost"] * costs["discount_factor"]))

    def component_costs(self) -> dict[str, float]:
        """The mean over scenarios of each component that is not nothing, in $ of the first stage's money."""
        costs, rows = self._tables["costs"], self.rows("costs", None)
        means = {
            title: float(rows.by_scenario(costs[name] * costs["discount_factor"]).mean())
            for name, title in COST_COMPONENTS.items()
            if name in costs
        }
        return {title: mean for title, mean in means.items() if abs(mean) > NEGLIGIBLE}
