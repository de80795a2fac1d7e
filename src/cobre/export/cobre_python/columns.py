"""Columns of the tables of cobre-python 0.18, in its order; `?` marks those that may be null."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

_NODE = "scenario_id stage_id node_id"
_BLOCK = f"{_NODE} block_id?"
COLUMNS: dict[str, str] = {
    "costs": f"{_BLOCK} total_cost immediate_cost future_cost discount_factor thermal_cost anticipated_thermal_cost "
    "contract_cost deficit_cost excess_cost storage_violation_cost filling_target_cost hydro_violation_cost "
    "outflow_violation_below_cost outflow_violation_above_cost turbined_violation_cost generation_violation_cost "
    "evaporation_violation_cost withdrawal_violation_cost inflow_penalty_cost generic_violation_cost spillage_cost "
    "turbined_cost curtailment_cost exchange_cost pumping_cost",
    "hydros": f"{_BLOCK} hydro_id turbined_m3s spillage_m3s outflow_m3s evaporation_m3s? diverted_inflow_m3s? "
    "diverted_outflow_m3s? incremental_inflow_m3s inflow_m3s storage_initial_hm3 storage_final_hm3 generation_mw "
    "generation_mwh equivalent_productivity_mw_per_m3s accumulated_productivity_mw_per_m3s "
    "incremental_inflow_energy_mw stored_energy_initial_mwh stored_energy_final_mwh spillage_cost "
    "water_value_per_hm3 storage_binding_code operative_state_code turbined_slack_m3s outflow_slack_below_m3s "
    "outflow_slack_above_m3s generation_slack_mw storage_violation_below_hm3 filling_target_violation_hm3 "
    "evaporation_violation_pos_m3s evaporation_violation_neg_m3s inflow_nonnegativity_slack_m3s "
    "water_withdrawal_violation_pos_m3s water_withdrawal_violation_neg_m3s "
    "integrated_equivalent_productivity_mw_per_m3s integrated_accumulated_productivity_mw_per_m3s "
    "stored_energy_initial_mw stored_energy_final_mw",
    "hydro_bus_generation": f"{_BLOCK} hydro_id bus_id turbined_m3s generation_mw generation_mwh",
    "thermals": f"{_BLOCK} thermal_id generation_mw generation_mwh generation_cost is_anticipated "
    "anticipated_committed_mw? anticipated_decision_mw? operative_state_code",
    "exchanges": f"{_BLOCK} line_id direct_flow_mw reverse_flow_mw net_flow_mw net_flow_mwh losses_mw losses_mwh "
    "exchange_cost operative_state_code",
    "buses": f"{_BLOCK} bus_id load_mw load_mwh deficit_mw deficit_mwh excess_mw excess_mwh spot_price",
    "pumping_stations": f"{_BLOCK} pumping_station_id pumped_flow_m3s pumped_volume_hm3 power_consumption_mw "
    "energy_consumption_mwh pumping_cost operative_state_code",
    "contracts": f"{_BLOCK} contract_id power_mw energy_mwh price_per_mwh total_cost operative_state_code",
    "non_controllables": f"{_BLOCK} non_controllable_id generation_mw generation_mwh available_mw curtailment_mw "
    "curtailment_mwh curtailment_cost operative_state_code",
    "inflow_lags": f"{_NODE} hydro_id lag_index inflow_m3s",
    "in_transit": f"{_NODE} hydro_id lag in_transit_volume_hm3 delayed_arrival_hm3",
    "transit_seed": "scenario_id hydro_id start_date end_date value_m3s",
    "violations/generic": f"{_BLOCK} constraint_id slack_value slack_cost",
    "paths": _NODE,
    "scenario_summary": "scenario_id probability? discounted_immediate_cost",
    "convergence": "iteration lower_bound upper_bound upper_bound_std? upper_bound_kind gap_percent? cuts_added "
    "cuts_removed cuts_active time_forward_ms time_backward_ms time_total_ms forward_passes lp_solves mean_rows_in_lp",
    "iteration_timing": "iteration rank? worker_id? forward_wall_ms backward_wall_ms cut_selection_ms "
    "mpi_allreduce_ms cut_sync_ms lower_bound_ms state_exchange_ms cut_batch_build_ms bwd_setup_ms "
    "bwd_load_imbalance_ms bwd_scheduling_overhead_ms fwd_setup_ms fwd_load_imbalance_ms fwd_scheduling_overhead_ms "
    "overhead_ms lazy_scoring_ms",
    "solver_iterations": "iteration? scenario_id? phase stage_id? opening_index? rank? worker_id? lp_solves "
    "lp_successes lp_retries lp_failures retry_attempts basis_offered basis_consistency_failures simplex_iterations "
    "solve_time_ms load_model_time_ms set_bounds_time_ms basis_set_time_ms",
    "retry_histogram": "iteration phase stage_id? retry_level count",
}
# Not in the dictionary of variables of cobre-python.
MORE_COLUMNS: dict[str, str] = {
    "bounds": "entity_type_code entity_id hydro_id? stage_id block_id? bound_type_code bound_value",
}
# Names in cobre-python's dictionary of variables, where they differ from those of the folders.
DICTIONARY_NAMES: Mapping[str, str] = {"violations/generic": "generic_violations"}

_BY_NAME: Mapping[str, str] = {
    **dict.fromkeys(("iteration", "rank", "lag", "lag_index", "opening_index", "forward_passes"), "int32"),
    **dict.fromkeys(("cuts_added", "cuts_removed"), "int32"),
    **dict.fromkeys(("phase", "upper_bound_kind"), "string"),
    **dict.fromkeys(("start_date", "end_date"), "date32"),
    **dict.fromkeys(("cuts_active", "lazy_round_cap_hits"), "int64"),
    "is_anticipated": "bool",
}
_BY_TABLE: Mapping[tuple[str, str], str] = {
    ("convergence", "lp_solves"): "int64",
    ("retry_histogram", "iteration"): "uint32",
    ("retry_histogram", "retry_level"): "uint32",
    ("retry_histogram", "count"): "uint64",
    ("solver_iterations", "simplex_iterations"): "uint64",
    **{
        ("solver_iterations", name): "uint32"
        for name in (
            *("lp_solves", "lp_successes", "lp_retries", "lp_failures", "retry_attempts"),
            *("basis_offered", "basis_consistency_failures"),
        )
    },
    **{
        ("solver_iterations", name): "float64"
        for name in ("solve_time_ms", "load_model_time_ms", "set_bounds_time_ms", "basis_set_time_ms")
    },
}


def columns_of(table: str, more: str = "") -> list[tuple[str, str, bool]]:
    """Name, type and whether it may be null, in order; `more` are columns that follow."""
    words = f"{(COLUMNS | MORE_COLUMNS)[table]} {more}".split()
    found = [(word.rstrip("?"), word.endswith("?")) for word in words]
    return [(name, _kind(table, name), may_be_null) for name, may_be_null in found]


def _kind(table: str, column: str) -> str:
    known = _BY_TABLE.get((table, column)) or _BY_NAME.get(column)
    if known:
        return known
    if column.endswith("_id"):
        return "int32"
    if column.endswith("_code"):
        return "int8"
    return "int64" if column.endswith("_ms") else "float64"


def as_theirs(name: str, table: "pa.Table", more: str = "") -> "pa.Table":
    """The table with cobre-python's columns, in its order and types; null where we have no numbers.

    A table that cobre-python does not have is returned unchanged.
    """
    import pyarrow as pa

    if name not in COLUMNS | MORE_COLUMNS:
        return table
    fields, arrays = [], []
    for column, kind, may_be_null in columns_of(name, more):
        dtype = pa.type_for_alias(kind)
        is_known = column in table.column_names
        values = table[column].cast(dtype) if is_known else pa.nulls(table.num_rows, dtype)
        fields.append(pa.field(column, dtype, nullable=may_be_null or values.null_count > 0))
        arrays.append(values)
    return pa.table(arrays, schema=pa.schema(fields))
