"""The Parquet tables of a case, as strict in their types as they are read."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cobre.core.case import ABSENT_ID, Case, Table
from cobre.io.generic_constraints import BOUNDS
from cobre.io.parquet_tables import Column, TableFormat
from cobre.io.table_formats import OVERRIDE_TABLES, PRODUCTION_TABLES, SCENARIO_TABLES

if TYPE_CHECKING:
    import pyarrow as pa


def write_tables(case: Case, folder: Path) -> None:
    """All tables that the case has."""
    owners = (
        (SCENARIO_TABLES, case.scenarios),
        (OVERRIDE_TABLES, case.overrides),
        (PRODUCTION_TABLES, case.production),
    )
    for formats, owner in owners:
        for name, table in formats.items():
            _write(folder, table, getattr(owner, name))
    _write(folder, BOUNDS, case.generic_constraints.bounds)


def _write(folder: Path, table: TableFormat, columns: Table | None) -> None:
    if columns is None:
        return
    import pyarrow as pa  # noqa: PLC0415  (a case without tables needs no Arrow)
    from pyarrow import parquet  # noqa: PLC0415

    path = folder / table.file
    path.parent.mkdir(parents=True, exist_ok=True)
    stored = {column.name: _stored(column, columns[column.name]) for column in table.columns if column.name in columns}
    parquet.write_table(pa.table(stored), path, compression="zstd")


def _stored(column: Column, values: NDArray[Any]) -> "pa.Array":
    """Nulls where `core.case.Table` has its marks for them."""
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
