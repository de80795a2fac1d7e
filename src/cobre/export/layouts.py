"""Export formats and layouts, by name."""

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from cobre.compat.stored_results import convergence_with_times
from cobre.core.file_names import POLICY, POLICY_FILE
from cobre.export.cobre_python_columns import LAYOUT_0_18, LAYOUT_0_19, Program
from cobre.export.cobre_python_policy import Producer, Seasons, write_policy_files
from cobre.export.cobre_python_simulation import copy_exports, write_simulation, write_training
from cobre.export.files import new_file, write_csv, write_duckdb, write_netcdf, write_workbook
from cobre.export.run_tables import ExportError, RunSource, RunTables, read_tables
from cobre.io.output.results import ResultsError
from cobre.io.policies.policy_file import read_policy
from cobre.io.storage.atomic import new_directory
from cobre.io.storage.confined import UntrustedFileError
from cobre.records import dataclass
from cobre.sddp.problem.problem import PreparedStudy

__all__ = ["FORMATS", "LAYOUTS", "ExportError", "default_target", "export_run"]

Writer = Callable[[RunSource, Path], None]
TableWriter = Callable[[RunTables, Path], None]


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """A format for tables: one file with this suffix, or a directory if it is empty."""

    write: TableWriter
    suffix: str = ""


def default_target(run: Path, layout: str) -> Path:
    """Return the default output, next to the run: RUN.xlsx, RUN.nc, RUN.duckdb, or the directory RUN-csv."""
    suffix = FORMATS[layout].suffix if layout in FORMATS else ""
    folder = run if run.name not in ("", "..") else run.resolve()  # `.` and `..` have no name to append to
    return folder.with_name(f"{run.resolve().name}{suffix or f'-{layout}'}")


def export_run(
    run: str | Path,
    output: str | Path | None = None,
    layout: str = "cobre-python",
    case: str | Path | None = None,
    tables: Collection[str] = (),
) -> Path:
    """Write the results of the run in the directory `run` to the new file or directory `output`, and return its path.

    layout: one of `FORMATS` (csv, xlsx, netcdf, duckdb) or of `LAYOUTS`. tables: names of
    tables to export, for formats only; by default all. case: the directory of the run's case, if it was moved and the
    layout needs it.

    Raises ExportError for an incomplete run, MissingLibraryError if a format needs a library that is not
    installed, and WriteError when `output` exists or cannot be written.
    """
    if layout not in LAYOUTS and layout not in FORMATS:
        raise ExportError(f"{layout!r} is not an export format; choose from {', '.join((*FORMATS, *LAYOUTS))}")
    folder = Path(run)
    if not folder.is_dir():
        why = "is not a directory" if folder.exists() else "does not exist"
        raise ExportError(f"{folder} {why}: give the output directory of a run")
    target = default_target(folder, layout) if output is None else Path(output)
    try:
        _write(folder, target, layout, None if case is None else Path(case), tables)
    except (ResultsError, UntrustedFileError) as error:  # OSErrors of reading, not of writing
        raise ExportError(str(error)) from error
    return target


def _write(folder: Path, target: Path, layout: str, case: Path | None, only: Collection[str]) -> None:
    if layout in LAYOUTS:
        if only:
            raise ExportError(f"the layout {layout} always exports all tables: do not name tables")
        source = RunSource(folder, case)
        with new_directory(target, is_flushed=False) as fresh:
            LAYOUTS[layout](source, fresh)
        return
    format_, tables = FORMATS[layout], read_tables(folder, only)
    with new_file(target) if format_.suffix else new_directory(target) as fresh:
        format_.write(tables, fresh)


# Write an output directory in the layout of cobre-python and novomodelo.

CYCLES = {"monthly": 0, "weekly": 1, "custom": 2}


def write_layout(source: RunSource, folder: Path, program: Program = LAYOUT_0_18) -> None:
    """Write policy/, training/ and, if the run has simulated, simulation/. Raises ExportError for an unfinished run.

    The policy of a graph of nodes is left out: the other programs keep cuts by node, leaves excepted, and refuse ours,
    which belong to all nodes of a stage where nodes do not differ, and to every node of a tree otherwise.
    """
    training = source.training  # fails early, before anything large is read
    study = source.prepared
    write_training(source, study, folder / "training", program)
    copy_exports(source, folder)
    policy = read_policy(source.folder / POLICY / POLICY_FILE)
    bounds = convergence_with_times(source.folder)
    producer = Producer(
        program=program,
        created_at=training["completed_at"] or datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        max_iterations=training["configuration"]["max_iterations"] or policy.metadata.iterations,
        forward_passes=int(bounds["forward_passes"][-1].as_py()),
        best_upper_bound=training["bounds"]["final_upper_bound"],
        lower_bounds=bounds["lower_bound"].to_pylist(),
        seasons=_seasons(study),
        block_modes=[stage.block_mode for stage in study.case.horizon.stages],
    )
    if not study.case.horizon.policy_graph.nodes:
        write_policy_files(folder / POLICY, policy, producer)
    write_simulation(source, folder / "simulation")


def _seasons(study: PreparedStudy) -> Seasons | None:
    """Return seasons, and the order of every inflow model in them; None if the case defines no seasons.

    An order counts as declared, also where its coefficients have no effect because a season before has no statistics:
    a study that uses the policy at its end compares orders.
    """
    definitions = study.case.horizon.season_definitions
    if definitions is None:
        return None
    ids = [season.id for season in definitions.seasons]
    orders = {hydro.id: [0] * len(ids) for hydro in study.case.system.hydros}
    remembers = study.noise.ar_coefficients != 0.0  # stages x lags x hydros
    depth = np.where(remembers, np.arange(1, remembers.shape[1] + 1)[None, :, None], 0).max(axis=1, initial=0)
    for stage, row in zip(study.case.horizon.stages, depth, strict=True):
        if stage.season_id in ids:
            season = ids.index(stage.season_id)
            for lists, order in zip(orders.values(), row.tolist(), strict=True):
                lists[season] = max(lists[season], order)
    for hydro, season, order in _declared_orders(study, ids):
        orders[hydro][season] = max(orders[hydro][season], order)
    return Seasons(CYCLES.get(definitions.cycle_type, 2), len(ids), orders)


def _declared_orders(study: PreparedStudy, season_ids: list[int]) -> Iterator[tuple[int, int, int]]:
    """Yield hydro, index of the season and lag of every coefficient in scenarios/inflow_ar_coefficients.parquet."""
    table = study.case.scenarios.inflow_ar_coefficients
    if table is None:
        return
    season_of = {stage.id: stage.season_id for stage in study.case.horizon.stages}
    hydros = {hydro.id for hydro in study.case.system.hydros}
    rows = zip(*(table[name].tolist() for name in ("hydro_id", "stage_id", "lag")), strict=True)
    for hydro, stage, lag in rows:
        season = season_of.get(stage)
        if hydro in hydros and season in season_ids:
            yield hydro, season_ids.index(season), lag


LAYOUTS: Mapping[str, Writer] = {
    "cobre-python": write_layout,
    "novomodelo": lambda source, folder: write_layout(source, folder, LAYOUT_0_19),
}
FORMATS: Mapping[str, ExportFormat] = {
    "csv": ExportFormat(write_csv),
    "xlsx": ExportFormat(write_workbook, ".xlsx"),
    "netcdf": ExportFormat(write_netcdf, ".nc"),
    "duckdb": ExportFormat(write_duckdb, ".duckdb"),
}
