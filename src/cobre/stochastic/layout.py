"""The layout of a noise vector: hydros, then buses with random load, then sources."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cobre.core.arrays import Flags, Floats, Indices, distinct_values
from cobre.core.case import Table
from cobre.records import dataclass
from cobre.stochastic import NoiseModelError


@dataclass(frozen=True, slots=True)
class NoiseLayout:
    """Ids by class, in the order of the vector, and the positions of buses and sources among all of their class."""

    hydro_ids: tuple[int, ...]
    bus_ids: tuple[int, ...]
    ncs_ids: tuple[int, ...]
    bus_positions: NDArray[np.intp]
    ncs_positions: NDArray[np.intp]

    @property
    def dimension(self) -> int:
        """The number of entries of a noise vector."""
        return len(self.hydro_ids) + len(self.bus_ids) + len(self.ncs_ids)

    @property
    def inflow(self) -> slice:
        """The hydros' part of a noise vector."""
        return slice(0, len(self.hydro_ids))

    @property
    def load(self) -> slice:
        """The part of a noise vector for loads."""
        return slice(len(self.hydro_ids), len(self.hydro_ids) + len(self.bus_ids))

    @property
    def ncs(self) -> slice:
        """The part of a noise vector for non-controllable sources."""
        return slice(len(self.hydro_ids) + len(self.bus_ids), self.dimension)

    def part(self, entity_class: str) -> slice:
        """Return the part of a class: inflow, load or ncs."""
        return {"inflow": self.inflow, "load": self.load, "ncs": self.ncs}[entity_class]

    def positions(self) -> dict[tuple[str, int], int]:
        """Return the position of every (class, id) that has noise."""
        keys = [("inflow", i) for i in self.hydro_ids]
        keys += [("load", i) for i in self.bus_ids] + [("ncs", i) for i in self.ncs_ids]
        return {key: position for position, key in enumerate(keys)}


def noise_layout(
    hydro_ids: Sequence[int],
    bus_ids: Sequence[int],
    has_random_load: Flags,
    ncs_ids: Sequence[int],
    has_statistics: Flags,
) -> NoiseLayout:
    """Return the layout of a study from what its buses and sources have."""
    buses, sources = np.flatnonzero(has_random_load), np.flatnonzero(has_statistics)
    return NoiseLayout(
        tuple(hydro_ids),
        tuple(bus_ids[i] for i in buses.tolist()),
        tuple(ncs_ids[i] for i in sources.tolist()),
        buses,
        sources,
    )


# Tables with one row per entity and stage, as arrays.


class StageTable:
    """Values of one column family by stage id, each an array over entities; NaN without a row."""

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
        stages, entities = distinct_values(stage_ids), distinct_values(entity_ids)
        at_stage, at_entity = stages.searchsorted(stage_ids), entities.searchsorted(entity_ids)
        columns = np.array([position.get(entity_id, -1) for entity_id in entities.tolist()], np.intp)[at_entity]
        _refuse_row(file, table, id_column, columns < 0, f"no such {id_column}; give an id of the system files")
        _refuse_row(file, table, id_column, _is_repeated(at_stage, columns, self._count), "two rows; keep one")
        problem = f"{', '.join(self._columns)} must be finite numbers"
        _refuse_row(file, table, id_column, ~np.isfinite(values).all(axis=0), problem)
        by_stage = np.full((len(stages), len(self._columns), self._count), np.nan)
        by_stage[at_stage, :, columns] = values.T
        self._rows = dict(zip(stages.tolist(), by_stage, strict=True))

    @property
    def stage_ids(self) -> list[int]:
        """The stages that have rows, in order."""
        return sorted(self._rows)

    def at(self, stage_id: int) -> Floats:
        """Return the values of one stage: one row per column, one column per entity."""
        values = self._rows.get(stage_id)
        return np.full((len(self._columns), self._count), np.nan) if values is None else values

    def over(self, stage_ids: Sequence[int], defaults: Sequence[float]) -> Floats:
        """Return the values of many stages, (stage, column, entity), with defaults where there is no row."""
        stacked = np.full((len(stage_ids), len(self._columns), self._count), np.nan)
        for index, stage_id in enumerate(stage_ids):
            stacked[index] = self.at(stage_id)
        fallback = np.asarray(defaults, dtype=np.float64)[None, :, None]
        return np.where(np.isnan(stacked), fallback, stacked)


def _is_repeated(stages: Indices, columns: Indices, count: int) -> Flags:
    """Return whether an earlier row has the same stage and entity."""
    rows = stages * count + columns
    is_repeated = np.zeros(len(rows), np.bool_)
    if len(distinct_values(rows)) < len(rows):
        is_repeated[:] = True
        is_repeated[np.unique(rows, return_index=True)[1]] = False
    return is_repeated


def _refuse_row(file: str, table: Table, id_column: str, is_wrong: Flags, problem: str) -> None:
    """Raise for the first row that is wrong."""
    for row in np.flatnonzero(is_wrong)[:1]:
        where = f"{id_column} {table[id_column][row]}, stage_id {table['stage_id'][row]}"
        raise NoiseModelError(file, where, problem)
