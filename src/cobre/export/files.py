"""Files of tables: CSV, DuckDB, Excel and NetCDF."""

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cobre.export.run_tables import ExportError, RunTables
from cobre.io.output.results import Columns, RowSource, scenario_rows
from cobre.io.storage.arrow_columns import numbers_of
from cobre.io.storage.atomic import WriteError, as_write_error, scratch_directory
from cobre.io.storage.confined import create_file, make_folder, move_file
from cobre.runs.labels import unit_of_column
from cobre.study.dataframes import library
from cobre.text import printable

if TYPE_CHECKING:
    import pyarrow as pa


# Text from cases in CSV files, escaped: a spreadsheet must not evaluate it as a formula, nor a terminal act on it.

_FORMULA_STARTS = ("=", "+", "-", "@")


def spreadsheet_text(text: str) -> str:
    """Escape control characters, and put an apostrophe before what a spreadsheet would take as a formula.

    >>> spreadsheet_text('=HYPERLINK("http://example.org")')
    '\\'=HYPERLINK("http://example.org")'
    """
    escaped = printable(text, lines=False)
    return f"'{escaped}" if escaped.lstrip().startswith(_FORMULA_STARTS) else escaped


def with_spreadsheet_text(table: "pa.Table") -> "pa.Table":
    """Return the table with its text columns escaped by `spreadsheet_text`."""
    import pyarrow as pa

    for index, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            safe = [None if text is None else spreadsheet_text(text) for text in table.column(index).to_pylist()]
            table = table.set_column(index, field, pa.array(safe, field.type))
    return table


def write_csv(tables: RunTables, folder: Path) -> None:
    """Write each table, row group by row group; null is an empty field, text that looks like a formula is escaped."""
    from pyarrow import csv

    for name, rows in tables.tables.items():
        with create_file(folder / f"{name}.csv") as stream, csv.CSVWriter(stream, rows.schema) as writer:
            for piece in rows.pieces():
                writer.write_table(with_spreadsheet_text(piece))


def write_duckdb(tables: RunTables, target: Path) -> None:
    """Write all tables, row group by row group; DuckDB downloads no extensions."""
    duckdb = library("duckdb", "[duckdb]")
    settings = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    with duckdb.connect(str(target), config=settings) as database:
        for name, rows in tables.tables.items():
            database.from_arrow(_reader(rows)).create(name)


def _reader(rows: RowSource) -> object:
    import pyarrow as pa

    batches = (batch for piece in rows.pieces() for batch in piece.to_batches())
    return pa.RecordBatchReader.from_batches(rows.schema, batches)


# A file that a library writes by path, and that gets its name when it is complete.


@contextmanager
def new_file(target: Path) -> Iterator[Path]:
    """Yield a path to write to, in a temporary directory next to `target`; rename it to `target` when the block ends.

    Raises WriteError if `target` exists or cannot be written; nothing is left after a failure.
    """
    if os.path.lexists(target):
        raise WriteError(target, "it exists", "choose a new name, or remove it first")
    with as_write_error(target):
        make_folder(target.parent)
        with scratch_directory(target.parent) as scratch:
            staged = scratch / target.name
            yield staged
            with staged.open("rb+") as stream:
                os.fsync(stream.fileno())
            move_file(staged, target)


MAX_ROWS = 1_048_576
MAX_SHEET_NAME = 31


def check_rows(tables: RunTables) -> None:
    """Raise ExportError for a table with more rows than a sheet holds: no rows are cut off."""
    too_long = {name: rows.rows for name, rows in tables.tables.items() if rows.rows + 1 > MAX_ROWS}
    if too_long:
        listed = ", ".join(f"{name} has {count:,} rows" for name, count in too_long.items())
        others = " ".join(f"--table {name}" for name in tables.tables if name not in too_long)
        raise ExportError(
            f"an Excel sheet holds {MAX_ROWS:,} rows including the heading, but {listed}: export other tables "
            f"({others}), or all of them with --to csv or --to duckdb"
        )


def write_workbook(tables: RunTables, target: Path) -> None:
    """Write all tables into an Excel workbook, row by row in constant memory."""
    check_rows(tables)
    options = {"constant_memory": True, "tmpdir": str(target.parent), "default_date_format": "yyyy-mm-dd"}
    with library("xlsxwriter", "[excel]").Workbook(str(target), options) as book:
        bold = book.add_format({"bold": True})
        for name, rows in tables.tables.items():
            _write_sheet(book.add_worksheet(name[:MAX_SHEET_NAME]), rows, bold)


def _write_sheet(sheet: Any, rows: RowSource, bold: Any) -> None:
    names = rows.schema.names
    sheet.freeze_panes(1, 0)
    sheet.set_column(0, max(0, len(names) - 1), 14)
    for column, name in enumerate(names):
        sheet.write_string(0, column, name, bold)
    at = 1
    for piece in rows.pieces():
        for values in zip(*(piece[name].to_pylist() for name in names), strict=True):
            for column, value in enumerate(values):
                _write_cell(sheet, at, column, value)
            at += 1


