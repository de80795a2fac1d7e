"""Tables with one row per entity and stage, as arrays."""

from collections.abc import Mapping, Sequence

import numpy as np

from cobre.core.arrays import Flags, Floats, Indices
from cobre.core.case import Table
from cobre.stochastic.errors import NoiseModelError


class StageTable:
    """Values of one column family by stage id, each an array over entities; NaN where no row says anything."""

    def __init__(self, file: str, table: Table | None, id_column: str, columns: Sequence[str], ids: Sequence[int]):
        self._columns = tuple(columns)
        self._count = len(ids)
        self._rows: dict[int, Floats] = {}
        position = {entity_id: index for index, entity_id in enumerate(ids)}
        if table is not None:
            self._fill(file, table, id_column, position)

    def _fill(self, file: str, table: Table, id_column: str, position: Mapping[int, int]) -> None:
        entity_ids, stage_ids = table[id_column], table["stage_id"]
        values = np.stack([table[name] for name in self._columns])
        stages, at_stage = np.unique(stage_ids, return_inverse=True)
        entities, at_entity = np.unique(entity_ids, return_inverse=True)
        columns = np.array([position.get(entity_id, -1) for entity_id in entities.tolist()], np.intp)[at_entity]
        _refuse_row(file, table, id_column, columns < 0, f"no such {id_column}; give an id of the system files")
        _refuse_row(file, table, id_column, _is_repeated(at_stage, columns, self._count), "two rows; keep one")
        problem = f"{', '.join(self._columns)} must be finite numbers"
        _refuse_row(file, table, id_column, ~np.isfinite(values).all(axis=0), problem)
        found = np.full((len(stages), len(self._columns), self._count), np.nan)
        found[at_stage, :, columns] = values.T
        self._rows = dict(zip(stages.tolist(), found, strict=True))

    @property
    def stage_ids(self) -> list[int]:
        """The stages that have rows, in order."""
        return sorted(self._rows)

    def at(self, stage_id: int) -> Floats:
        """The values of one stage: one row per column, one column per entity."""
        found = self._rows.get(stage_id)
        return np.full((len(self._columns), self._count), np.nan) if found is None else found

    def over(self, stage_ids: Sequence[int], defaults: Sequence[float]) -> Floats:
        """The values of many stages, (stage, column, entity), with defaults where there is no row."""
        stacked = np.full((len(stage_ids), len(self._columns), self._count), np.nan)
        for index, stage_id in enumerate(stage_ids):
            stacked[index] = self.at(stage_id)
        fallback = np.asarray(defaults, dtype=np.float64)[None, :, None]
        return np.where(np.isnan(stacked), fallback, stacked)


def _is_repeated(stages: Indices, columns: Indices, count: int) -> Flags:
    """Whether an earlier row has the same stage and entity."""
    is_repeated = np.ones(len(stages), np.bool_)
    is_repeated[np.unique(stages * count + columns, return_index=True)[1]] = False
    return is_repeated


def _refuse_row(file: str, table: Table, id_column: str, is_wrong: Flags, problem: str) -> None:
    """Raise for the first row that is wrong."""
    for row in np.flatnonzero(is_wrong)[:1]:
        where = f"{id_column} {table[id_column][row]}, stage_id {table['stage_id'][row]}"
        raise NoiseModelError(file, where, problem)
