"""Arrays by scenario, stage, entity and block from the rows of a simulation's table."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.core.arrays import Floats
from cobre.io.output.results import RowSource
from cobre.io.storage.arrow_columns import numbers_of
from cobre.records import dataclass

# The pattern of a table: in every scenario, rows have the same keys as in the first.
#
# The keys of a large simulation take gigabytes: they are checked row group by row group, and only those of one scenario
# are stored.

Keys = Sequence[NDArray[Any]]  # scenario first, then the other keys of a row


@dataclass(frozen=True, slots=True)
class RowPattern:
    """The scenarios in order, and the other keys of the rows, which all scenarios share."""

    scenarios: tuple[int, ...]
    keys: Keys

    @property
    def rows(self) -> int:
        """The number of rows of one scenario."""
        return len(self.keys[0])


def row_pattern(pieces: Iterable[Keys]) -> RowPattern | None:
    """Return the pattern; None if a scenario has other rows than the first, or scenarios are not in ascending order."""
    check: _PatternCheck | None = None
    pending: Keys | None = None  # rows of the first scenario, until the second begins
    for piece in pieces:
        pending = piece if pending is None else [np.concatenate(pair) for pair in zip(pending, piece, strict=True)]
        if check is None and len(pending[0]) and pending[0][-1] != pending[0][0]:
            check = _PatternCheck(pending)
        if check is not None:
            if not check.accepts(pending):
                return None
            pending = [key[:0] for key in pending]
    if check is None:
        return _pattern_of_single_row(pending)
    return check.pattern()


def _pattern_of_single_row(rows: Keys | None) -> RowPattern | None:
    if rows is None or not len(rows[0]):
        return None
    return RowPattern((int(rows[0][0]),), rows[1:])


class _PatternCheck:
    """A comparison of rows with those of the first scenario."""

    def __init__(self, first: Keys) -> None:
        self._rows = int(np.argmax(first[0] != first[0][0]))
        self._keys = [key[: self._rows].copy() for key in first[1:]]
        self._scenarios: list[int] = []
        self._seen = 0

    def accepts(self, piece: Keys) -> bool:
        """Return whether the next rows follow the pattern of the first scenario."""
        at = self._seen + np.arange(len(piece[0]))
        turn, row = np.divmod(at, self._rows)
        self._scenarios += piece[0][row == 0].tolist()
        self._seen += len(at)
        same_keys = all(bool((key == expected[row]).all()) for key, expected in zip(piece[1:], self._keys, strict=True))
        return same_keys and bool((np.array(self._scenarios)[turn] == piece[0]).all())

    def pattern(self) -> RowPattern | None:
        is_whole = self._seen % self._rows == 0
        is_in_order = all(a < b for a, b in zip(self._scenarios, self._scenarios[1:], strict=False))
        return RowPattern(tuple(self._scenarios), self._keys) if is_whole and is_in_order else None


class TableColumns(Mapping[str, NDArray[Any]]):
    """Columns of a table, read on demand: a table of a large simulation does not fit into memory."""

    def __init__(self, rows: RowSource) -> None:
        self._rows = rows
        self._names: tuple[str, ...] = tuple(rows.schema.names)

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._names:
            raise KeyError(name)
        pieces = [piece for (piece,) in self.pieces([name])]
        return np.concatenate(pieces) if pieces else np.zeros(0)

    def pieces(self, names: Sequence[str]) -> Iterator[list[NDArray[Any]]]:
        """Yield columns side by side, piece by piece. Raises ValueError if the file cannot be read."""
        try:
            for piece in self._rows.pieces(names):
                yield [numbers_of(piece[name]) for name in names]
        except OSError as error:
            raise ValueError(f"a table cannot be read: {error}") from error

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


Columns = Mapping[str, NDArray[Any]]

MAX_IDS = 1 << 20  # ids farther apart than this are sorted instead of counted


class EntityRows:
    """A table whose rows are ordered by scenario, stage, entity and block. `entity` None: one row for each stage.

    Numbers are read a few scenarios at a time. In a damaged file, whose scenarios have different rows, they are read
    at once.
    """

    def __init__(self, columns: Columns, entity: str | None) -> None:
        self._columns = columns
        names = (
            ["stage_id"] if entity is None else ["stage_id", entity, *(["block_id"] if "block_id" in columns else [])]
        )
        pattern = row_pattern(_pieces(columns, ["scenario_id", *names]))
        self._rows = 0 if pattern is None else pattern.rows  # of one scenario; 0: scenarios differ
        keys = [columns[name] for name in names] if pattern is None else pattern.keys
        self.scenarios, scenario = _index_ids(columns["scenario_id"]) if pattern is None else (pattern.scenarios, None)
        self.stages, stage = _index_in_order(keys[0])
        self.entities, of_entity = _index_ids(keys[1]) if entity else _index_of_one(len(stage))
        self.blocks, block = _index_ids(keys[2]) if len(keys) > 2 else _index_of_one(len(stage))
        self.shape = (len(self.scenarios), len(self.stages), len(self.entities), len(self.blocks))
        codes = (stage, of_entity, block)
        self._cell = _cells(
            codes if scenario is None else (scenario, *codes), self.shape[0 if scenario is not None else 1 :]
        )

    def grids(self, number: str) -> Iterator[Floats]:
        """Yield S x T x E x B, a few scenarios at a time; NaN where an entity or block is missing."""
        if not self._rows:
            yield self._to_grid(self._columns[number], self.shape[0])
            return
        pending: NDArray[Any] | None = None
        for (piece,) in _pieces(self._columns, [number]):
            pending = piece if pending is None or not len(pending) else np.concatenate([pending, piece])
            count = len(pending) // self._rows
            if count:
                yield self._to_grid(pending[: count * self._rows], count)
            pending = pending[count * self._rows :]

    def grid(self, number: str) -> Floats:
        """Return S x T x E x B: the column of all scenarios at once."""
        return np.concatenate(list(self.grids(number)))

    def reduce_blocks(self, number: str, reduction: Callable[[Floats], Floats]) -> Floats:
        """Return S x T x E: a column with its blocks reduced.

        `reduction` takes grids (S x T x E x B) of a few scenarios.
        """
        reduced = np.empty(self.shape[:3])
        first = 0
        for grid in self.grids(number):
            reduced[first : first + len(grid)] = reduction(grid)
            first += len(grid)
        return reduced

    def total(self, number: str) -> Floats:
        """Return S x T x E: the sum of a column over blocks; 0 where an entity is missing."""
        return self.reduce_blocks(number, sum_over_blocks)

    def by_scenario(self, by_row: Floats) -> Floats:
        """Return S: numbers given by row, summed over stages in order."""
        by_scenario: Floats = sum_over_blocks(self._to_grid(by_row, self.shape[0])).sum(axis=(1, 2))
        return by_scenario

    def _to_grid(self, by_row: NDArray[Any], count: int) -> Floats:
        """Return the rows of `count` scenarios as a grid; rows that fill all cells in order are only reshaped."""
        shape = (count, *self.shape[1:])
        if self._cell is None:
            return np.asarray(by_row, np.float64).reshape(shape)
        if not self._rows:
            values = np.full(int(np.prod(shape)), np.nan)
            values[self._cell] = by_row
            return values.reshape(shape)
        grid = np.full((count, int(np.prod(shape[1:]))), np.nan)
        grid[:, self._cell] = np.asarray(by_row).reshape(count, self._rows)
        return grid.reshape(shape)


def sum_over_blocks(grid: Floats) -> Floats:
    """Return S x T x E: the sum over blocks; 0 where an entity is missing."""
    sums: Floats = np.add.reduce(grid, axis=3)
    if np.isnan(sums).any():
        sums = np.asarray(np.nansum(grid, axis=3))
    return sums


def last_block(grid: Floats) -> Floats:
    """Return S x T x E: the value of the last block of a stage; NaN where an entity is missing."""
    values: Floats = grid[..., -1].copy()
    if np.isnan(values).any():
        for block in range(grid.shape[3] - 2, -1, -1):
            np.copyto(values, grid[..., block], where=np.isnan(values))
    return values


def mean_over_blocks(grid: Floats, hours: Floats) -> Floats:
    """Return S x T x E: the mean over blocks weighted by hours (T x B); NaN where an entity is missing."""
    means: Floats = np.einsum("steb,tb->ste", grid, hours / hours.sum(axis=1, keepdims=True))
    if not np.isnan(means).any():
        return means
    is_present = ~np.isnan(grid)
    weights = np.where(is_present, hours[:, None, :], 0.0)
    weighted, total = np.sum(np.where(is_present, grid, 0.0) * weights, axis=3), weights.sum(axis=3)
    averages: Floats = np.divide(weighted, total, out=np.full(weighted.shape, np.nan), where=total > 0)
    return averages


def block_hours(rows: EntityRows) -> Floats:
    """Return T x B: hours of each block, from the load of any bus in MW and MWh; 1 without load."""
    power, energy = rows.grid("load_mw"), rows.grid("load_mwh")
    hours = np.divide(energy, power, out=np.zeros(power.shape), where=power > 0)
    longest: Floats = np.nanmax(hours, axis=(0, 2), initial=0.0)
    return np.where(longest > 0, longest, 1.0)


def _pieces(columns: Columns, names: Sequence[str]) -> Iterator[list[NDArray[Any]]]:
    """Yield pieces of some columns side by side; one piece for columns in memory."""
    if isinstance(columns, TableColumns):
        yield from columns.pieces(names)
    else:
        yield [columns[name] for name in names]


def _cells(codes: tuple[NDArray[Any], ...], shape: tuple[int, ...]) -> NDArray[np.intp] | None:
    """Return the cell of each row in a flattened grid; None if the rows are all cells in order."""
    count = len(codes[0])
    if not count:
        return np.zeros(0, np.intp)
    cell = np.ravel_multi_index(codes, shape)
    is_whole = count == int(np.prod(shape)) and bool((cell == np.arange(count)).all())
    return None if is_whole else cell


def _index_of_one(count: int) -> tuple[tuple[int, ...], NDArray[np.intp]]:
    return (0,), np.zeros(count, np.intp)


def _index_ids(ids: NDArray[Any]) -> tuple[tuple[int, ...], NDArray[np.intp]]:
    """Return the distinct ids, ascending, and the index of each row's id among them."""
    if not len(ids):
        return (), np.zeros(0, np.intp)
    lowest, highest = int(ids.min()), int(ids.max())
    if highest - lowest > MAX_IDS:
        distinct = np.unique(ids)
        return tuple(distinct.tolist()), np.searchsorted(distinct, ids)
    is_known = np.zeros(highest - lowest + 1, bool)
    is_known[ids - lowest] = True
    codes = np.cumsum(is_known) - 1
    return tuple((np.flatnonzero(is_known) + lowest).tolist()), codes[ids - lowest]


def _index_in_order(ids: NDArray[Any]) -> tuple[tuple[int, ...], NDArray[np.intp]]:
    """Index ids like `_index_ids`, in order of first appearance: stage ids need not be ascending."""
    distinct, code = _index_ids(ids)
    first = np.zeros(len(distinct), np.intp)
    first[code[::-1]] = np.arange(len(code))[::-1]  # of equal indices, the last assignment stays
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(distinct), np.intp)
    rank[order] = np.arange(len(distinct))
    return tuple(distinct[index] for index in order), rank[code]
