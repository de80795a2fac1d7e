"""Export formats and layouts, by name."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from cobre.export.files import new_file
from cobre.export.run_tables import ExportError, RunSource, RunTables, read_tables
from cobre.io.output.results import ResultsError
from cobre.io.storage.atomic import new_directory
from cobre.io.storage.confined import UntrustedFileError
from cobre.records import dataclass

__all__ = ["FORMATS", "LAYOUTS", "ExportError", "default_target", "export_run"]

Writer = Callable[[RunSource, Path], None]
TableWriter = Callable[[RunTables, Path], None]


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """A format for tables: one file with this suffix, or a directory if it is empty."""

    write: TableWriter
    suffix: str = ""


def _cobre_python(source: RunSource, folder: Path) -> None:
    from cobre.export.cobre_python.layout import write_layout  # heavy, and needed by this layout only

    write_layout(source, folder)


def _novomodelo(source: RunSource, folder: Path) -> None:
    from cobre.export.cobre_python.columns import LAYOUT_0_19
    from cobre.export.cobre_python.layout import write_layout

    write_layout(source, folder, LAYOUT_0_19)


def _csv(tables: RunTables, target: Path) -> None:
    from cobre.export.files import write_csv

    write_csv(tables, target)


def _xlsx(tables: RunTables, target: Path) -> None:
    from cobre.export.files import write_workbook

    write_workbook(tables, target)


def _netcdf(tables: RunTables, target: Path) -> None:
    from cobre.export.netcdf_file import write_netcdf

    write_netcdf(tables, target)


def _duckdb(tables: RunTables, target: Path) -> None:
    from cobre.export.files import write_duckdb

    write_duckdb(tables, target)


LAYOUTS: Mapping[str, Writer] = {"cobre-python": _cobre_python, "novomodelo": _novomodelo}
FORMATS: Mapping[str, ExportFormat] = {
    "csv": ExportFormat(_csv),
    "xlsx": ExportFormat(_xlsx, ".xlsx"),
    "netcdf": ExportFormat(_netcdf, ".nc"),
    "duckdb": ExportFormat(_duckdb, ".duckdb"),
}


def default_target(run: Path, layout: str) -> Path:
    """The default output, beside the run: RUN.xlsx, RUN.nc, RUN.duckdb, or the directory RUN-csv."""
    suffix = FORMATS[layout].suffix if layout in FORMATS else ""
    named = run if run.name not in ("", "..") else run.resolve()  # `.` and `..` have no name to append to
    return named.with_name(f"{run.resolve().name}{suffix or f'-{layout}'}")


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

    Raises ExportError for an incomplete run, MissingLibraryError where a format needs a library that is not
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
    except (
        ResultsError,
        UntrustedFileError,
    ) as error:  # OSErrors of reading, not of writing
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
    found, tables = FORMATS[layout], read_tables(folder, only)
    with new_file(target) if found.suffix else new_directory(target) as fresh:
        found.write(tables, fresh)
