"""Tables for the libraries that people analyse with. None of them is needed to install Cobre."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def as_pandas(table: "pa.Table") -> Any:
    """A pandas DataFrame."""
    library("pandas")
    return table.to_pandas()


def as_polars(table: "pa.Table") -> Any:
    """A polars DataFrame, without a copy where the types allow it."""
    return library("polars").from_arrow(table)


def library(name: str) -> Any:
    """The module, or an error that says how to install it."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{name} is not installed: pip install {name}", name=name) from error
