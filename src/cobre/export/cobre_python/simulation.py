"""Tables of a simulation, one file per scenario; tables are read piece by piece, never completely."""

from collections.abc import Iterator, Mapping
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cobre.compat.energy_columns import lagged_inflows
from cobre.compat.run_metadata import simulation_facts
from cobre.compat.simulation_columns import StageFacts, known_table, with_nodes
from cobre.export.cobre_python.writing import write_json, write_table
from cobre.export.source import ExportError, RunSource
from cobre.io.output.manifest import read_manifest
from cobre.io.output.results import read_results, table_file
from cobre.runs.files import SIMULATION
from cobre.study.simulation.stage_tables import ENTITY_STAGES, INITIAL_LAGS, LAG_STEPS, STAGE_TABLES, TREE_PATHS

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_AT_ONCE = 65_536


def write_simulation(source: RunSource, folder: Path) -> None:
    """Write simulation/; nothing if the run has not simulated."""
    facts = simulation_facts(source.folder)
    if facts is None:
        return
    writer = _Scenarios(source.folder / SIMULATION, folder)
    tables = read_manifest(writer.source)["tables"]
    for name in tables:
        if name not in STAGE_TABLES:
            writer.write(name, tables[name])
    _write_paths(writer, folder)
    write_table(folder / "solver" / "iterations.parquet", "solver_iterations", _solves(writer))
    write_table(folder / "solver" / "retry_histogram.parquet", "retry_histogram", {})
    write_json(folder / "metadata.json", facts)
    (folder / "_SUCCESS").touch()


class _Scenarios:
    """Writes tables scenario by scenario, and sums up the cost of each scenario."""

    def __init__(self, source: Path, folder: Path) -> None:
        small = read_results(source, STAGE_TABLES)
        self.source = source
        self.costs: dict[int, float] = {}
        self.stages: dict[int, Any] = {}
        self._folder = folder
        self.facts = StageFacts(small.get(ENTITY_STAGES), small.get(TREE_PATHS))
        self._lags, self._steps = small.get(INITIAL_LAGS), small.get(LAG_STEPS)

    def write(self, name: str, entry: Mapping[str, Any]) -> None:
        """Write one table, and with `hydros` also the lagged inflows of each stage."""
        for scenario, rows in scenarios_of(table_file(self.source, name, entry)):
            known = known_table(name, rows, self.facts)
            if name == "costs":
                self._add_up(scenario, known)
            self._put(name, scenario, known)
            if name == "hydros" and self._lags is not None and self._lags.num_rows:
                lags = lagged_inflows(rows, self._lags, self._steps)
                self._put("inflow_lags", scenario, with_nodes(lags, self.facts))

    def _put(self, name: str, scenario: int, table: "pa.Table") -> None:
        path = self._folder / name / f"scenario_id={scenario:04d}" / "data.parquet"
        write_table(path, name, table)

    def _add_up(self, scenario: int, costs: "pa.Table") -> None:
        factor, immediate = costs["discount_factor"].to_numpy(), costs["immediate_cost"].to_numpy()
        self.costs[scenario] = float((factor * immediate).sum())
        self.stages[scenario] = costs.select(["scenario_id", "stage_id", "node_id"])


def scenarios_of(path: Path) -> Iterator[tuple[int, "pa.Table"]]:
    """The id and rows of each scenario of a file, whose rows are grouped by scenario. Raises ExportError otherwise."""
    import pyarrow as pa

    done: set[int] = set()
    for scenario, parts in groupby(_pieces(path), key=lambda piece: piece[0]):
        if scenario in done:
            raise ExportError(f"{path} does not have its rows scenario by scenario")
        done.add(scenario)
        yield scenario, pa.Table.from_batches([batch for _, batch in parts])


def _pieces(path: Path) -> Iterator[tuple[int, "pa.RecordBatch"]]:
    """Consecutive rows of one scenario, at most `ROWS_AT_ONCE` at a time."""
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        for batch in file.iter_batches(ROWS_AT_ONCE, use_threads=False):
            ids = batch["scenario_id"].to_numpy()
            edges = [0, *(np.flatnonzero(np.diff(ids)) + 1).tolist(), len(ids)]
            for begin, end in pairwise(edges):
                if end > begin:
                    yield int(ids[begin]), batch.slice(begin, end - begin)


def _solves(writer: _Scenarios) -> dict[str, Any]:
    """One LP per stage and scenario; pivots and times are not measured by scenario."""
    solves = [writer.stages[scenario].num_rows for scenario in sorted(writer.stages)]
    if not solves:
        return {}
    return {
        "scenario_id": sorted(writer.stages),
        "phase": ["simulation"] * len(solves),
        "lp_solves": solves,
        "lp_successes": solves,
        "lp_failures": [0] * len(solves),
    }


def _probabilities(writer: _Scenarios, count: int) -> "pa.Array":
    """The probability of each scenario where all paths of a tree are simulated; null elsewhere."""
    import pyarrow as pa

    if writer.facts.paths is None:
        return pa.nulls(count, pa.float64())
    shares = writer.facts.paths["probability"].combine_chunks()
    return shares.take(pa.array(range(0, len(shares), len(shares) // count)))


def _write_paths(writer: _Scenarios, folder: Path) -> None:
    """Write the nodes that each scenario visits, and its cost in $, discounted to the first stage."""
    import pyarrow as pa

    scenarios = sorted(writer.costs)
    if not scenarios:
        return
    paths = pa.concat_tables([writer.stages[scenario] for scenario in scenarios])
    write_table(folder / "paths.parquet", "paths", paths)
    costs = {
        "scenario_id": pa.array(scenarios, pa.int32()),
        "probability": _probabilities(writer, len(scenarios)),
        "discounted_immediate_cost": pa.array([writer.costs[scenario] for scenario in scenarios], pa.float64()),
    }
    write_table(folder / "scenario_summary.parquet", "scenario_summary", costs)
