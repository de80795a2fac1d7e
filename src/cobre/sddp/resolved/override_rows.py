"""Rows of an override table, stage by stage, put over declared values."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.core.arrays import Floats, Indices
from cobre.core.case import ABSENT_ID, Table


class OverrideRows:
    """A table by stage; `ids` are the columns that identify an entity, `order` gives its position in the arrays."""

    def __init__(self, table: Table | None, ids: Sequence[str], order: Mapping[Any, int]) -> None:
        self._table: Table = table or {}
        stages = self._table.get("stage_id", np.empty(0, dtype=np.int32))
        self._rows_of_stage = {int(stage): np.flatnonzero(stages == stage) for stage in np.unique(stages)}
        self._positions = self._find_positions(ids, order)
        self._columns: dict[str, Floats] = {}

    def _find_positions(self, ids: Sequence[str], order: Mapping[Any, int]) -> Indices:
        columns = [self._table[name].tolist() for name in ids if name in self._table]
        keys: list[Any] = (
            list(zip(*columns, strict=True)) if len(ids) > 1 else [key for part in columns for key in part]
        )
        return np.array([order[key] for key in keys], dtype=np.int64)

    def by_block(self, stage_id: int, name: str, declared: Floats) -> Floats:
        """`declared` [entities, blocks] with a column's values: rows for all blocks first, rows for one block last.

        Without any, `declared` itself: stages share it.
        """
        rows = self._given(stage_id, name)
        if not rows.size:
            return declared
        values = declared.copy()
        blocks = self._table["block_id"][rows]
        of_all, of_one = rows[blocks == ABSENT_ID], rows[blocks != ABSENT_ID]
        values[self._positions[of_all], :] = self._column(name)[of_all, np.newaxis]
        values[self._positions[of_one], blocks[blocks != ABSENT_ID]] = self._column(name)[of_one]
        return values

    def by_stage(self, stage_id: int, name: str, declared: Floats) -> Floats:
        """`declared` [entities] with a column's values; without any, `declared` itself."""
        rows = self._given(stage_id, name)
        if not rows.size:
            return declared
        values = declared.copy()
        values[self._positions[rows]] = self._column(name)[rows]
        return values

    def _column(self, name: str) -> Floats:
        if name not in self._columns:
            self._columns[name] = np.asarray(self._table.get(name, np.empty(0)), dtype=np.float64)
        return self._columns[name]

    def _given(self, stage_id: int, name: str) -> NDArray[np.intp]:
        rows = self._rows_of_stage.get(stage_id)
        if rows is None or name not in self._table:
            return np.empty(0, dtype=np.intp)
        return np.asarray(rows[~np.isnan(self._column(name)[rows])], dtype=np.intp)
