"""Labels of the columns of result tables: units by the ending of a name, titles of the parts of the cost."""

from collections.abc import Mapping

# By ending, the longer before those that it contains.
_UNITS: Mapping[str, str] = {
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
    """The unit of a column by its ending, such as MW for `_mw`; empty where it has none."""
    return next((unit for ending, unit in _UNITS.items() if column.endswith(ending)), "")