def _write_cell(sheet: Any, row: int, column: int, value: Any) -> None:
    """Write a cell; text is never taken as a formula; None, NaN and infinities are empty."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return
    if isinstance(value, str):
        sheet.write_string(row, column, value)
    elif isinstance(value, bool):
        sheet.write_boolean(row, column, value)
    elif isinstance(value, int | float):
        sheet.write_number(row, column, value)
    else:
        sheet.write_datetime(row, column, value)


# One NetCDF-4 file with a group for each table: ids are dimensions, numbers are variables.

SCENARIO = "scenario_id"
_PACKED = {"zlib": True, "complevel": 1}


def write_netcdf(tables: RunTables, target: Path) -> None:
    """Write all tables into a netCDF file, one scenario at a time."""
    netcdf = library("netCDF4", "[netcdf]")
    with netcdf.Dataset(str(target), "w", format="NETCDF4") as file:
        file.title = f"Results of {tables.study.get('name') or tables.folder.name}"
        for name, rows in tables.tables.items():
            group = file.createGroup(name)
            ids = _dimensions(rows)
            if ids is None:
                _write_rows(group, rows)
            else:
                _write_array(group, rows, ids, tables)


def _dimensions(rows: RowSource) -> list[str] | None:
    """Return the id columns that identify a row, `scenario_id` first; None if they do not, or a column is text."""
    import pyarrow as pa

    schema = rows.schema
    if SCENARIO not in schema.names or any(pa.types.is_string(field.type) for field in schema):
        return None
    ids = [name for name in schema.names if name.endswith("_id") and name != SCENARIO]
    first = next(scenario_rows(rows, ids), None)
    if first is None:
        return None
    ids = [name for name in ids if not _is_empty(first[1][name])]
    cells = np.unique(np.column_stack([first[1][name] for name in ids]), axis=0) if ids else np.zeros((1, 0))
    return [SCENARIO, *ids] if len(cells) == len(first[1][SCENARIO]) else None


def _is_empty(values: NDArray[Any]) -> bool:
    return values.dtype.kind == "f" and bool(np.isnan(values).all())


def _write_array(group: Any, rows: RowSource, ids: Sequence[str], tables: RunTables) -> None:
    ids_by_dimension = {name: _distinct_ids(rows, name) for name in ids}
    for name, ids_of_name in ids_by_dimension.items():
        group.createDimension(name, len(ids_of_name))
        group.createVariable(name, "i4", (name,))[:] = ids_of_name
        _describe(group, name, ids_of_name, tables)
    numbers = [name for name in rows.schema.names if name not in ids and name != "block_id"]
    shape = tuple(len(ids_of_name) for ids_of_name in ids_by_dimension.values())
    chunks = (1, *shape[1:])
    variables = {
        name: group.createVariable(name, "f8", tuple(ids), fill_value=np.nan, chunksizes=chunks, **_PACKED)
        for name in numbers
    }
    for name, variable in variables.items():
        _set_unit(variable, name)
    for scenario, columns in scenario_rows(rows, [*ids, *numbers]):
        at = int(np.searchsorted(ids_by_dimension[SCENARIO], scenario))
        cell = tuple(np.searchsorted(ids_by_dimension[name], columns[name]) for name in ids[1:])
        for name in numbers:
            variables[name][at] = _slab(columns, name, cell, shape[1:])


def _slab(columns: Columns, name: str, cell: tuple[NDArray[Any], ...], shape: tuple[int, ...]) -> NDArray[np.float64]:
    values = np.full(shape, np.nan)
    values[cell] = columns[name] if cell else columns[name][0]
    return values


def _distinct_ids(rows: RowSource, name: str) -> NDArray[np.int32]:
    pieces = [np.unique(numbers_of(piece[name])) for piece in rows.pieces([name])]
    return np.unique(np.concatenate(pieces)).astype(np.int32)


def _describe(group: Any, name: str, known: NDArray[np.int32], tables: RunTables) -> None:
    """Add the dates of stages or the names of entities as a variable next to their ids."""
    if name == "stage_id":
        texts, label = tables.stage_starts(), "start_date"
    else:
        texts, label = tables.entity_names(name), f"{name.removesuffix('_id')}_name"
    if all(int(id_) in texts for id_ in known):
        group.createVariable(label, str, (name,))[:] = np.array([texts[int(id_)] for id_ in known], object)


def _set_unit(variable: Any, name: str) -> None:
    if unit := unit_of_column(name):
        variable.units = unit


def _write_rows(group: Any, rows: RowSource) -> None:
    group.createDimension("row", rows.rows)
    variables = {field.name: _row_variable(group, field) for field in rows.schema}
    at = 0
    for piece in rows.pieces():
        for name, variable in variables.items():
            variable[at : at + piece.num_rows] = _plain(piece[name])
        at += piece.num_rows


def _row_variable(group: Any, field: "pa.Field") -> Any:
    import pyarrow as pa

    if pa.types.is_string(field.type) or pa.types.is_date(field.type):
        return group.createVariable(field.name, str, ("row",))
    variable = group.createVariable(field.name, "f8", ("row",), fill_value=np.nan, **_PACKED)
    _set_unit(variable, field.name)
    return variable


def _plain(column: "pa.ChunkedArray") -> NDArray[Any]:
    import pyarrow as pa

    if pa.types.is_string(column.type) or pa.types.is_date(column.type):
        return np.array(["" if value is None else str(value) for value in column.to_pylist()], object)
    return np.asarray(numbers_of(column), np.float64)
