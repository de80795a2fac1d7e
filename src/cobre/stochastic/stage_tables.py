"""Tables with one row per entity and stage, as arrays."""

from collections.abc import Mapping, Sequence

import numpy as np

from cobre.core.arrays import Floats
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
        entity_ids, stage_ids = table[id_column].tolist(), table["stage_id"].tolist()
        values = np.stack([table[name] for name in self._columns])
        for row, (entity_id, stage_id) in enumerate(zip(entity_ids, stage_ids, strict=True)):
            where = f"{id_column} {entity_id}, stage_id {stage_id}"
            if entity_id not in position:
                raise NoiseModelError(file, where, f"no such {id_column}; give an id of the system files")
            target = self._rows.setdefault(stage_id, np.full((len(self._columns), self._count), np.nan))
            if not np.isnan(target[0, position[entity_id]]):
                raise NoiseModelError(file, where, "two rows; keep one")
            if not np.isfinite(values[:, row]).all():
                raise NoiseModelError(file, where, f"{', '.join(self._columns)} must be finite numbers")
            target[:, position[entity_id]] = values[:, row]

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
