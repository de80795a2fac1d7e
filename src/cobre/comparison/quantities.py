"""The compared quantities: columns of the simulation's tables, and their aggregation by stage, entity and study."""

from collections.abc import Mapping
from typing import Literal

from cobre.core.units import HM3_PER_M3S_HOUR
from cobre.records import dataclass
from cobre.runs.formatting import CONTROLLED


@dataclass(frozen=True, slots=True)
class ComparedQuantity:
    """A column of a table, and its aggregation.

    blocks, entities, stages: how to aggregate blocks to a stage, entities to the system (`load`: weighted by the energy
    of the load; `common`: the mean over entities that both studies have), and stages to the horizon (`hours`: weighted
    by hours). Values are multiplied by `factor`, and by the hours of the block if `is_rate`.
    """

    title: str
    unit: str
    table: str
    kind: str
    entity: str
    number: str
    blocks: Literal["sum", "last", "hours"]
    entities: Literal["sum", "load", "common"]
    stages: Literal["sum", "last", "hours"]
    factor: float = 1.0
    is_rate: bool = False


def _energy(title: str, table: str, entity: str, number: str = "generation_mwh") -> ComparedQuantity:
    return ComparedQuantity(title, "GWh", table, table, entity, number, "sum", "sum", "sum", factor=1e-3)


COST = "cost"
CONTROLLED_COST = "controlled_cost"
QUANTITIES: Mapping[str, ComparedQuantity] = {
    "marginal_cost": ComparedQuantity(
        "Marginal cost of energy", "$/MWh", "buses", "buses", "bus_id", "spot_price", "hours", "load", "hours"
    ),
    "hydro_generation": _energy("Hydro generation", "hydros", "hydro_id"),
    "thermal_generation": _energy("Thermal generation", "thermals", "thermal_id"),
    "non_controllable_generation": _energy("Wind and solar generation", "non_controllables", "non_controllable_id"),
    "contracts": _energy("Contracts (imports less exports)", "contracts", "contract_id", "energy_mwh"),
    "deficit": _energy("Deficit", "buses", "bus_id", "deficit_mwh"),
    "load": _energy("Load", "buses", "bus_id", "load_mwh"),
    "curtailment": _energy("Curtailment", "non_controllables", "non_controllable_id", "curtailment_mwh"),
    "exchange": ComparedQuantity(
        "Net flow on lines", "GWh", "exchanges", "lines", "line_id", "net_flow_mwh", "sum", "sum", "sum", factor=1e-3
    ),
    "inflow": ComparedQuantity(
        "Natural inflow", "m³/s", "hydros", "hydros", "hydro_id", "incremental_inflow_m3s", "last", "sum", "hours"
    ),
    "storage": ComparedQuantity(
        "Storage at the end", "hm³", "hydros", "hydros", "hydro_id", "storage_final_hm3", "last", "sum", "last"
    ),
    "spillage": ComparedQuantity(
        "Spillage",
        "hm³",
        "hydros",
        "hydros",
        "hydro_id",
        "spillage_m3s",
        "sum",
        "sum",
        "sum",
        factor=HM3_PER_M3S_HOUR,
        is_rate=True,
    ),
    "water_value": ComparedQuantity(
        "Water value", "$/hm³", "hydros", "hydros", "hydro_id", "water_value_per_hm3", "last", "common", "hours"
    ),
}
NOT_OF_THE_SYSTEM = frozenset({"exchange"})
"""Quantities without a value for the system: a sum of line flows has no meaning."""


def title_of(key: str) -> str:
    """The title of a quantity, or of the cost."""
    costs = {COST: "Cost", CONTROLLED_COST: f"Cost, {CONTROLLED}"}
    return costs[key] if key in costs else QUANTITIES[key].title


def unit_of(key: str) -> str:
    """The unit of a quantity, or of the cost."""
    return "$" if key in (COST, CONTROLLED_COST) else QUANTITIES[key].unit
