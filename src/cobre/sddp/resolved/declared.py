"""Declared values of entities as arrays, zero when out of service, and the rows of tables that override them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from cobre.core.arrays import Flags, Floats, Indices, runs
from cobre.core.case import ABSENT_ID, Table
from cobre.core.entities import WithService
from cobre.core.temporal import Stage

Item = TypeVar("Item")


def numbers(items: Iterable[Item], number: Callable[[Item], float]) -> Floats:
    """Return an array with one number for each item."""
    return np.array([number(item) for item in items], dtype=np.float64)


def indices(items: Iterable[Item], index: Callable[[Item], int]) -> Indices:
    """Return an array with one index for each item."""
    return np.array([index(item) for item in items], dtype=np.int64)


def positions_by_id(ids: Iterable[int]) -> Mapping[int, int]:
    """Return the position of each id."""
    return {entity_id: position for position, entity_id in enumerate(ids)}


class ServiceTimes:
    """Entries and exits of entities, read once for all stages."""

    def __init__(self, entities: Sequence[WithService]) -> None:
        limits = np.iinfo(np.int64)
        self._entry = indices(entities, lambda entity: _or(entity.entry_stage_id, limits.min))
        self._exit = indices(entities, lambda entity: _or(entity.exit_stage_id, limits.max))

    def at(self, stage_id: int) -> Flags:
        """Return the entities in service, like `is_in_service` for one."""
        serving: Flags = (self._entry <= stage_id) & (stage_id < self._exit)
        return serving


def _or(stage_id: int | None, otherwise: int) -> int:
    return otherwise if stage_id is None else stage_id


def zero_unless(is_active: Flags, values: Floats) -> Floats:
    """Return the values, zero where an entity is out of service."""
    if is_active.all():
        return values
    shape = (-1,) + (1,) * (values.ndim - 1)
    return np.where(is_active.reshape(shape), values, 0.0)


# Rows of an override table, stage by stage, put over declared values.


class OverrideRows:
    """A table by stage; `ids` are the columns that identify an entity, `order` gives its position in the arrays."""

    def __init__(self, table: Table | None, ids: Sequence[str], order: Mapping[Any, int]) -> None:
        self._table: Table = table or {}
        self._stages = self._table.get("stage_id", np.empty(0, dtype=np.int32))
        self._positions = self._find_positions(ids, order)
        self._is_of_one_block = self._table.get("block_id", np.empty(0, np.int32)) != ABSENT_ID
        self._has_blocks = bool(self._is_of_one_block.any())
        self._columns: dict[str, Floats] = {}
        # Declared values, by column, number of blocks, and flags of the entities that are in service.
        self._in_blocks: dict[tuple[str, int, bytes], Floats] = {}
        self._given_rows: dict[str, dict[int, Indices]] = {}  # by column: rows that have a value, by stage

    def _find_positions(self, ids: Sequence[str], order: Mapping[Any, int]) -> Indices:
        columns = [self._table[name] for name in ids if name in self._table]
        if not columns:
            return np.zeros(0, np.int64)
        if len(ids) > 1:
            keys = zip(*(column.tolist() for column in columns), strict=True)
            return np.array([order[key] for key in keys], dtype=np.int64)
        known, positions = np.array(list(order.items()), np.int64).reshape(-1, 2).T
        by_id = np.argsort(known)
        return positions[by_id[np.searchsorted(known[by_id], columns[0])]]

    def by_block(self, stage: Stage, name: str, declared: Floats, is_active: Flags | None = None) -> Floats:
        """Put a column's values over `declared` [entities], the same in every stage, and return [entities, blocks].

        Rows for all blocks come first, rows for one block last. Entities that are not active get 0. Without any rows,
        stages with the same active entities share one array.
        """
        rows = self._rows(name).get(stage.id)
        if rows is None:
            return self._in_every_block(name, declared, len(stage.blocks), is_active)
        values = np.repeat(declared[:, np.newaxis], len(stage.blocks), axis=1)
        of_all = rows
        if self._has_blocks:
            is_of_one = self._is_of_one_block[rows]
            of_all, of_one = rows[~is_of_one], rows[is_of_one]
        values[self._positions[of_all]] = self._column(name)[of_all, np.newaxis]
        if self._has_blocks:
            values[self._positions[of_one], self._table["block_id"][of_one]] = self._column(name)[of_one]
        return values if is_active is None else zero_unless(is_active, values)

    def _in_every_block(self, name: str, declared: Floats, num_blocks: int, is_active: Flags | None) -> Floats:
        key = name, num_blocks, b"" if is_active is None else is_active.tobytes()
        if key not in self._in_blocks:
            values = np.repeat(declared[:, np.newaxis], num_blocks, axis=1)
            self._in_blocks[key] = values if is_active is None else zero_unless(is_active, values)
        return self._in_blocks[key]

    def by_stage(self, stage_id: int, name: str, declared: Floats) -> Floats:
        """Put a column's values over `declared` [entities]; without any, return `declared` itself."""
        rows = self._rows(name).get(stage_id)
        if rows is None:
            return declared
        values = declared.copy()
        values[self._positions[rows]] = self._column(name)[rows]
        return values

    def _column(self, name: str) -> Floats:
        if name not in self._columns:
            self._columns[name] = np.asarray(self._table.get(name, np.empty(0)), dtype=np.float64)
        return self._columns[name]

    def _rows(self, name: str) -> dict[int, Indices]:
        """Return the rows with a value in a column, by stage; computed once for all stages."""
        if name not in self._given_rows:
            rows = np.flatnonzero(~np.isnan(self._column(name)))
            rows = rows[np.argsort(self._stages[rows], kind="stable")]
            stages = self._stages[rows]
            starts = np.flatnonzero(np.diff(stages, prepend=stages[:1] - 1)) if len(rows) else rows
            self._given_rows[name] = dict(zip(stages[starts].tolist(), runs(rows, starts.tolist()), strict=True))
        return self._given_rows[name]
