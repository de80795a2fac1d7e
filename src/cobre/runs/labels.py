"""Labels of results (units of columns, components of the cost), and thresholds below which numbers are noise."""

from collections.abc import Mapping

PHASE_COLOURS = {"forward": "cyan", "backward": "blue", "bound": "magenta", "exchange": "yellow"}
KEYS = ("scenario_id", "stage_id", "block_id")  # columns that a row of a result table has besides its entity
NOT_A_BOUND = "sampled, not a bound under a risk measure"
CONTROLLED = "controlled for the openings drawn"
"""Of a simulated mean: the effect of the random draw of openings is removed."""

# By ending; longer endings come before those that they contain.
_COLUMN_UNITS: Mapping[str, str] = {
    "_mw_per_m3s": "MW/(m3/s)",
    "_per_hm3": "$/hm3",
    "_per_mwh": "$/MWh",
    "_per_mw": "$/MW",
    "_m3s": "m3/s",
    "_hm3": "hm3",
    "_mwh": "MWh",
    "_mw": "MW",
    "_cost": "$",
    "_reward": "$",
    "_bound": "$",
    "_bound_std": "$",
    "_price": "$/MWh",
    "_percent": "%",
    "_ms": "ms",
}

KINDS_BY_ID: Mapping[str, str] = {
    "hydro_id": "hydros",
    "thermal_id": "thermals",
    "bus_id": "buses",
    "line_id": "lines",
    "non_controllable_id": "non_controllables",
    "contract_id": "contracts",
    "pumping_station_id": "pumping_stations",
}
"""Kinds of entities by the columns of results that have their ids."""

ID_COLUMNS: Mapping[str, str] = {
    "hydros": "hydro_id",
    "thermals": "thermal_id",
    "buses": "bus_id",
    "exchanges": "line_id",
    "non_controllables": "non_controllable_id",
    "contracts": "contract_id",
    "pumping_stations": "pumping_station_id",
}
"""Columns with the ids of entities, by table of a simulation."""

COST_COMPONENTS: Mapping[str, str] = {
    "thermal_cost": "Thermal generation",
    "anticipated_thermal_cost": "Thermal generation committed ahead",
    "contract_cost": "Contracts",
    "deficit_cost": "Deficit",
    "excess_cost": "Excess power",
    "storage_violation_cost": "Storage below its minimum",
    "filling_target_cost": "Missed filling targets",
    "outflow_violation_below_cost": "Outflow below its minimum",
    "outflow_violation_above_cost": "Outflow above its maximum",
    "turbined_violation_cost": "Turbined flow below its minimum",
    "generation_violation_cost": "Hydro generation below its minimum",
    "evaporation_violation_cost": "Evaporation not met",
    "withdrawal_violation_cost": "Water withdrawals not met",
    "inflow_penalty_cost": "Negative inflows",
    "spillage_cost": "Spillage",
    "diversion_cost": "Diversion",
    "turbined_cost": "Turbined flow",
    "exchange_cost": "Exchange between buses",
    "generic_violation_cost": "Generic constraints violated",
    "non_controllable_reward": "Reward for available sources",
    "curtailment_cost": "Curtailment",
}
"""Columns of the table of costs that add up to the cost of a stage."""


def unit_of_column(column: str) -> str:
    """Return the unit of a column by its ending, such as MW for `_mw`; empty if it has none."""
    return next((unit for ending, unit in _COLUMN_UNITS.items() if column.endswith(ending)), "")


# Thresholds of reports, tables and notes. LPs are solved to a tolerance, so tiny values are noise.

NEGLIGIBLE = 1e-6  # MWh, MW, hm3, m3/s or $: a deficit, violation or cost up to this counts as zero
NOTABLE_PENALTY_SHARE = 0.5  # of the cost: penalties of this share or more get a note
MIN_COST = 0.01  # $: smaller costs are left out of tables of costs
