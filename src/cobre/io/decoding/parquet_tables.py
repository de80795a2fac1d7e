"""Parquet tables of a case: strict column types, any compression, rows sorted by their keys."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from cobre.core.case import ABSENT_ID, Table
from cobre.io.decoding.json_documents import EMPTY_FILE, report_unreadable
from cobre.io.findings import Code, Findings, Layer, about, error_code, warning_code
from cobre.io.storage.arrow_columns import (
    check_unpacked_size,
    null_rows,
    open_parquet,
    read_columns,
    system_allocator,
)
from cobre.io.storage.confined import check_untrusted
from cobre.limits import MAX_NUMBER
from cobre.records import dataclass

if TYPE_CHECKING:
    import pyarrow as pa

ColumnKind = Literal["id", "index", "number", "date"]
# The Arrow type of each kind in a file.
STORED_AS: dict[ColumnKind, str] = {"id": "int32", "index": "uint32", "number": "double", "date": "date32[day]"}
TYPE_NAMES: dict[ColumnKind, str] = {"id": "int32", "index": "uint32", "number": "float64", "date": "date32"}
# The type of each kind in memory.
DTYPES: dict[ColumnKind, str] = {"id": "int32", "index": "int64", "number": "float64", "date": "datetime64[D]"}
_PLAIN_NAMES = {
    "double": "float64",
    "float": "float32",
    "date32[day]": "date32",
}  # of Arrow types, as in NumPy and pandas
MAX_ROWS_NAMED = 5

NOT_PARQUET = error_code(
    "not-parquet",
    Layer.STRUCTURE,
    "cannot be read as Parquet: {value}",
    remedy="write the file again; it may be truncated",
)

UNKNOWN_COLUMNS = warning_code(
    "unknown-columns",
    Layer.SCHEMA,
    "these columns are not part of the format and are not used: {value}",
)

MISSING_COLUMN = error_code("missing-column", Layer.SCHEMA, "the column is missing", expected="a column of type {type}")
COLUMN_TWICE = error_code("column-twice", Layer.SCHEMA, "there are two columns of this name", expected="one of them")

COLUMN_TYPE = error_code(
    "column-type", Layer.SCHEMA, "expected {type}, got {value}", remedy="convert the column to {type}"
)

NULL_VALUES = error_code("null-values", Layer.SCHEMA, "is null", expected="a value in every row")
NOT_FINITE = error_code("value-not-finite", Layer.SCHEMA, "is not a finite number", expected="{wanted}")

TOO_LARGE = error_code(
    "value-too-large",
    Layer.SCHEMA,
    "is too large",
    expected=f"a number between {-MAX_NUMBER:g} and {MAX_NUMBER:g}",
)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. `is_required`: it must be in the file; `is_nullable`: rows may have null."""

    name: str
    kind: ColumnKind
    is_required: bool = True
    is_nullable: bool = False


@dataclass(frozen=True, slots=True)
class TableFormat:
    """A table of the case format: its file, its columns, and the columns that identify a row."""

    file: str
    columns: tuple[Column, ...]
    keys: tuple[str, ...]


def read_table(folder: Path, table: TableFormat, findings: Findings) -> Table | None:
    """Return the table by column; None without the file, or if it violates the format, with errors in `findings`."""
    path = folder / table.file
    if not path.exists():
        return None
    start = len(findings.errors)
    with system_allocator():
        arrow = _open(path, table, findings)
        if arrow is None:
            return None
        _check_columns(arrow.schema, table, findings)
        if len(findings.errors) > start:
            return None
        columns = {column.name: _values(arrow, column, table, findings) for column in table.columns}
    return None if len(findings.errors) > start else sorted_by_keys(columns, table)


def sorted_by_keys(columns: Table, table: TableFormat) -> Table:
    """Return the columns of a table in their types, with rows in the order of the keys."""
    order = np.lexsort([columns[key] for key in reversed(table.keys)])
    return {
        column.name: np.ascontiguousarray(columns[column.name][order].astype(DTYPES[column.kind], copy=False))
        for column in table.columns
    }


