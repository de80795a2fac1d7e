"""Parquet tables of a case: strict column types, any compression, rows sorted by their keys."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from cobre.core.case import ABSENT_ID, Table
from cobre.io.decoding.json_documents import MAX_NUMBER
from cobre.io.findings.problems import Layer, Problems
from cobre.io.storage.arrow_columns import check_unpacked_size, null_rows
from cobre.io.storage.confined import check_untrusted
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


def read_table(folder: Path, table: TableFormat, problems: Problems) -> Table | None:
    """Return the table by column; None without the file or if it violates the format, with errors in `problems`."""
    path = folder / table.file
    if not path.exists():
        return None
    arrow = _open(path, table, problems)
    if arrow is None:
        return None
    known = len(problems.errors)
    _check_columns(arrow.schema, table, problems)
    if len(problems.errors) > known:
        return None
    columns = {column.name: _values(arrow, column, table, problems) for column in table.columns}
    return None if len(problems.errors) > known else sorted_by_keys(columns, table)


def sorted_by_keys(columns: Table, table: TableFormat) -> Table:
    """Return the columns of a table in their types, with rows in the order of the keys."""
    order = np.lexsort([columns[key] for key in reversed(table.keys)])
    return {
        column.name: np.ascontiguousarray(columns[column.name][order].astype(DTYPES[column.kind], copy=False))
        for column in table.columns
    }


def _open(path: Path, table: TableFormat, problems: Problems) -> "pa.Table | None":
    import pyarrow as pa  # noqa: PLC0415  (a case without tables needs no Arrow)
    from pyarrow import parquet  # noqa: PLC0415

    wanted = {column.name for column in table.columns}
    try:
        with parquet.ParquetFile(check_untrusted(path)) as file:
            check_unpacked_size(file, path)
            present = file.schema_arrow.names
            _warn_of_others([name for name in present if name not in wanted], table, problems)
            return file.read(columns=[name for name in present if name in wanted], use_threads=False)
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).split("\n", maxsplit=1)[0].strip()
        is_empty = path.is_file() and path.stat().st_size == 0
        message = "the file is empty" if is_empty else f"cannot be read as Parquet: {reason}"
        remedy = "a Parquet table" if is_empty else "write the file again; it may be truncated"
        problems.error(Layer.STRUCTURE, table.file, "", "", message, remedy)
        return None


def _warn_of_others(names: Sequence[str], table: TableFormat, problems: Problems) -> None:
    if names:
        quoted = ", ".join(f"`{name}`" for name in names)
        message = f"these columns are not part of the format and are not used: {quoted}"
        problems.warn(Layer.SCHEMA, table.file, "", "", message)


def _check_columns(schema: "pa.Schema", table: TableFormat, problems: Problems) -> None:
    for column in table.columns:
        count = schema.names.count(column.name)
        if count == 0 and column.is_required:
            remedy = f"a column of type {TYPE_NAMES[column.kind]}"
            problems.error(Layer.SCHEMA, table.file, "", column.name, "the column is missing", remedy)
        elif count > 1:
            problems.error(
                Layer.SCHEMA, table.file, "", column.name, "there are two columns of this name", "one of them"
            )
        elif count == 1:
            _check_type(str(schema.field(column.name).type), column, table, problems)


def _check_type(found: str, column: Column, table: TableFormat, problems: Problems) -> None:
    wanted = TYPE_NAMES[column.kind]
    if found != STORED_AS[column.kind]:
        message = f"expected {wanted}, got {_PLAIN_NAMES.get(found, found)}"
        problems.error(Layer.SCHEMA, table.file, "", column.name, message, f"convert the column to {wanted}")


def _values(arrow: "pa.Table", column: Column, table: TableFormat, problems: Problems) -> NDArray[Any]:
    if column.name not in arrow.column_names:
        return _absent(column, arrow.num_rows)
    stored = arrow.column(column.name).combine_chunks()
    is_null = null_rows(stored)
    values = _filled(stored, is_null, column)
    if not column.is_nullable:
        _report_rows(np.flatnonzero(is_null), column, table, problems, "is null", "a value in every row")
    if column.kind == "number":
        is_odd, size = ~np.isfinite(values) & ~is_null, np.abs(values)
        _report_rows(np.flatnonzero(is_odd), column, table, problems, "is not a finite number", _finite(column))
        is_large = np.isfinite(values) & (size > MAX_NUMBER)
        between = f"a number between {-MAX_NUMBER:g} and {MAX_NUMBER:g}"
        _report_rows(np.flatnonzero(is_large), column, table, problems, "is too large", between)
    return values


def _finite(column: Column) -> str:
    return "a finite number, or null for none" if column.is_nullable else "a finite number"


def _absent(column: Column, num_rows: int) -> NDArray[Any]:
    return np.full(num_rows, np.nan) if column.kind == "number" else np.full(num_rows, ABSENT_ID, dtype=np.int32)


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


def _report_rows(
    rows: NDArray[np.intp], column: Column, table: TableFormat, problems: Problems, what: str, remedy: str
) -> None:
    if rows.size == 0:
        return
    named = ", ".join(str(row) for row in rows[:MAX_ROWS_NAMED])
    more = f" and {rows.size - MAX_ROWS_NAMED} more" if rows.size > MAX_ROWS_NAMED else ""
    problems.error(Layer.SCHEMA, table.file, f"row {named}{more}", column.name, what, remedy)
