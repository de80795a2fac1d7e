"""Parquet tables of a case, in the types that the reader expects."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cobre.core.case import ABSENT_ID, Case, Table
from cobre.io.decoding.parquet_tables import Column, TableFormat
from cobre.io.saving.table_check import case_tables

if TYPE_CHECKING:
    import pyarrow as pa


def write_tables(case: Case, folder: Path) -> None:
    """Write the Parquet tables of a case."""
    for table, columns in case_tables(case):
        _write(folder, table, columns)


def _write(folder: Path, table: TableFormat, columns: Table) -> None:
    import pyarrow as pa  # noqa: PLC0415  (a case without tables needs no Arrow)
    from pyarrow import parquet  # noqa: PLC0415

    path = folder / table.file
    path.parent.mkdir(parents=True, exist_ok=True)
    stored = {column.name: _stored(column, columns[column.name]) for column in table.columns if column.name in columns}
    parquet.write_table(pa.table(stored), path, compression="zstd")


def _stored(column: Column, values: NDArray[Any]) -> "pa.Array":
    """The values as an Arrow array, with null for the marks of `core.case.Table`."""
    import pyarrow as pa  # noqa: PLC0415

    if column.kind == "number":
        numbers = np.asarray(values, np.float64)
        return pa.array(numbers, pa.float64(), mask=np.isnan(numbers))
    if column.kind == "date":
        return pa.array(np.asarray(values, "datetime64[D]"), pa.date32())
    if column.kind == "index":
        return pa.array(np.asarray(values, np.int64), pa.uint32())
    ids = np.asarray(values, np.int32)
    return pa.array(ids, pa.int32(), mask=ids == ABSENT_ID)
