"""Simulation, training and dictionaries in the layout of cobre-python; tables are read piece by piece."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cobre.compat.model_report import hydro_models_summary, provenance_report
from cobre.compat.simulation_columns import StageFacts, known_table, lagged_inflows, with_nodes
from cobre.compat.stored_results import convergence_with_times, simulation_facts
from cobre.core.case import System
from cobre.core.file_names import CONVERGENCE_FILE, HYDRO_MODELS, MANIFEST_FILE, SIMULATION, STOCHASTIC
from cobre.export.cobre_python_columns import (
    COLUMNS,
    DICTIONARY_NAMES,
    ENTITIES,
    Program,
    bound_columns,
    columns_of,
    copy_inside,
    write_json,
    write_table,
)
from cobre.export.files import spreadsheet_text
from cobre.export.run_tables import ExportError, RunSource
from cobre.io.output.results import read_manifest, read_results, table_file
from cobre.runs.labels import unit_of_column
from cobre.sddp.problem.problem import PreparedStudy
from cobre.study.simulation.supplementary_tables import (
    ENTITY_STAGES,
    INITIAL_LAGS,
    LAG_STEPS,
    SUPPLEMENTARY_TABLES,
    TREE_PATHS,
)

if TYPE_CHECKING:
    import pyarrow as pa


ROWS_AT_ONCE = 65_536


def write_simulation(source: RunSource, folder: Path) -> None:
    """Write simulation/; nothing if the run has not simulated."""
    metadata = simulation_facts(source.folder)
    if metadata is None:
        return
    writer = _Scenarios(source.folder / SIMULATION, folder)
    tables = read_manifest(writer.source)["tables"]
    for name in tables:
        if name not in SUPPLEMENTARY_TABLES:
            writer.write(name, tables[name])
    _write_paths(writer, folder)
    write_table(folder / "solver" / "iterations.parquet", "solver_iterations", _solves(writer))
    write_table(folder / "solver" / "retry_histogram.parquet", "retry_histogram", {})
    write_json(folder / "metadata.json", metadata)
    (folder / "_SUCCESS").touch()


class _Scenarios:
    """A writer of tables, scenario by scenario, which also sums up the cost of each scenario."""

    def __init__(self, source: Path, folder: Path) -> None:
        small = read_results(source, SUPPLEMENTARY_TABLES)
        self.source = source
        self.costs: dict[int, float] = {}
        self.stages: dict[int, Any] = {}
        self._folder = folder
        self.stages_and_paths = StageFacts(small.get(ENTITY_STAGES), small.get(TREE_PATHS))
        self._lags, self._steps = small.get(INITIAL_LAGS), small.get(LAG_STEPS)

    def write(self, name: str, entry: Mapping[str, Any]) -> None:
        """Write one table, and with `hydros` also the lagged inflows of each stage."""
        for scenario, rows in scenarios_of(table_file(self.source, name, entry)):
            known = known_table(name, rows, self.stages_and_paths)
            if name == "costs":
                self._add_up(scenario, known)
            self._write_scenario_table(name, scenario, known)
            if name == "hydros" and self._lags is not None and self._lags.num_rows:
                lags = lagged_inflows(rows, self._lags, self._steps)
                self._write_scenario_table("inflow_lags", scenario, with_nodes(lags, self.stages_and_paths))

    def _write_scenario_table(self, name: str, scenario: int, table: "pa.Table") -> None:
        path = self._folder / name / f"scenario_id={scenario:04d}" / "data.parquet"
        write_table(path, name, table)

    def _add_up(self, scenario: int, costs: "pa.Table") -> None:
        factor, immediate = costs["discount_factor"].to_numpy(), costs["immediate_cost"].to_numpy()
        self.costs[scenario] = float((factor * immediate).sum())
        self.stages[scenario] = costs.select(["scenario_id", "stage_id", "node_id"])


def scenarios_of(path: Path) -> Iterator[tuple[int, "pa.Table"]]:
    """Yield the id and rows of each scenario of a file. Raises ExportError where rows are not grouped by scenario."""
    import pyarrow as pa

    done: set[int] = set()
    for scenario, parts in groupby(_pieces(path), key=lambda piece: piece[0]):
        if scenario in done:
            raise ExportError(f"{path} does not have its rows scenario by scenario")
        done.add(scenario)
        yield scenario, pa.Table.from_batches([batch for _, batch in parts])


def _pieces(path: Path) -> Iterator[tuple[int, "pa.RecordBatch"]]:
    """Yield consecutive rows of one scenario, at most `ROWS_AT_ONCE` at a time."""
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        for batch in file.iter_batches(ROWS_AT_ONCE, use_threads=False):
            ids = batch["scenario_id"].to_numpy()
            edges = [0, *(np.flatnonzero(np.diff(ids)) + 1).tolist(), len(ids)]
            for begin, end in pairwise(edges):
                if end > begin:
                    yield int(ids[begin]), batch.slice(begin, end - begin)


def _solves(writer: _Scenarios) -> dict[str, Any]:
    """Return one LP per stage and scenario; pivots and times are not measured by scenario."""
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
    """Return the probability of each scenario if all paths of a tree are simulated; null elsewhere."""
    import pyarrow as pa

    if writer.stages_and_paths.paths is None:
        return pa.nulls(count, pa.float64())
    shares = writer.stages_and_paths.paths["probability"].combine_chunks()
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


# Dictionaries of the layout: entities, codes, variables, and the limits of every stage.

BOUNDS = (
    *("storage_min", "storage_max", "turbined_min", "turbined_max", "outflow_min", "outflow_max"),
    *("generation_min", "generation_max", "flow_min", "flow_max"),
)

CODES: Mapping[str, Mapping[str, str]] = {
    "bound_type": {str(code): name for code, name in enumerate(BOUNDS)},
    "contract_type": {"0": "import", "1": "export"},
    "entity_type": {str(code): name for name, code in ENTITIES.items()},
    "operative_state": {"0": "deactivated", "1": "maintenance", "2": "operating", "3": "saturated"},
    "storage_binding": {"0": "none", "1": "below_minimum", "2": "above_maximum", "3": "both"},
}

ENTITY_COLUMNS = "entity_type_code entity_id name bus_id system_id"
NO_BUS = -1
TYPES = {"int8": "i8", "int32": "i32", "int64": "i64", "uint32": "u32", "uint64": "u64", "float64": "f64"}


def write_dictionaries(study: PreparedStudy, folder: Path, program: Program) -> None:
    """Write the four dictionary files of the layout."""
    codes = {**CODES, "generated_at": datetime.now(UTC).isoformat(), "version": "1.0"}
    write_json(folder / "codes.json", codes)
    _write_csv(folder / "entities.csv", ENTITY_COLUMNS, entity_rows(study.case.system))
    _write_csv(folder / "variables.csv", "file column type unit description nullable", variable_rows(program))
    write_table(folder / "bounds.parquet", "bounds", bound_columns(study))


def entity_rows(system: System) -> Iterator[Sequence[Any]]:
    """Yield type, id, name, bus (-1: none, or several), and 0 for the one system."""
    listed: Sequence[tuple[str, Sequence[Any]]] = (
        ("hydro", system.hydros),
        ("thermal", system.thermals),
        ("bus", system.buses),
        ("line", system.lines),
        ("pumping_station", system.pumping_stations),
        ("contract", system.energy_contracts),
        ("non_controllable", system.non_controllable_sources),
    )
    for kind, entities in listed:
        for entity in entities:
            bus = entity.id if kind == "bus" else getattr(entity, "bus_id", NO_BUS)
            yield ENTITIES[kind], entity.id, entity.name, bus, 0
    for hydro in system.hydros:
        for group in hydro.unit_groups:
            yield ENTITIES["hydro_unit_group"], group.id, f"{hydro.id}/{group.name}", group.bus_id, 0


def variable_rows(program: Program) -> Iterator[Sequence[Any]]:
    """Yield a row for each column of each table; description and unit follow from its name."""
    for table in COLUMNS:
        for column, kind, may_be_null in columns_of(table, program.more_columns.get(table, "")):
            description = column.replace("_", " ")
            name = DICTIONARY_NAMES.get(table, table)
            yield name, column, TYPES.get(kind, kind), unit_of_column(column), description, str(may_be_null).lower()


def _write_csv(path: Path, header: str, rows: Iterator[Sequence[Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(header.split())
        for row in rows:
            writer.writerow([spreadsheet_text(value) if isinstance(value, str) else value for value in row])


# Tables of training for cobre-python's layout: bounds, and times as far as the run's log has them.

PLANE_SOURCES = {"computed": "computed_from_geometry", "precomputed": "precomputed_hyperplanes"}

TIMES: Mapping[str, str] = {
    "forward_wall_ms": "forward_s",
    "backward_wall_ms": "backward_s",
    "lower_bound_ms": "bound_s",
    "cut_sync_ms": "exchange_s",  # states and cuts are measured together
}


def write_training(source: RunSource, study: PreparedStudy, folder: Path, program: Program) -> None:
    """Write the folder training/ of the layout."""
    metadata = source.training
    bounds = convergence_with_times(source.folder)
    if more := program.more_columns.get("convergence", ""):  # no lazy solve of ours stops at a number of rounds
        bounds = bounds.append_column(more, [[0] * bounds.num_rows])
    write_table(folder / CONVERGENCE_FILE, "convergence", bounds, more)
    iterations = source.log.iterations
    write_table(folder / "timing" / "iterations.parquet", "iteration_timing", timing_columns(iterations))
    write_table(folder / "solver" / "iterations.parquet", "solver_iterations", solver_columns(iterations))
    write_table(folder / "solver" / "retry_histogram.parquet", "retry_histogram", {})
    write_dictionaries(study, folder / "dictionaries", program)
    inflow = provenance_report(study)
    production = inflow.pop("hydro_production")
    write_json(folder / "hydro_models.json", hydro_models(study, production))
    write_json(folder / "model_provenance.json", {"inflow": inflow, "hydro_production": production})
    write_json(folder / "metadata.json", metadata)
    (folder / "_SUCCESS").touch()


def hydro_models(study: PreparedStudy, production: Mapping[str, int]) -> dict[str, Any]:
    """Return plants by their models in the first stage."""
    first, numbers = study.case.horizon.stages[0], study.problem.stages[0].plan.data.hydro
    details, without_turbines = [], []
    for hydro, planes, most in zip(study.case.system.hydros, numbers.planes, numbers.max_turbined_m3s, strict=True):
        if planes is not None:
            config = study.case.production.choice_for(hydro, first).fpha_config
            source = PLANE_SOURCES[config.source] if config is not None else None
            details.append({"hydro_id": hydro.id, "name": hydro.name, "source": source, "n_planes": len(planes)})
        if not most.any():
            without_turbines.append(hydro.id)
    return hydro_models_summary(study) | {
        "fpha_details": details,
        "no_turbine_capacity": without_turbines,
        "n_user_supplied_ref": production["n_evaporation_ref_user_supplied"],
        "n_default_midpoint_ref": production["n_evaporation_ref_default_midpoint"],
    }


def copy_exports(source: RunSource, folder: Path) -> None:
    """Copy the files that the section `exports` of config.json asked for; cobre-python uses the same names."""
    for name in (STOCHASTIC, HYDRO_MODELS):
        for path in sorted((source.folder / name).glob("*.*")):
            if path.name != MANIFEST_FILE:
                (folder / name).mkdir(exist_ok=True)
                copy_inside(source.folder, f"{name}/{path.name}", folder / name / path.name)


def timing_columns(iterations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a row for each iteration, in milliseconds of rank 0; null where nothing is measured."""
    if not iterations:
        return {}
    columns: dict[str, Any] = {"iteration": [event["iteration"] for event in iterations], "rank": [0] * len(iterations)}
    columns |= {name: [_milliseconds(event.get(part)) for event in iterations] for name, part in TIMES.items()}
    columns["bwd_load_imbalance_ms"] = [_milliseconds((event.get("imbalance_s") or [0.0])[0]) for event in iterations]
    columns["overhead_ms"] = [_milliseconds(value) for value in _other_times(iterations)]
    return columns


