"""Tables for the libraries that people analyse with. None of them is needed to install Cobre."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cobre.errors import MissingLibraryError

if TYPE_CHECKING:
    import pyarrow as pa

INDEX = ("scenario_id", "stage_id", "block_id", "iteration")


def as_pandas(table: "pa.Table") -> Any:
    """An Arrow table as a pandas DataFrame; raises MissingLibraryError without pandas."""
    library("pandas")
    return table.to_pandas()


def as_polars(table: "pa.Table") -> Any:
    """A polars DataFrame, without a copy where the types allow it."""
    return library("polars").from_arrow(table)


def as_xarray(table: "pa.Table") -> Any:
    """An xarray Dataset: the ids of a table are its dimensions, such as scenario_id, stage_id, block_id and hydro_id.

    Cells without a row are NaN. An id without any value, such as the block of costs, is no dimension.
    """
    xarray = library("xarray", "[netcdf]")
    library("pandas")
    ids = [name for name in table.column_names if name in INDEX or name.endswith("_id")]
    empty = [name for name in ids if table[name].null_count == table.num_rows]
    frame = table.drop_columns(empty).to_pandas().set_index([name for name in ids if name not in empty])
    if not frame.index.is_unique:
        raise ValueError("several rows have the same ids, so this table cannot be an array")
    return xarray.Dataset.from_dataframe(frame)


def library(name: str, extra: str | None = None) -> Any:
    """An optional library. Raises MissingLibraryError with the command that installs it."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != name:
            raise
        raise MissingLibraryError(name, extra or name) from error
