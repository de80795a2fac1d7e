"""Read an output directory, skipping missing or damaged files."""

from collections.abc import Collection, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from cobre.core.file_names import (
    BOUND_FILE,
    CONFIG_FILE,
    CONVERGENCE,
    EVENT_FILE,
    MANIFEST_FILE,
    OUTPUT,
    RUN_FILES,
    SIMULATION,
    STUDY_FILE,
    SUMMARY_FILE,
    TRAINING,
)
from cobre.core.verdict import ComputedBound
from cobre.errors import CobreError
from cobre.io.output import ResultsError, read_manifest
from cobre.io.output.results import StoredRows, table_file
from cobre.io.storage.stored_json import read_stored_object
from cobre.records import dataclass
from cobre.report.bounds import Bounds, bounds_of_events, bounds_of_table
from cobre.report.entity_rows import TableColumns
from cobre.report.simulated import NEEDED_COLUMNS, SimulationTables
from cobre.report.stored_study import StoredStudy
from cobre.runs.events import number_of
from cobre.runs.files import is_run_folder
from cobre.runs.run_state import RunState
from cobre.runs.view import RunView, read_view
from cobre.text import as_argument, counted


class ReportError(CobreError):
    """Raised if a report cannot be created or written; the message gives the reason and the remedy."""


class ReportNotWrittenError(ReportError):
    """The file of a report cannot be written."""


