"""Quantities of plants, buses and lines in a simulation: their columns, and how they are shown."""

from collections.abc import Mapping
from typing import Literal

from cobre.records import dataclass
from cobre.report.palette import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILLION

KEYS = ("scenario_id", "stage_id", "block_id")
Aggregation = Literal["power", "last", "average", "total"]


@dataclass(frozen=True, slots=True)
class Quantity:
    """A column of a table, and how it is shown.

    aggregation: from blocks to a stage. power: energy divided by the stage's hours; last: the value of the last block;
    average: weighted by hours; total: the sum. adds_up: the sum over entities is meaningful.
    is_violation: shown only for entities with a violation.
    """

    title: str
    unit: str
    table: str
    entity: str
    number: str
    aggregation: Aggregation
    adds_up: bool = True
    colour: str = BLUE
    is_violation: bool = False


def _hydro(title: str, unit: str, number: str, aggregation: Aggregation, colour: str = BLUE, **more: bool) -> Quantity:
    return Quantity(title, unit, "hydros", "hydro_id", number, aggregation, colour=colour, **more)


def _missed(title: str, unit: str, number: str, aggregation: Aggregation = "average") -> Quantity:
    return _hydro(title, unit, number, aggregation, VERMILLION, is_violation=True)


def _bus(title: str, unit: str, number: str, aggregation: Aggregation, colour: str, **more: bool) -> Quantity:
    return Quantity(title, unit, "buses", "bus_id", number, aggregation, colour=colour, **more)


def _source(title: str, number: str, aggregation: Aggregation, colour: str, **more: bool) -> Quantity:
    return Quantity(title, "MW", "non_controllables", "non_controllable_id", number, aggregation, colour=colour, **more)


QUANTITIES: Mapping[str, Quantity] = {
    "storage": _hydro("Stored water", "hm³", "storage_final_hm3", "last"),
    "inflow": _hydro("Natural inflow", "m³/s", "incremental_inflow_m3s", "last", SKY),
    "hydro_generation": _hydro("Hydro generation", "MW", "generation_mwh", "power"),
    "thermal_generation": Quantity(
        "Thermal generation", "MW", "thermals", "thermal_id", "generation_mwh", "power", colour=ORANGE
    ),
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
    "storage_violation": _missed("Storage below its minimum", "hm³", "storage_violation_below_hm3", "last"),
    "filling_violation": _missed("Filling target missed", "hm³", "filling_target_violation_hm3", "last"),
    "outflow_below": _missed("Outflow below its minimum", "m³/s", "outflow_slack_below_m3s"),
    "outflow_above": _missed("Outflow above its maximum", "m³/s", "outflow_slack_above_m3s"),
    "turbined_below": _missed("Turbined flow below its minimum", "m³/s", "turbined_slack_m3s"),
    "generation_below": _missed("Generation below its minimum", "MW", "generation_slack_mw"),
    "evaporation_over": _missed("Evaporation above the model's", "m³/s", "evaporation_violation_pos_m3s"),
    "evaporation_under": _missed("Evaporation below the model's", "m³/s", "evaporation_violation_neg_m3s"),
    "withdrawal_over": _missed("Withdrawal in excess", "m³/s", "water_withdrawal_violation_pos_m3s"),
    "withdrawal_under": _missed("Withdrawal not met", "m³/s", "water_withdrawal_violation_neg_m3s"),
    "negative_inflow": _missed("Correction of negative inflow", "m³/s", "inflow_nonnegativity_slack_m3s", "last"),
    "thermal_cost": Quantity(
        "Cost of thermal generation", "$", "thermals", "thermal_id", "generation_cost", "total", colour=GREY
    ),
    "excess": _bus("Excess power", "MW", "excess_mwh", "power", GREY),
    "available": _source("Available power", "available_mw", "average", SKY),
    "curtailment": _source("Curtailment", "curtailment_mwh", "power", VERMILLION),
    "line_flow": Quantity("Flow", "MW", "exchanges", "line_id", "net_flow_mwh", "power", False, BLUE),
    "line_losses": Quantity("Losses", "MW", "exchanges", "line_id", "losses_mwh", "power", colour=GREY),
    "contract_power": Quantity("Contracted power", "MW", "contracts", "contract_id", "power_mw", "average"),
    "contract_cost": Quantity(
        "Cost of the contract", "$", "contracts", "contract_id", "total_cost", "total", colour=GREY
    ),
    "pumped": Quantity(
        "Pumped flow", "m³/s", "pumping_stations", "pumping_station_id", "pumped_flow_m3s", "average", colour=SKY
    ),
    "pumping_power": Quantity(
        "Power used", "MW", "pumping_stations", "pumping_station_id", "power_consumption_mw", "average", colour=ORANGE
    ),
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


def columns_of(table: str) -> tuple[str, ...]:
    """The columns of a table that quantities need, keys first."""
    found = [quantity for quantity in QUANTITIES.values() if quantity.table == table]
    entity = [found[0].entity] if found else []
    return tuple(dict.fromkeys([*KEYS, *entity, *(quantity.number for quantity in found)]))