def _open(path: Path, table: TableFormat, findings: Findings) -> "pa.Table | None":
    import pyarrow as pa  # noqa: PLC0415  (a case without tables needs no Arrow)

    try:
        check_untrusted(path)
    except OSError as error:
        report_unreadable(table.file, error, "one Parquet file; tables of several files are not read", findings)
        return None
    expected = {column.name for column in table.columns}
    try:
        with open_parquet(path) as file:
            check_unpacked_size(file, path)
            present = file.schema_arrow.names
            if unknown := [name for name in present if name not in expected]:
                findings.add(UNKNOWN_COLUMNS, table.file, value=", ".join(f"`{name}`" for name in unknown))
            return read_columns(file, expected)
    except (pa.ArrowException, OSError, ValueError) as error:
        if path.is_file() and path.stat().st_size == 0:
            findings.add(EMPTY_FILE, table.file, needed="a Parquet table")
        else:
            findings.add(NOT_PARQUET, table.file, value=str(error).split("\n", maxsplit=1)[0].strip())
        return None


def _check_columns(schema: "pa.Schema", table: TableFormat, findings: Findings) -> None:
    for column in table.columns:
        count = schema.names.count(column.name)
        if count == 0 and column.is_required:
            findings.add(MISSING_COLUMN, table.file, (), column.name, type=TYPE_NAMES[column.kind])
        elif count > 1:
            findings.add(COLUMN_TWICE, table.file, (), column.name)
        elif count == 1:
            _check_type(str(schema.field(column.name).type), column, table, findings)


def _check_type(actual: str, column: Column, table: TableFormat, findings: Findings) -> None:
    if actual != STORED_AS[column.kind]:
        facts = {"type": TYPE_NAMES[column.kind], "value": _PLAIN_NAMES.get(actual, actual)}
        findings.add(COLUMN_TYPE, table.file, (), column.name, **facts)


def _values(arrow: "pa.Table", column: Column, table: TableFormat, findings: Findings) -> NDArray[Any]:
    if column.name not in arrow.column_names:
        rows = arrow.num_rows
        return np.full(rows, np.nan) if column.kind == "number" else np.full(rows, ABSENT_ID, dtype=np.int32)
    stored = arrow.column(column.name).combine_chunks()
    is_null = null_rows(stored)
    values = _filled(stored, is_null, column)
    if not column.is_nullable:
        _report_rows(np.flatnonzero(is_null), column, table, findings, NULL_VALUES)
    if column.kind == "number":
        is_odd, size = ~np.isfinite(values) & ~is_null, np.abs(values)
        _report_rows(np.flatnonzero(is_odd), column, table, findings, NOT_FINITE)
        is_large = np.isfinite(values) & (size > MAX_NUMBER)
        _report_rows(np.flatnonzero(is_large), column, table, findings, TOO_LARGE)
    return values


def _filled(stored: Any, is_null: NDArray[np.bool_], column: Column) -> NDArray[Any]:
    """Return values as a NumPy array, with nulls as `core.case.Table` represents them."""
    if column.kind == "number":
        return np.where(is_null, np.nan, _numbers(stored, np.dtype(np.float64)))
    if column.kind == "date":
        days = _numbers(stored, np.dtype(np.int32)).astype("datetime64[D]")
        return np.where(is_null, np.datetime64("NaT"), days)
    if column.kind == "index":
        return np.where(is_null, 0, _numbers(stored, np.dtype(np.uint32))).astype(np.int64)
    return np.where(is_null, ABSENT_ID, _numbers(stored, np.dtype(np.int32))).astype(np.int32)


def _numbers(stored: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the values of a primitive array; arbitrary where it is null.

    Not by `to_numpy`: it imports pandas if installed, which costs every rank half a second and 60 MB.
    """
    if not len(stored):
        return np.zeros(0, dtype)
    return np.frombuffer(stored.buffers()[1], dtype, len(stored), stored.offset * dtype.itemsize)


def _report_rows(rows: NDArray[np.intp], column: Column, table: TableFormat, findings: Findings, code: Code) -> None:
    if rows.size == 0:
        return
    numbers = ", ".join(str(row) for row in rows[:MAX_ROWS_NAMED])
    more = f" and {rows.size - MAX_ROWS_NAMED} more" if rows.size > MAX_ROWS_NAMED else ""
    expected = "a finite number, or null for none" if column.is_nullable else "a finite number"
    findings.add(code, table.file, about("row", f"{numbers}{more}"), column.name, wanted=expected)
