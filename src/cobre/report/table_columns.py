"""Columns of a Parquet file, read on demand: a table of a large simulation does not fit into memory."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.io.storage.arrow_columns import numbers_of
from cobre.io.storage.untrusted_file import check_untrusted


class TableColumns(Mapping[str, NDArray[Any]]):
    """Columns of a Parquet file, read on demand. Raises OSError or ValueError if the file cannot be read."""

    def __init__(self, path: Path) -> None:
        from pyarrow import parquet  # noqa: PLC0415

        self._path = path
        self._file = parquet.ParquetFile(check_untrusted(path))
        self._names: tuple[str, ...] = tuple(self._file.schema_arrow.names)

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._names:
            raise KeyError(name)
        return self._read(name)

    def _read(self, name: str) -> NDArray[Any]:
        found = [piece for (piece,) in self.pieces([name])]
        return np.concatenate(found) if found else np.zeros(0)

    def pieces(self, names: Sequence[str]) -> Iterator[list[NDArray[Any]]]:
        """Columns side by side, row group by row group."""
        try:
            for group in range(self._file.num_row_groups):
                piece = self._file.read_row_group(group, columns=list(names), use_threads=False)
                yield [numbers_of(piece[name]) for name in names]
        except OSError as error:
            raise ValueError(f"{self._path.name} cannot be read: {error}") from error

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class ArrowColumns(Mapping[str, NDArray[Any]]):
    """The columns of an Arrow table in memory, as arrays."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __getitem__(self, name: str) -> NDArray[Any]:
        return numbers_of(self._table[name])

    def __contains__(self, name: object) -> bool:
        return name in self._table.column_names

    def __iter__(self) -> Iterator[str]:
        return iter(self._table.column_names)

    def __len__(self) -> int:
        return len(self._table.column_names)
