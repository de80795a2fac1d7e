"""Tables of a simulation beside those of a peer: `python benchmarks/simulated_tables.py PEER_OUTPUT OUR_OUTPUT`.

Both programs simulate the peer's policy on the same scenarios (`cobre simulate CASE --policy PEER_OUTPUT/policy`). All
columns of all tables are compared. In the first stage both start from the same state; there, and later as long as
volumes agree, costs must be the same. A column whose numbers differ where costs are the same is a decision of which
there are several optimal ones, or follows from one.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import cobre.results
from cobre.core.arrays import Floats

KEYS = (
    *("scenario_id", "stage_id", "block_id", "hydro_id", "bus_id", "thermal_id", "line_id", "non_controllable_id"),
    *("constraint_id", "lag_index"),
)
# Labels of a graph of nodes, and codes that the peers write as constants ("maintenance" for every plant, no storage at
# its limit); here they mean what their dictionary says.
IGNORED = {"node_id", "operative_state_code", "storage_binding_code"}
# Columns that do not depend on decisions.
GIVEN = {
    "buses": ("load_mw", "load_mwh"),
    "costs": ("discount_factor",),
    "hydros": (
        *("incremental_inflow_m3s", "inflow_m3s", "incremental_inflow_energy_mw", "equivalent_productivity_mw_per_m3s"),
        *("accumulated_productivity_mw_per_m3s", "integrated_equivalent_productivity_mw_per_m3s"),
        "integrated_accumulated_productivity_mw_per_m3s",
    ),
    "inflow_lags": ("inflow_m3s",),
    "non_controllables": ("available_mw",),
    "thermals": ("is_anticipated",),
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. Differences relative to its largest number: first stage, all stages; nulls: only in one."""

    table: str
    name: str
    first: float
    whole: float
    nulls: int

    @property
    def is_given(self) -> bool:
        """Return whether the column is independent of decisions."""
        return self.name in GIVEN.get(self.table, ())


@dataclass(frozen=True, slots=True)
class StageCost:
    """A stage of a scenario: costs of both, and how far storages that enter it are apart, hm3."""

    scenario: int
    stage: int
    theirs: float
    ours: float
    apart_hm3: float

    @property
    def difference(self) -> float:
        return (self.ours - self.theirs) / max(abs(self.theirs), 1e-9)


def peer_tables(output: Path) -> dict[str, pa.Table]:
    """Read the peer's tables, with all scenarios of each."""
    found = {}
    for folder in sorted({path.parent.parent for path in (output / "simulation").rglob("scenario_id=*/data.parquet")}):
        parts = [pq.ParquetFile(path).read() for path in sorted(folder.glob("scenario_id=*/data.parquet"))]
        found[folder.relative_to(output / "simulation").as_posix()] = pa.concat_tables(parts)
    return found


def _sorted(table: pa.Table) -> pa.Table:
    return table.sort_by([(key, "ascending") for key in KEYS if key in table.column_names])


def _numbers(table: pa.Table, name: str) -> Floats:
    return np.array([np.nan if value is None else float(value) for value in table[name].to_pylist()])


def compare_columns(name: str, ours: pa.Table, theirs: pa.Table) -> Iterator[Column]:
    """Compare each numeric column that the peer has. Raises ValueError where rows or columns are missing."""
    if ours.num_rows != theirs.num_rows:
        raise ValueError(f"{name} has {ours.num_rows} rows here and {theirs.num_rows} there")
    if missing := sorted(set(theirs.column_names) - set(ours.column_names) - IGNORED):
        raise ValueError(f"{name} has no columns {', '.join(missing)} here")
    mine, its = _sorted(ours), _sorted(theirs)
    is_first = its["stage_id"].to_numpy() == its["stage_id"].to_numpy().min()
    for column in its.column_names:
        if column not in KEYS and column not in IGNORED:
            one, other = _numbers(mine, column), _numbers(its, column)
            gap = np.abs(np.nan_to_num(one) - np.nan_to_num(other)) / max(np.nanmax(np.abs(other), initial=0.0), 1e-9)
            nulls = int((np.isnan(one) != np.isnan(other)).sum())
            yield Column(name, column, float(gap[is_first].max(initial=0.0)), float(gap.max(initial=0.0)), nulls)


def stage_costs(ours: dict[str, pa.Table], theirs: dict[str, pa.Table]) -> list[StageCost]:
    """Return the total cost (including the future cost) by scenario and stage."""
    keys = ("scenario_id", "stage_id")
    costs, volumes = [], []
    for tables in (ours, theirs):
        table = tables["costs"]
        pairs = zip(*(table[key].to_pylist() for key in (*keys, "total_cost")), strict=True)
        costs.append({(scenario, stage): cost for scenario, stage, cost in pairs})
        volumes.append(_sorted(tables["hydros"]))
    scenario, stage = (volumes[0][key].to_numpy() for key in keys)
    gap = np.abs(_numbers(volumes[0], "storage_initial_hm3") - _numbers(volumes[1], "storage_initial_hm3"))
    apart = {at: float(gap[(scenario == at[0]) & (stage == at[1])].max()) for at in costs[1]}
    return [StageCost(*at, costs[1][at], costs[0][at], apart[at]) for at in sorted(costs[1])]


def compare(peer: Path, run: Path) -> tuple[list[Column], list[StageCost]]:
    """Compare all columns and all stage costs of two simulations."""
    theirs, ours = peer_tables(peer), cobre.results.load_simulation_arrow(run)
    columns = [column for name in theirs if name in ours for column in compare_columns(name, ours[name], theirs[name])]
    return columns, stage_costs(ours, theirs)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare and print; returns 0."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("peer", type=Path, help="output of the peer: training and simulation")
    parser.add_argument("run", type=Path, help="output of `cobre simulate` with the peer's policy")
    options = parser.parse_args(arguments)
    columns, costs = compare(options.peer, options.run)
    print("| table | column | first stage | all stages | null in one |\n|---|---|---|---|---|")
    for one in columns:
        print(f"| {one.table} | {one.name} | {one.first:.1e} | {one.whole:.1e} | {one.nulls} |")
    print("\n| scenario, stage | theirs | ours | difference | storages apart, hm3 |\n|---|---|---|---|---|")
    for cost in costs:
        numbers = f"{cost.theirs:.2f} | {cost.ours:.2f} | {cost.difference:.1e} | {cost.apart_hm3:.1e}"
        print(f"| {cost.scenario}, {cost.stage} | {numbers} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
