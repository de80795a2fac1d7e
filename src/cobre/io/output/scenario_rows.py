"""Tables of a simulation, scenario by scenario; no more than a few row groups are in memory at a time."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cobre.io.output.manifest import ResultsError
from cobre.io.storage.arrow_columns import check_unpacked_size, numbers_of
from cobre.io.storage.untrusted_file import check_untrusted

if TYPE_CHECKING:
    import pyarrow as pa

Columns = Mapping[str, NDArray[Any]]
ROWS_AT_ONCE = 32_768


class RowSource(Protocol):
    """A table that is read in pieces, each as large as a row group."""

    @property
    def schema(self) -> "pa.Schema":
        """Names and types of the columns."""

    @property
    def rows(self) -> int:
        """The number of rows."""

    def pieces(self, columns: Sequence[str] | None = None) -> Iterator["pa.Table"]:
        """Consecutive rows of some columns (default: all)."""


class StoredRows:
    """A Parquet file as a `RowSource`, read one row group at a time. Raises ResultsError if it cannot be read."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa  # noqa: PLC0415 - nothing heavy on import
        from pyarrow import parquet  # noqa: PLC0415

        try:
            self._file = parquet.ParquetFile(check_untrusted(path))
            self._path = path
        except (OSError, pa.ArrowException) as error:
            raise ResultsError(f"{path} cannot be read: {error}") from error

    @property
    def schema(self) -> "pa.Schema":
        """Names and types of the columns."""
        return self._file.schema_arrow

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self._file.metadata.num_rows)

    def pieces(self, columns: Sequence[str] | None = None) -> Iterator["pa.Table"]:
        """The row groups of the file, with all columns or some."""
        wanted = None if columns is None else list(columns)
        for group in range(self._file.num_row_groups):
            yield self._file.read_row_group(group, columns=wanted, use_threads=False)

    def whole(self) -> "pa.Table":
        """The complete table, for tables that are known to be small."""
        check_unpacked_size(self._file, self._path)
        return self._file.read(use_threads=False)


class RowsInMemory:
    """A table in memory as a `RowSource`."""

    def __init__(self, table: "pa.Table") -> None:
        self._table = table

    @property
    def schema(self) -> "pa.Schema":
        """Names and types of the columns."""
        return self._table.schema

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self._table.num_rows)

    def pieces(self, columns: Sequence[str] | None = None) -> Iterator["pa.Table"]:
        """Consecutive rows of some columns (default: all), without a copy."""
        chosen = self._table if columns is None else self._table.select(list(columns))
        for start in range(0, chosen.num_rows, ROWS_AT_ONCE):
            yield chosen.slice(start, ROWS_AT_ONCE)


def paired_pieces(
    a: RowSource, b: RowSource, column: str
) -> Iterator[tuple[int, "pa.ChunkedArray", "pa.ChunkedArray"]]:
    """Pieces of a column of two tables, up to the end of the shorter: the first row, and equally many values of each.

    Row groups of the two need not have the same size.
    """
    mine, its = ((piece.column(0) for piece in source.pieces([column])) for source in (a, b))
    first, left, right = 0, next(mine, None), next(its, None)
    while left is not None and right is not None:
        count = min(len(left), len(right))
        if count:
            yield first, left[:count], right[:count]
        first, left, right = first + count, left[count:], right[count:]
        left = left if len(left) else next(mine, None)
        right = right if len(right) else next(its, None)


def scenario_rows(source: RowSource, columns: Sequence[str]) -> Iterator[tuple[int, Columns]]:
    """The id and the rows of each scenario, in the order of ids. Raises ResultsError if rows are not in this order."""
    rest: Columns | None = None
    for piece in source.pieces(list(dict.fromkeys(["scenario_id", *columns]))):
        read = {name: numbers_of(piece[name]) for name in piece.column_names}
        rows = read if rest is None else {name: np.concatenate([rest[name], read[name]]) for name in read}
        ids = rows["scenario_id"]
        if np.any(np.diff(ids) < 0):
            raise ResultsError("the rows of a table of the simulation are not in the order of scenarios")
        starts = [0, *(np.flatnonzero(np.diff(ids)) + 1).tolist()]
        for start, stop in pairwise(starts):
            yield _scenario(rows, start, stop)
        rest = {name: values[starts[-1] :] for name, values in rows.items()}
    if rest is not None and len(rest["scenario_id"]):
        yield _scenario(rest, 0, len(rest["scenario_id"]))


def _scenario(rows: Columns, start: int, stop: int) -> tuple[int, Columns]:
    return int(rows["scenario_id"][start]), {name: values[start:stop] for name, values in rows.items()}
