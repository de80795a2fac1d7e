"""One NetCDF-4 file with a group for each table: ids are dimensions, numbers are variables.

    xarray.open_dataset("results.nc", group="hydros")["storage_final_hm3"].mean("scenario_id")

A table whose rows have no ids of their own, such as a list of commitments, has the one dimension `row`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cobre.export.run_tables import RunTables
from cobre.io.output.results import Columns, RowSource, scenario_rows
from cobre.io.storage.arrow_columns import numbers_of
from cobre.runs.formatting import unit_of_column
from cobre.study.results.script_results import library

if TYPE_CHECKING:
    import pyarrow as pa

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
    """The id columns that identify a row, `scenario_id` first; None if they do not, or a column is text."""
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
    ids_by_dimension = {name: _known_ids(rows, name) for name in ids}
    for name, known in ids_by_dimension.items():
        group.createDimension(name, len(known))
        group.createVariable(name, "i4", (name,))[:] = known
        _describe(group, name, known, tables)
    numbers = [name for name in rows.schema.names if name not in ids and name != "block_id"]
    shape = tuple(len(known) for known in ids_by_dimension.values())
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


def _known_ids(rows: RowSource, name: str) -> NDArray[np.int32]:
    found = [np.unique(numbers_of(piece[name])) for piece in rows.pieces([name])]
    return np.unique(np.concatenate(found)).astype(np.int32)


def _describe(group: Any, name: str, known: NDArray[np.int32], tables: RunTables) -> None:
    """Add the dates of stages or the names of entities as a variable beside their ids."""
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
