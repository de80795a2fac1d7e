"""A linear program grows block by block: columns and rows come as arrays, entries as arrays of equal shape."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from cobre.core.arrays import Flags, Floats, Indices, Ints

ABSENT = -1


class LpBuilder:
    """Collects columns, rows, entries and the ways in which inputs move right-hand sides, all in plain units."""

    def __init__(self) -> None:
        self.num_columns = 0
        self.num_rows = 0
        self.column_names: list[str] = []
        self.row_names: list[str] = []
        self._columns: list[tuple[Floats, Floats, Floats]] = []
        self._rows: list[tuple[Floats, Floats]] = []
        self._entries: list[tuple[Indices, Indices, Floats]] = []
        self._inputs: list[tuple[Indices, Indices, Floats]] = []

    def add_columns(
        self,
        name: str,
        shape: Sequence[int],
        lower: ArrayLike,
        upper: ArrayLike,
        cost: ArrayLike,
        exists: ArrayLike = True,
    ) -> Indices:
        """Columns for the elements that exist; the others get the index ABSENT and their entries are dropped."""
        present = _spread(exists, tuple(shape), bool)
        count = int(present.sum())
        index = np.full(shape, ABSENT, np.int64)
        index[present] = np.arange(self.num_columns, self.num_columns + count)
        lows, highs, costs = _pick(present, lower, upper, cost)
        self._columns.append((lows, highs, costs))
        self.column_names += _labels(name, present)
        self.num_columns += count
        return index

    def add_rows(
        self, name: str, shape: Sequence[int], lower: ArrayLike, upper: ArrayLike, exists: ArrayLike = True
    ) -> Indices:
        """Add rows where `exists`; returns row indices of the given shape, ABSENT where there is none."""
        present = _spread(exists, tuple(shape), bool)
        return self.add_labelled_rows(_labels(name, present), present, lower, upper)

    def add_labelled_rows(self, labels: Sequence[str], present: Flags, lower: ArrayLike, upper: ArrayLike) -> Indices:
        """As `add_rows`, for rows with names of their own: one for each that is present."""
        count = int(present.sum())
        index = np.full(present.shape, ABSENT, np.int64)
        index[present] = np.arange(self.num_rows, self.num_rows + count)
        lows, highs = _pick(present, lower, upper)
        self._rows.append((lows, highs))
        self.row_names += labels
        self.num_rows += count
        return index

    def add_entries(self, rows: ArrayLike, columns: ArrayLike, values: ArrayLike) -> None:
        """Coefficients; arrays are broadcast against one another."""
        self._entries.append(_present_entries(rows, columns, values))

    def add_input_terms(self, rows: ArrayLike, inputs: ArrayLike, values: ArrayLike) -> None:
        """Right side of a row += value * input."""
        self._inputs.append(_present_entries(rows, inputs, values))

    def columns(self) -> tuple[Floats, Floats, Floats]:
        """Lower bounds, upper bounds and costs."""
        lower, upper, cost = (np.concatenate(part) for part in zip(*self._columns, strict=True))
        return lower, upper, cost

    def rows(self) -> tuple[Floats, Floats]:
        """Lower and upper bounds of all rows."""
        lower, upper = (np.concatenate(part) for part in zip(*self._rows, strict=True))
        return lower, upper

    def matrix(self) -> tuple[Ints, Ints, Floats]:
        """Row starts, column indices and values; entries of one row and column are added in order."""
        return _by_rows(*_joined(self._entries), self.num_rows, self.num_columns)

    def inputs(self, num_inputs: int) -> tuple[Ints, Ints, Floats]:
        """Rows, inputs and values, sorted by row."""
        start, index, value = _by_rows(*_joined(self._inputs), self.num_rows, num_inputs)
        return np.repeat(np.arange(self.num_rows, dtype=np.int32), np.diff(start)), index, value


def _pick(present: Flags, *parts: ArrayLike) -> tuple[Floats, ...]:
    return tuple(_spread(part, present.shape, np.float64)[present] for part in parts)


def _spread(part: ArrayLike, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Broadcast by assignment: for blocks of a plant, a tenth of the time of `numpy.broadcast_to`."""
    whole = np.empty(shape, dtype)
    whole[...] = part
    return whole


def _labels(name: str, present: Flags) -> tuple[str, ...]:
    return _labels_of(name, present.shape, np.ascontiguousarray(present).tobytes())


@lru_cache(maxsize=512)
def _labels_of(name: str, shape: tuple[int, ...], flags: bytes) -> tuple[str, ...]:
    """Stages are much alike: those with the same columns have the same strings, not copies."""
    present = np.frombuffer(flags, bool).reshape(shape)
    if present.ndim == 0:
        return (name,) if present else ()
    return tuple(f"{name}[{','.join(map(str, index))}]" for index in np.argwhere(present).tolist())


def _present_entries(rows: ArrayLike, columns: ArrayLike, values: ArrayLike) -> tuple[Indices, Indices, Floats]:
    row, column, value = np.asarray(rows), np.asarray(columns), np.asarray(values, np.float64)
    keep = np.asarray((row != ABSENT) & (column != ABSENT) & (value != 0.0))
    row, column = _spread(row, keep.shape, np.int64), _spread(column, keep.shape, np.int64)
    return row[keep], column[keep], _spread(value, keep.shape, np.float64)[keep]


def _joined(parts: list[tuple[Indices, Indices, Floats]]) -> tuple[Indices, Indices, Floats]:
    if not parts:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    rows, columns, values = (np.concatenate(part) for part in zip(*parts, strict=True))
    return rows, columns, values


def _by_rows(
    rows: Indices, columns: Indices, values: Floats, num_rows: int, num_columns: int
) -> tuple[Ints, Ints, Floats]:
    key = rows * num_columns + columns
    order = np.argsort(key, kind="stable")
    key, values = key[order], values[order]
    first = np.ones(len(key), bool)
    first[1:] = key[1:] != key[:-1]
    merged = values
    if not first.all():
        merged = np.zeros(int(first.sum()))
        np.add.at(merged, np.cumsum(first) - 1, values)  # adds one after the other, in order
    kept_rows, kept_columns = key[first] // num_columns, key[first] % num_columns
    start = np.searchsorted(kept_rows, np.arange(num_rows + 1)).astype(np.int32)
    return start, kept_columns.astype(np.int32), merged
