"""Simulation tables with the columns that scripts for cobre-python know, in its order; ours follow.

What files hold once for each entity and stage (see `stage_tables`) is put beside every scenario here. Results that were
written without these facts have nulls in their place.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cobre.compat.energy_columns import ENERGY_COLUMNS, energy_columns, lagged_inflows
from cobre.sddp.simulation.commitment_tables import AHEAD
from cobre.study.simulation.stage_tables import ENTITY_STAGES, INITIAL_LAGS, LAG_STEPS, STAGE_TABLES, TREE_PATHS

if TYPE_CHECKING:
    import pyarrow as pa

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
# What comes right after what, where it is not at the end.
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
    """All of them, and `inflow_lags`; the tables of facts are used up."""
    facts = StageFacts(tables.get(ENTITY_STAGES), tables.get(TREE_PATHS))
    known = {name: known_table(name, table, facts) for name, table in tables.items() if name not in STAGE_TABLES}
    if "hydros" in tables:
        lags = lagged_inflows(tables["hydros"], tables.get(INITIAL_LAGS), tables.get(LAG_STEPS))
        known["inflow_lags"] = with_nodes(lags, facts)
    return known


def with_nodes(table: "pa.Table", facts: "StageFacts") -> "pa.Table":
    """A table that has nodes, with those of its scenarios."""
    return table.set_column(table.schema.names.index("node_id"), "node_id", facts.node_ids(table))


def needed_for(name: str) -> tuple[str, ...]:
    """The tables of a directory from which one is made."""
    return ("hydros" if name == "inflow_lags" else name, *STAGE_TABLES)


class StageFacts:
    """Numbers by entity and stage, for the rows of a table."""

    def __init__(self, table: "pa.Table | None", paths: "pa.Table | None" = None) -> None:
        self._table = table
        self.paths = paths  # over a tree: the node of each scenario at each stage

    def node_ids(self, table: "pa.Table") -> "pa.Array | pa.ChunkedArray":
        """The node of each row: of a chain, its stage."""
        import pyarrow as pa

        if self.paths is None:
            return table["stage_id"]
        stages = np.unique(self.paths["stage_id"].to_numpy())
        grid = self.paths["node_id"].to_numpy().reshape(-1, len(stages))
        at = np.searchsorted(stages, table["stage_id"].to_numpy())
        return pa.array(grid[table["scenario_id"].to_numpy(), at], pa.int32())

    def of_rows(self, name: str, table: "pa.Table", columns: tuple[str, ...]) -> "dict[str, pa.ChunkedArray] | None":
        """Columns of the facts that belong to the rows of the table `name`; None when there are no facts."""
        import pyarrow.compute as pc

        if self._table is None:
            return None
        part = self._table.filter(pc.equal(self._table["table"], name))
        rows = _matching(part, table[OWNER[name]].to_numpy(), table["stage_id"].to_numpy())
        return {column: part[column].take(rows) for column in columns}


def _matching(facts: "pa.Table", entity: NDArray[np.int32], stage: NDArray[np.int32]) -> NDArray[np.int64]:
    """The row of the facts for each pair."""
    entities, rows = np.unique(facts["entity_id"].to_numpy(), return_inverse=True)
    stages, times = np.unique(facts["stage_id"].to_numpy(), return_inverse=True)
    grid = np.zeros((len(entities), len(stages)), np.int64)
    grid[rows, times] = np.arange(facts.num_rows)
    found: NDArray[np.int64] = grid[np.searchsorted(entities, entity), np.searchsorted(stages, stage)]
    return found


def known_table(name: str, table: "pa.Table", facts: StageFacts) -> "pa.Table":
    """A table of a simulation, or some rows of it, with all columns that are known."""
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
    """Nulls where a plant has nothing to say, which is NaN in files."""
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
    """Whether an entity takes part: 0 deactivated, 2 operating."""
    import pyarrow as pa

    found = facts.of_rows(name, table, ("operative_state_code",))
    codes = pa.nulls(table.num_rows, pa.int8()) if found is None else found["operative_state_code"]
    return table.append_column("operative_state_code", codes)


def _with_diversion_in_spillage(table: "pa.Table") -> "pa.Table":
    """Scripts know what spills and what is diverted as one cost; `diversion_cost` is a part of it."""
    from pyarrow import compute

    if "diversion_cost" not in table.column_names:
        return table
    index = table.schema.names.index("spillage_cost")
    return table.set_column(index, "spillage_cost", compute.add(table["spillage_cost"], table["diversion_cost"]))


def _with_slopes(table: "pa.Table") -> "pa.Table":
    """Scripts know the water value as the slope of the cost, which falls with more water; files have its worth."""
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
