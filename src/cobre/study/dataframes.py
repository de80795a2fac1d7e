"""Tables of results for data analysis libraries: pandas, polars and xarray, all of them optional."""

from collections.abc import Mapping
from datetime import date
from importlib import import_module
from typing import TYPE_CHECKING, Any

from cobre.errors import MissingLibraryError

if TYPE_CHECKING:
    import pyarrow as pa


STAGE_START = "stage_start"
INDEX = ("scenario_id", "stage_id", "block_id", "iteration")


def with_names(table: "pa.Table", record: Mapping[str, Any]) -> "pa.Table":
    """Add the names of entities and the dates of stages next to their ids.

    `hydro_name` follows `hydro_id`, `stage_start` follows `stage_id`. record: as in study.json; ids without a
    name are left unlabelled.
    """
    import pyarrow as pa

    for column, (name, values) in _labels(table, record).items():
        ids = table[column].combine_chunks() if table.num_rows else pa.array([], table[column].type)
        ids_with_names = pa.array(list(values), ids.type)
        positions, texts = _index_in(ids, ids_with_names), pa.array(values.values())
        if name == STAGE_START:
            labels = texts.cast(pa.timestamp("s")).take(positions)
        else:
            labels = pa.DictionaryArray.from_arrays(positions, texts)
        table = table.add_column(table.column_names.index(column) + 1, name, labels)
    return table


def _index_in(ids: "pa.Array", ids_with_names: "pa.Array") -> "pa.Array":
    """Return the position of each id among the known ones; null for others."""
    import pyarrow.compute as pc

    return pc.index_in(ids, value_set=ids_with_names)


def _labels(table: "pa.Table", record: Mapping[str, Any]) -> dict[str, tuple[str, dict[int, Any]]]:
    """Return, by column of ids, the name of its label column and the label of each id."""
    from cobre.report.stored_study import StoredStudy, kind_of

    study = StoredStudy(record)
    labels: dict[str, tuple[str, dict[int, Any]]] = {}
    for column in table.column_names:
        if (kind := kind_of(column)) is not None and (entities := study.entities(kind)):
            names = {entry["id"]: study.entity_name(kind, entry["id"]) for entry in entities}
            labels[column] = f"{column.removesuffix('_id')}_name", names
        elif column == "stage_id" and (starts := study.known_starts):
            labels[column] = STAGE_START, {id_: date.fromisoformat(start[:10]) for id_, start in starts.items()}
    return labels


def as_pandas(table: "pa.Table") -> Any:
    """Convert an Arrow table to a pandas DataFrame; raise MissingLibraryError without pandas."""
    library("pandas")
    return table.to_pandas()


def as_polars(table: "pa.Table") -> Any:
    """Convert to a polars DataFrame, without a copy if the types allow it."""
    return library("polars").from_arrow(table)


def as_xarray(table: "pa.Table", record: Mapping[str, Any] | None = None) -> Any:
    """Convert to an xarray Dataset, whose dimensions are the table's ids: scenario_id, stage_id, block_id, hydro_id.

    Cells without a row are NaN. An id without any value, such as the block of costs, is not a dimension. record: as in
    study.json; names of entities and dates of stages are coordinates along their ids.
    """
    xarray = library("xarray", "[netcdf]")
    library("pandas")
    ids = [name for name in table.column_names if name in INDEX or name.endswith("_id")]
    empty = [name for name in ids if table[name].null_count == table.num_rows]
    frame = table.drop_columns(empty).to_pandas().set_index([name for name in ids if name not in empty])
    if not frame.index.is_unique:
        raise ValueError("several rows have the same ids, so this table cannot be an array")
    dataset = xarray.Dataset.from_dataframe(frame)
    labels = {column: label for column, label in _labels(table, record or {}).items() if column in dataset.dims}
    return dataset.assign_coords(
        {name: (column, _labels_along(dataset[column].values, values)) for column, (name, values) in labels.items()}
    )


def _labels_along(ids: Any, values: Mapping[int, Any]) -> Any:
    """Return the labels in the order of the ids: datetime64 for dates, else text."""
    import numpy as np

    labels = [values.get(int(id_)) for id_ in ids]
    if any(isinstance(label, date) for label in labels):
        return np.array(labels, "datetime64[ns]")
    return np.array(["" if label is None else label for label in labels])


def library(name: str, extra: str | None = None) -> Any:
    """Import an optional library. Raises MissingLibraryError with the command that installs it."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != name:
            raise
        raise MissingLibraryError(name, extra or name) from error
