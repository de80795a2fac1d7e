"""Simulation tables with the columns that scripts for cobre-python know, in its order; ours follow.

Facts that files hold once for each entity and stage (see `supplementary_tables`) are repeated for every scenario here.
Results that were written without these facts have nulls in their place.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cobre.core.arrays import MWH_PER_HM3, Floats
from cobre.sddp.simulation.network_tables import AHEAD
from cobre.study.simulation.supplementary_tables import (
    ENTITY_STAGES,
    INITIAL_LAGS,
    LAG_STEPS,
    SUPPLEMENTARY_TABLES,
    TREE_PATHS,
)

if TYPE_CHECKING:
    import pyarrow as pa

    # Facts of the rows of a table, by the names of their columns.
    RowFacts = Callable[[str, pa.Table, tuple[str, ...]], dict[str, pa.ChunkedArray] | None]


PRODUCTIVITIES = (
    "equivalent_productivity_mw_per_m3s",
    "accumulated_productivity_mw_per_m3s",
    "integrated_equivalent_productivity_mw_per_m3s",
    "integrated_accumulated_productivity_mw_per_m3s",
)

ENERGY_COLUMNS = (
    *PRODUCTIVITIES[:2],
    "incremental_inflow_energy_mw",
    "stored_energy_initial_mwh",
    "stored_energy_final_mwh",
    *PRODUCTIVITIES[2:],
    "stored_energy_initial_mw",
    "stored_energy_final_mw",
)

FREE, AT_MINIMUM, AT_MAXIMUM = 0, 1, 2  # both: 3
AT_A_LIMIT = 1e-6  # relative, and hm3


def energy_columns(hydros: "pa.Table", facts_of: "RowFacts") -> "pa.Table":
    """Add energies, and the state of reservoirs at the end of every row, to the table of plants."""
    import pyarrow as pa

    names = (*PRODUCTIVITIES, "dead_storage_hm3", "min_storage_hm3", "max_storage_hm3", "stage_hours")
    productivities = facts_of("hydros", hydros, names)
    if productivities is None:
        productivities = {name: pa.nulls(hydros.num_rows, pa.float64()) for name in names}
    facts = {name: column.to_numpy(zero_copy_only=False) for name, column in productivities.items()}
    values = {name: facts[name] for name in PRODUCTIVITIES} | _energies(hydros, facts)
    for name in ENERGY_COLUMNS:
        hydros = hydros.append_column(name, pa.array(values[name], pa.float64(), from_pandas=True))
    return hydros.append_column("storage_binding_code", _binding(hydros, facts))


def _energies(hydros: "pa.Table", facts: dict[str, Floats]) -> dict[str, Floats]:
    inflow = hydros["incremental_inflow_m3s"].to_numpy()
    energies = {"incremental_inflow_energy_mw": facts["accumulated_productivity_mw_per_m3s"] * inflow}
    for moment in ("initial", "final"):
        useful = hydros[f"storage_{moment}_hm3"].to_numpy() - facts["dead_storage_hm3"]
        stored = useful * (facts["integrated_accumulated_productivity_mw_per_m3s"] * MWH_PER_HM3)
        energies[f"stored_energy_{moment}_mwh"] = stored
        energies[f"stored_energy_{moment}_mw"] = stored / facts["stage_hours"]
    return energies


def _binding(hydros: "pa.Table", facts: dict[str, Floats]) -> "pa.Array":
    """Return 0 between the limits of a stage, 1 at or below the lower, 2 at the upper one, 3 where they are equal."""
    import pyarrow as pa

    volume, minimum, maximum = (
        hydros["storage_final_hm3"].to_numpy(),
        facts["min_storage_hm3"],
        facts["max_storage_hm3"],
    )
    is_low = volume <= minimum + AT_A_LIMIT * np.maximum(1.0, np.abs(minimum))
    is_high = volume >= maximum - AT_A_LIMIT * np.maximum(1.0, np.abs(maximum))
    codes = (AT_MINIMUM * is_low + AT_MAXIMUM * is_high).astype(np.int8)
    return pa.array(codes, pa.int8(), mask=np.isnan(minimum) | np.isnan(maximum))


def lagged_inflows(hydros: "pa.Table", initial: "pa.Table | None", steps: "pa.Table | None" = None) -> "pa.Table":
    """Return `inflow_lags`: the past inflows in the LPs of each stage; lag 0 is the stage before.

    It has no rows where inflows do not depend on earlier ones. `steps`: how lags that are means of seasons change
    at each stage; those that no stage reads yet follow the lags of the stage.
    """
    import pyarrow as pa

    scenarios, stages, ids, inflow = _inflow_cube(hydros)
    lags = np.zeros(0) if initial is None else initial["inflow_m3s"].to_numpy()
    orders = len(lags) // len(ids)
    past = lags.reshape(len(ids), orders)  # plants are in the same order in all tables of a run
    values = _shifted(past, inflow) if steps is None else _carried(past, inflow, steps)
    axes = (scenarios, stages, ids, np.arange(orders, dtype=np.int32))
    scenario, stage, plant, lag = (np.broadcast_to(axis, values.shape).reshape(-1) for axis in np.ix_(*axes))
    columns = {"scenario_id": scenario, "stage_id": stage, "node_id": stage, "hydro_id": plant, "lag_index": lag}
    arrays = {name: pa.array(column, pa.int32()) for name, column in columns.items()}
    return pa.table(arrays | {"inflow_m3s": pa.array(values.reshape(-1), pa.float64())})


def _shifted(past: Floats, inflow: Floats) -> Floats:
    """Shift lags (scenario, stage, plant, lag) by one place."""
    orders = past.shape[1]
    before = np.broadcast_to(past[:, ::-1].T, (len(inflow), orders, len(past)))
    inflows = np.concatenate([before, inflow], axis=1)  # lag k of stage t is at t + orders - 1 - k
    at = np.arange(inflow.shape[1])[:, None] + (orders - 1 - np.arange(orders))[None, :]
    return inflows[:, at, :].transpose(0, 1, 3, 2)


def _carried(past: Floats, inflow: Floats, steps: "pa.Table") -> Floats:
    """Continue lags (scenario, stage, plant, lag) from others, and add a share of each inflow."""
    shape = inflow.shape[1], past.shape[1]
    source, share = (steps[name].to_numpy().reshape(shape) for name in ("taken_from", "inflow_share"))
    lags = np.repeat(past[None], len(inflow), axis=0)
    values = np.empty((*inflow.shape, past.shape[1]))
    for stage in range(shape[0]):
        values[:, stage] = lags
        lags = lags[:, :, source[stage]] * (source[stage] >= 0) + share[stage] * inflow[:, stage, :, None]
    return values


def _inflow_cube(hydros: "pa.Table") -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], Floats]:
    """Return scenarios, stages, plants in the order of the table, and their inflows (scenario x stage x plant)."""
    import pyarrow.compute as pc

    rows = hydros.filter(pc.equal(hydros["block_id"], 0))
    scenario, stage, plant = (rows[name].to_numpy() for name in ("scenario_id", "stage_id", "hydro_id"))
    scenarios, stages, ids = (_in_order(column) for column in (scenario, stage, plant))
    cube = rows["incremental_inflow_m3s"].to_numpy().reshape(len(scenarios), len(stages), len(ids))
    return scenarios, stages, ids, cube


def _in_order(column: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return values in the order in which they first appear."""
    values, first = np.unique(column, return_index=True)
    ordered: NDArray[np.int32] = values[np.argsort(first)]
    return ordered


