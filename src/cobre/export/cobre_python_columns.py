"""Columns of the tables of cobre-python 0.18, in its order, and its table of limits; `?` marks nullable columns."""

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cobre.core.arrays import Floats
from cobre.core.case import System
from cobre.core.stage_data import StageData
from cobre.io.storage.confined import named_inside, open_untrusted
from cobre.records import dataclass
from cobre.sddp.problem.problem import PreparedStudy

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
    """Return name, type and nullability of the columns of a table, in order; `more` are columns that follow."""
    words = f"{(COLUMNS | MORE_COLUMNS)[table]} {more}".split()
    columns = [(word.rstrip("?"), word.endswith("?")) for word in words]
    return [(name, _kind(table, name), may_be_null) for name, may_be_null in columns]


def _kind(table: str, column: str) -> str:
    type_ = _BY_TABLE.get((table, column)) or _BY_NAME.get(column)
    if type_:
        return type_
    if column.endswith("_id"):
        return "int32"
    if column.endswith("_code"):
        return "int8"
    return "int64" if column.endswith("_ms") else "float64"


def as_peer_table(name: str, table: "pa.Table", more: str = "") -> "pa.Table":
    """Return the table with cobre-python's columns, in its order and types; null where we have no numbers.

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


# Files of this layout: Parquet with zstd compression, which cobre-python's reader needs, and JSON.
#
# Two programs read it, cobre-python 0.18 and its successor novomodelo 0.19. Both have the same directories, tables
# and dictionaries, and differ in what `Program` lists. Each loads no policy of another program or version than its
# own, so policies bear its name and version: they name the format.


@dataclass(frozen=True, slots=True)
class Program:
    """A reader of the layout.

    has_scaled_cuts: cuts in units of the cost scale, not in $. more_columns: by table, columns that follow those of
    cobre-python.
    """

    software: str
    version: str
    policy_format: int
    has_scaled_cuts: bool
    more_columns: Mapping[str, str] = field(default_factory=dict)


LAYOUT_0_18 = Program("cobre", "0.18.0", 3, has_scaled_cuts=False)
LAYOUT_0_19 = Program("novomodelo", "0.19.1", 4, True, {"convergence": "lazy_round_cap_hits"})


def write_table(path: Path, name: str, columns: "Mapping[str, Any] | pa.Table", more: str = "") -> None:
    """Write a table with cobre-python's columns, and `more`; null where not given, without rows if none is given."""
    import pyarrow as pa
    from pyarrow import parquet

    our_table = columns if isinstance(columns, pa.Table) else pa.table(dict(columns))
    table = as_peer_table(name, our_table, more) if our_table.num_columns else empty_table(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(table.replace_schema_metadata(None), path, compression="zstd")


def empty_table(name: str) -> "pa.Table":
    """Return a table of cobre-python's layout without rows."""
    import pyarrow as pa

    fields = [pa.field(column, pa.type_for_alias(kind), null) for column, kind, null in columns_of(name)]
    return pa.schema(fields).empty_table()


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file, indented."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def copy_inside(run: Path, name: str, target: Path) -> None:
    """Copy a file of the run; raises UntrustedFileError when it is a device, or a link that leads out of the run."""
    source = open_untrusted(named_inside(run, name, f"{run / name}"))
    with os.fdopen(source, "rb") as source_file, target.open("xb") as target_file:
        shutil.copyfileobj(source_file, target_file)


# The limits of every entity in every stage, with all overrides applied.

ENTITIES = {
    "hydro": 0,
    "thermal": 1,
    "bus": 2,
    "line": 3,
    "pumping_station": 4,
    "contract": 5,
    "non_controllable": 7,
    "hydro_unit_group": 8,
}

# Type and id of the entity, the plant of a unit group, stage, block, kind of limit, limit.
Bound = tuple[int, int, int | None, int, int | None, int, float]


def bound_columns(study: PreparedStudy) -> dict[str, Any]:
    """Return the columns of bounds.parquet, sorted by entity and stage as cobre-python sorts them."""
    rows = [row for lp in study.problem.stages for row in bound_rows(study.case.system, lp.plan.data)]
    rows.sort(key=_sort_key)
    names = ("entity_type_code", "entity_id", "hydro_id", "stage_id", "block_id", "bound_type_code", "bound_value")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=False))


def _sort_key(row: Bound) -> tuple[int, ...]:
    """Sort by entity, stage, kind of limit and block.

    Rows of a plant or stage precede those of its groups or blocks.
    """
    kind, entity, plant, stage, block, code, _ = row
    return kind, -1 if plant is None else plant, entity, stage, code, -1 if block is None else block


def bound_rows(system: System, data: StageData) -> Iterator[Bound]:
    """Yield the finite limits of a stage, and those of blocks that differ from it."""
    yield from _bounds("hydro", system.hydros, data, _hydro_limits(data))
    thermal, line, pumping, contract = data.thermal, data.line, data.pumping, data.contract
    yield from _bounds("thermal", system.thermals, data, {6: thermal.min_mw, 7: thermal.max_mw})
    yield from _bounds("line", system.lines, data, {8: np.zeros_like(line.direct_mw), 9: line.direct_mw})
    yield from _bounds("pumping_station", system.pumping_stations, data, {8: pumping.min_m3s, 9: pumping.max_m3s})
    yield from _bounds("contract", system.energy_contracts, data, {8: contract.min_mw, 9: contract.max_mw})
    group = data.group
    limits = {
        2: group.min_turbined_m3s,
        3: group.max_turbined_m3s,
        6: group.min_generation_mw,
        7: group.max_generation_mw,
    }
    groups = [(hydro.id, entry) for hydro in system.hydros for entry in hydro.unit_groups]
    owners = [hydro_id for hydro_id, _ in groups]
    yield from _bounds("hydro_unit_group", [entry for _, entry in groups], data, limits, owners)


def _hydro_limits(data: StageData) -> dict[int, Floats]:
    hydro = data.hydro
    return {
        0: hydro.min_storage_hm3[:, None],
        1: hydro.max_storage_hm3[:, None],
        2: hydro.min_turbined_m3s,
        3: hydro.max_turbined_m3s,
        4: hydro.min_outflow_m3s,
        5: hydro.max_outflow_m3s,
        6: hydro.min_generation_mw,
        7: hydro.max_generation_mw,
    }


def _bounds(
    kind: str,
    entities: Sequence[Any],
    data: StageData,
    limits: Mapping[int, Floats],
    owners: Sequence[int] | None = None,
) -> Iterator[Bound]:
    for index, entity in enumerate(entities):
        owner = None if owners is None else owners[index]
        for code, values in limits.items():
            for block, limit in _by_block(np.atleast_1d(values[index])):
                if np.isfinite(limit):
                    yield ENTITIES[kind], entity.id, owner, data.stage.id, block, code, limit


def _by_block(limits: Floats) -> Iterator[tuple[int | None, float]]:
    """Yield the most frequent limit, for the stage (None), then the limits of blocks that differ from it."""
    values, counts = np.unique(limits, return_counts=True)
    usual = float(values[np.argmax(counts)])
    yield None, usual
    yield from ((block, float(limit)) for block, limit in enumerate(limits) if limit != usual)