def _other_times(iterations: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return seconds of each iteration that belong to none of the measured phases."""
    ends = [event.get("elapsed_s") or 0.0 for event in iterations]
    reported = [sum(event.get(part) or 0.0 for part in TIMES.values()) for event in iterations]
    # The clock restarts when a run is resumed.
    lengths = [end - before if end > before else end for before, end in zip([0.0, *ends], ends, strict=False)]
    return [max(0.0, total - part) for total, part in zip(lengths, reported, strict=True)]


def solver_columns(iterations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a row for each phase of each iteration: the LPs of all stages, openings and ranks."""
    rows = [(event["iteration"], phase, done) for event in iterations for phase, done in event["solver"].items()]
    if not rows:
        return {}
    solves = [done["solves"] for _, _, done in rows]
    return {
        "iteration": [number for number, _, _ in rows],
        "phase": [phase for _, phase, _ in rows],
        "lp_solves": solves,
        "lp_successes": solves,  # a finished run has no failed LP
        "lp_failures": [0] * len(rows),
        "retry_attempts": [done.get("retries") for _, _, done in rows],
        "simplex_iterations": [done["pivots"] for _, _, done in rows],
        "solve_time_ms": [1000.0 * done["seconds"] for _, _, done in rows],
    }


def _milliseconds(seconds: float | None) -> int:
    return round(1000.0 * (seconds or 0.0))