# Stages are the nodes of the policy graph here, and pumping costs nothing but its power. Where no thermal plant decides
# ahead, files do not speak of it.
CONSTANT_COLUMNS: Mapping[str, Mapping[str, float | bool | None]] = {
    "costs": {"anticipated_thermal_cost": 0.0, "pumping_cost": 0.0},
    "thermals": {"is_anticipated": False, "anticipated_committed_mw": None, "anticipated_decision_mw": None},
    "pumping_stations": {"pumping_cost": 0.0},
}

COMMITTED = AHEAD[0]

OWNER = {
    "hydros": "hydro_id",
    "thermals": "thermal_id",
    "exchanges": "line_id",
    "non_controllables": "non_controllable_id",
    "contracts": "contract_id",
    "pumping_stations": "pumping_station_id",
}

# Columns that follow a given one; all others are at the end.
FOLLOWERS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "costs": {
        "thermal_cost": ("anticipated_thermal_cost",),
        "filling_target_cost": ("hydro_violation_cost",),
        "inflow_penalty_cost": ("generic_violation_cost",),
        "turbined_cost": ("curtailment_cost",),
        "exchange_cost": ("pumping_cost", "diversion_cost", "non_controllable_reward"),
    },
    "thermals": {
        "generation_cost": ("is_anticipated", COMMITTED, "anticipated_decision_mw", "operative_state_code"),
    },
    "hydros": {
        "generation_mwh": ENERGY_COLUMNS[:5],
        "water_value_per_hm3": ("storage_binding_code", "operative_state_code"),
    },
}


def with_known_columns(tables: "Mapping[str, pa.Table]") -> "dict[str, pa.Table]":
    """Return all tables with known columns, and `inflow_lags`, without the tables of facts."""
    facts = StageFacts(tables.get(ENTITY_STAGES), tables.get(TREE_PATHS))
    columns_of = {
        name: known_table(name, table, facts) for name, table in tables.items() if name not in SUPPLEMENTARY_TABLES
    }
    if "hydros" in tables:
        lags = lagged_inflows(tables["hydros"], tables.get(INITIAL_LAGS), tables.get(LAG_STEPS))
        columns_of["inflow_lags"] = with_nodes(lags, facts)
    return columns_of


def with_nodes(table: "pa.Table", facts: "StageFacts") -> "pa.Table":
    """Add the nodes of scenarios to a table that has nodes."""
    return table.set_column(table.schema.names.index("node_id"), "node_id", facts.node_ids(table))


def needed_for(name: str) -> tuple[str, ...]:
    """Return the tables of a directory from which one is made."""
    return ("hydros" if name == "inflow_lags" else name, *SUPPLEMENTARY_TABLES)