# Raised for wrong types and values in the files of a run, which must not make the report fail.
MALFORMED_DATA = (ArithmeticError, LookupError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The content of an output directory.

    file_errors: a sentence for each damaged file, whose content is left out. damaged: those of result files, without
    the event log, whose last line is incomplete if the run was killed.
    """

    path: Path
    state: RunState
    log: RunView
    study: StoredStudy
    summary: Mapping[str, Any]
    manifests: Mapping[str, Mapping[str, Any]]
    bounds: Bounds
    simulated: SimulationTables | None
    file_errors: list[str] = field(default_factory=list)
    damaged: tuple[str, ...] = ()

    @property
    def controlled_cost(self) -> tuple[float, float] | None:
        """The simulated mean controlled for the openings drawn, and its half width, in $; None if not known."""
        event = self.log.simulated or {}
        mean, half_width = (number_of(event.get(f"controlled_{name}")) for name in ("mean_cost", "half_width"))
        return None if self.simulated is None or mean is None or half_width is None else (mean, half_width)


def read_run(folder: Path) -> RunFolder:
    """Read an output directory. Raises ReportError if it is not one."""
    _require_run_folder(folder)
    file_errors: list[str] = []
    log = _log(folder / EVENT_FILE, file_errors)
    num_log_errors = len(file_errors)
    study = StoredStudy(_read_object(folder / STUDY_FILE, file_errors))
    file_errors += _missing_files(folder, log)
    manifests = {name: _manifest(folder / name, file_errors) for name in (TRAINING, SIMULATION)}
    summary = _read_object(folder / SUMMARY_FILE, file_errors)
    computed = _computed_bound(log, _read_object(folder / BOUND_FILE, file_errors))
    bounds = _bounds(folder / TRAINING, manifests[TRAINING], log, file_errors)
    simulated = _read_simulation(folder / SIMULATION, manifests[SIMULATION], study, file_errors)
    _check_other_tables(folder / TRAINING, manifests[TRAINING], (CONVERGENCE,), file_errors)
    _check_other_tables(folder / SIMULATION, manifests[SIMULATION], NEEDED_COLUMNS, file_errors)
    return RunFolder(
        path=folder,
        state=log.state(folder),
        log=log,
        study=study,
        summary=summary,
        manifests=manifests,
        bounds=_with_upper_bound_kind(bounds, study, log, computed),
        simulated=simulated,
        file_errors=file_errors,
        damaged=tuple(file_errors[num_log_errors:]),
    )


def _require_run_folder(folder: Path) -> None:
    if not folder.exists():
        raise ReportError(f"{folder} does not exist; give the output directory of a run")
    if not folder.is_dir():
        raise ReportError(f"{folder} is a file; give the output directory of a run")
    if is_run_folder(folder):
        return
    hint = ""
    if (folder / CONFIG_FILE).exists():
        command = f"cobre run {as_argument(folder)}"
        hint = f"; it looks like a case: `{command}` writes results, by default to {folder / OUTPUT}"
    raise ReportError(f"{folder} is not the output directory of a run: it has none of {', '.join(RUN_FILES)}{hint}")


def _log(path: Path, file_errors: list[str]) -> RunView:
    """Read the events of a run; empty if the file is missing or cannot be read."""
    try:
        log, damaged_lines = read_view(path)
    except OSError as error:
        file_errors.append(f"{path.name} cannot be read: {error.strerror}")
        return RunView()
    if damaged_lines:
        first = ", ".join(map(str, damaged_lines[:5]))
        file_errors.append(f"{path.name}: {counted(len(damaged_lines), 'line')} cannot be read (line {first})")
    return log


def _missing_files(folder: Path, log: RunView) -> list[str]:
    """Return a sentence for each file that the run has written according to its events, and that is missing."""
    if log.finished is None:
        return []
    written = [STUDY_FILE, SUMMARY_FILE]
    written += [f"{TRAINING}/{MANIFEST_FILE}"] if log.trained is not None else []
    written += [f"{SIMULATION}/{MANIFEST_FILE}"] if log.simulated is not None else []
    return [f"{name} is missing" for name in written if not (folder / name).exists()]


def _read_object(path: Path, file_errors: list[str]) -> Mapping[str, Any]:
    """Read a JSON object; empty if the file is missing or damaged."""
    try:
        content = read_stored_object(path)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        file_errors.append(f"{path.name} cannot be read: {error}")
        return {}
    return content


def _manifest(folder: Path, file_errors: list[str]) -> Mapping[str, Any]:
    if not (folder / MANIFEST_FILE).exists():
        return {}
    try:
        return read_manifest(folder)
    except ResultsError as error:
        file_errors.append(str(error))
        return {}


def _bounds(folder: Path, manifest: Mapping[str, Any], log: RunView, file_errors: list[str]) -> Bounds:
    """Return bounds from the convergence table of a finished training, else from events."""
    table = _columns(folder, manifest, CONVERGENCE, Bounds.COLUMNS, file_errors)
    return bounds_of_events(log.iterations) if table is None else bounds_of_table(table)


def _with_upper_bound_kind(bounds: Bounds, study: StoredStudy, log: RunView, computed: ComputedBound | None) -> Bounds:
    """Return the bounds with the kind of their upper bound, and whether the lower one is valid."""
    return replace(
        bounds,
        is_exact=study.has_exact_bounds,
        is_risk_averse=study.is_risk_averse,
        computed=computed,
        single_path_cost=log.single_path_cost,
        overstated=log.bounds.overstated,
    )


def _computed_bound(log: RunView, stored: Mapping[str, Any]) -> ComputedBound | None:
    """Return the bound that ended training; else that of `cobre bound`, or of a stopping rule that did not end it."""
    if log.computed_bound is not None and log.computed_bound.is_enough:
        return log.computed_bound
    return ComputedBound.of(stored) or log.computed_bound


def _read_simulation(
    folder: Path, manifest: Mapping[str, Any], study: StoredStudy, file_errors: list[str]
) -> SimulationTables | None:
    tables = {
        name: columns
        for name, needed in NEEDED_COLUMNS.items()
        if (columns := _columns(folder, manifest, name, needed, file_errors)) is not None
    }
    return SimulationTables(tables, study) if "costs" in tables else None


def _columns(
    folder: Path, manifest: Mapping[str, Any], name: str, needed: tuple[str, ...], file_errors: list[str]
) -> TableColumns | None:
    """Return columns of a table that the manifest lists; None for a table whose file is not the one listed."""
    tables = manifest.get("tables")
    if not isinstance(tables, dict) or name not in tables:
        return None
    try:
        columns = TableColumns(StoredRows(table_file(folder, name, tables[name])))
        if missing := sorted(set(needed) - set(columns)):
            raise ValueError(f"it has no column {', '.join(missing)}")
    except (OSError, ValueError) as error:  # pyarrow's errors are ValueErrors
        file_errors.append(f"{folder.name}/{name}.parquet is left out: {error}")
        return None
    return columns


def _check_other_tables(
    folder: Path, manifest: Mapping[str, Any], shown_tables: Collection[str], file_errors: list[str]
) -> None:
    """Compare tables that the report does not show with their checksums: other programs read them."""
    tables = manifest.get("tables")
    for name, entry in tables.items() if isinstance(tables, dict) else ():
        if name not in shown_tables:
            try:
                table_file(folder, str(name), entry)
            except ResultsError as error:
                file_errors.append(f"{folder.name}/{name}.parquet is damaged: {error}")
