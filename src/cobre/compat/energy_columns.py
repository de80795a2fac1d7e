"""What water is worth in energy: stored, flowing in, and per m3/s; and the inflows that a state remembers."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cobre.core.arrays import Floats

if TYPE_CHECKING:
    import pyarrow as pa

    # Facts of the rows of a table, by the names of their columns.
    RowFacts = Callable[[str, pa.Table, tuple[str, ...]], dict[str, pa.ChunkedArray] | None]


# 1 hm3 through a machine of 1 MW per m3/s.
MWH_PER_HM3 = 1e6 / 3600.0
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
    """The table of plants with its energies and with the state of its reservoirs at the end of every row."""
    import pyarrow as pa

    names = (*PRODUCTIVITIES, "dead_storage_hm3", "min_storage_hm3", "max_storage_hm3", "stage_hours")
    found = facts_of("hydros", hydros, names)
    if found is None:
        found = {name: pa.nulls(hydros.num_rows, pa.float64()) for name in names}
    facts = {name: column.to_numpy(zero_copy_only=False) for name, column in found.items()}
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
    """0 between the limits of the stage, 1 at the lower one or below, 2 at the upper one, 3 where both are one."""
    import pyarrow as pa

    volume, least, most = hydros["storage_final_hm3"].to_numpy(), facts["min_storage_hm3"], facts["max_storage_hm3"]
    is_low = volume <= least + AT_A_LIMIT * np.maximum(1.0, np.abs(least))
    is_high = volume >= most - AT_A_LIMIT * np.maximum(1.0, np.abs(most))
    codes = (AT_MINIMUM * is_low + AT_MAXIMUM * is_high).astype(np.int8)
    return pa.array(codes, pa.int8(), mask=np.isnan(least) | np.isnan(most))


def lagged_inflows(hydros: "pa.Table", initial: "pa.Table | None", steps: "pa.Table | None" = None) -> "pa.Table":
    """`inflow_lags`: what entered the LPs of each stage as the past; lag 0 is the stage before.

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
    """Lags (scenario, stage, plant, lag) that move on by one place."""
    orders = past.shape[1]
    before = np.broadcast_to(past[:, ::-1].T, (len(inflow), orders, len(past)))
    known = np.concatenate([before, inflow], axis=1)  # lag k of stage t is at t + orders - 1 - k
    at = np.arange(inflow.shape[1])[:, None] + (orders - 1 - np.arange(orders))[None, :]
    return known[:, at, :].transpose(0, 1, 3, 2)


def _carried(past: Floats, inflow: Floats, steps: "pa.Table") -> Floats:
    """Lags (scenario, stage, plant, lag) that go on from others and add a share of each inflow."""
    shape = inflow.shape[1], past.shape[1]
    taken, share = (steps[name].to_numpy().reshape(shape) for name in ("taken_from", "inflow_share"))
    lags = np.repeat(past[None], len(inflow), axis=0)
    values = np.empty((*inflow.shape, past.shape[1]))
    for stage in range(shape[0]):
        values[:, stage] = lags
        lags = lags[:, :, taken[stage]] * (taken[stage] >= 0) + share[stage] * inflow[:, stage, :, None]
    return values


def _inflow_cube(hydros: "pa.Table") -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], Floats]:
    """Scenarios, stages, plants in the order of the table, and their inflows (scenario x stage x plant)."""
    import pyarrow.compute as pc

    rows = hydros.filter(pc.equal(hydros["block_id"], 0))
    scenario, stage, plant = (rows[name].to_numpy() for name in ("scenario_id", "stage_id", "hydro_id"))
    scenarios, stages, ids = (_in_order(column) for column in (scenario, stage, plant))
    cube = rows["incremental_inflow_m3s"].to_numpy().reshape(len(scenarios), len(stages), len(ids))
    return scenarios, stages, ids, cube


def _in_order(column: NDArray[np.int32]) -> NDArray[np.int32]:
    """Values in the order in which they first appear."""
    values, first = np.unique(column, return_index=True)
    found: NDArray[np.int32] = values[np.argsort(first)]
    return found