class StageFacts:
    """Numbers by entity and stage, for the rows of a table."""

    def __init__(self, table: "pa.Table | None", paths: "pa.Table | None" = None) -> None:
        self._table = table
        self.paths = paths  # over a tree: the node of each scenario at each stage

    def node_ids(self, table: "pa.Table") -> "pa.Array | pa.ChunkedArray":
        """Return the node of each row: in a chain, its stage."""
        import pyarrow as pa

        if self.paths is None:
            return table["stage_id"]
        stages = np.unique(self.paths["stage_id"].to_numpy())
        grid = self.paths["node_id"].to_numpy().reshape(-1, len(stages))
        at = np.searchsorted(stages, table["stage_id"].to_numpy())
        return pa.array(grid[table["scenario_id"].to_numpy(), at], pa.int32())

    def of_rows(self, name: str, table: "pa.Table", columns: tuple[str, ...]) -> "dict[str, pa.ChunkedArray] | None":
        """Return columns of the facts that belong to the rows of the table `name`; None if there are no facts."""
        import pyarrow.compute as pc

        if self._table is None:
            return None
        part = self._table.filter(pc.equal(self._table["table"], name))
        rows = _matching(part, table[OWNER[name]].to_numpy(), table["stage_id"].to_numpy())
        return {column: part[column].take(rows) for column in columns}


def _matching(facts: "pa.Table", entity: NDArray[np.int32], stage: NDArray[np.int32]) -> NDArray[np.int64]:
    entities, rows = np.unique(facts["entity_id"].to_numpy(), return_inverse=True)
    stages, times = np.unique(facts["stage_id"].to_numpy(), return_inverse=True)
    grid = np.zeros((len(entities), len(stages)), np.int64)
    grid[rows, times] = np.arange(facts.num_rows)
    matching_rows: NDArray[np.int64] = grid[np.searchsorted(entities, entity), np.searchsorted(stages, stage)]
    return matching_rows


def known_table(name: str, table: "pa.Table", facts: StageFacts) -> "pa.Table":
    """Return a table of a simulation, or some rows of it, with all columns that are known."""
    index = table.schema.names.index("stage_id") + 1
    table = table.add_column(index, "node_id", facts.node_ids(table))
    if COMMITTED in table.column_names:
        table = _with_decisions_ahead(table)
    for column, value in CONSTANT_COLUMNS.get(name, {}).items():
        if column not in table.column_names:
            table = table.append_column(column, _constant(value, table.num_rows))
    if name in OWNER:
        table = _with_state(name, table, facts)
    if name == "costs":
        table = _with_diversion_in_spillage(table)
    if name == "hydros":
        table = _with_slopes(energy_columns(table, facts.of_rows))
    return table.select(_order(name, table.column_names))


def _with_decisions_ahead(table: "pa.Table") -> "pa.Table":
    """Replace NaN, where a plant decides nothing ahead, by null."""
    from pyarrow import compute

    for name in AHEAD:
        index = table.column_names.index(name)
        values = table[name].to_numpy()
        table = table.set_column(index, name, _nullable(values))
    return table.append_column("is_anticipated", compute.is_valid(table[COMMITTED]))


def _nullable(values: NDArray[np.float64]) -> "pa.Array":
    import pyarrow as pa

    return pa.array(values, pa.float64(), mask=np.isnan(values))


def _constant(value: float | bool | None, count: int) -> "pa.Array":
    import pyarrow as pa

    return pa.repeat(pa.scalar(value, pa.bool_() if isinstance(value, bool) else pa.float64()), count)


def _with_state(name: str, table: "pa.Table", facts: StageFacts) -> "pa.Table":
    """Add whether an entity takes part: 0 deactivated, 2 operating."""
    import pyarrow as pa

    states = facts.of_rows(name, table, ("operative_state_code",))
    codes = pa.nulls(table.num_rows, pa.int8()) if states is None else states["operative_state_code"]
    return table.append_column("operative_state_code", codes)


def _with_diversion_in_spillage(table: "pa.Table") -> "pa.Table":
    """Add the cost of diversion to that of spillage, as scripts expect it; `diversion_cost` is a part of it."""
    from pyarrow import compute

    if "diversion_cost" not in table.column_names:
        return table
    index = table.schema.names.index("spillage_cost")
    return table.set_column(index, "spillage_cost", compute.add(table["spillage_cost"], table["diversion_cost"]))


def _with_slopes(table: "pa.Table") -> "pa.Table":
    """Negate water values: scripts expect the slope of the cost, files have the value of water."""
    from pyarrow import compute

    index = table.schema.names.index("water_value_per_hm3")
    return table.set_column(index, "water_value_per_hm3", compute.negate(table["water_value_per_hm3"]))


def _order(name: str, columns: list[str]) -> list[str]:
    followers = FOLLOWERS.get(name, {})
    moved = {column for group in followers.values() for column in group}
    ordered = []
    for column in columns:
        if column not in moved:
            ordered += [column, *followers.get(column, ())]
    return ordered
