"""Loads and availability factors: normal around a mean, without memory."""

import numpy as np

from cobre.core.arrays import Flags, Floats
from cobre.core.case import Case, Table
from cobre.core.file_names import LOAD_STATS_FILE, SOURCE_STATS_FILE
from cobre.records import dataclass
from cobre.stochastic import NoiseModelError
from cobre.stochastic.external import ExternalLibrary
from cobre.stochastic.layout import StageTable


@dataclass(frozen=True, slots=True)
class IndependentNoise:
    """Normal noise without memory. mean, std: (stage, entity). has_noise: entities in the noise vector."""

    entity_ids: tuple[int, ...]
    mean: Floats
    std: Floats
    has_noise: Flags

    def of_library(self, library: ExternalLibrary) -> "IndependentNoise":
        """Return a copy with the statistics of an external library, for the entities that it has."""
        columns = [self.entity_ids.index(entity_id) for entity_id in library.entity_ids]
        mean, std, has_noise = self.mean.copy(), self.std.copy(), self.has_noise.copy()
        mean[:, columns], std[:, columns], has_noise[columns] = library.mean(), library.std(), True
        self.check_entities(library)
        return IndependentNoise(self.entity_ids, mean, std, has_noise)

    def check_entities(self, library: ExternalLibrary) -> None:
        """Raise for a library that lacks an entity with noise."""
        for entity_id, is_random in zip(self.entity_ids, self.has_noise, strict=True):
            if is_random and entity_id not in library.entity_ids:
                raise NoiseModelError(
                    library.file, f"id {entity_id}", "has noise but no external scenarios; add rows for it"
                )


def load_class(case: Case) -> IndependentNoise:
    """Return loads in MW; no row: no load. Buses with a deviation above 0 at some stage have noise."""
    bus_ids = tuple(bus.id for bus in case.system.buses)
    columns = ("mean_mw", "std_mw")
    values = _values(case, LOAD_STATS_FILE, case.scenarios.load_seasonal_stats, "bus_id", columns, bus_ids, (0.0, 0.0))
    return IndependentNoise(bus_ids, values[:, 0], values[:, 1], np.asarray((values[:, 1] > 0.0).any(axis=0)))


def availability_class(case: Case) -> IndependentNoise:
    """Return availability factors; no row: 1. Sources with any row have noise, even of deviation 0."""
    table = case.scenarios.non_controllable_stats
    ncs_ids = tuple(source.id for source in case.system.non_controllable_sources)
    values = _values(case, SOURCE_STATS_FILE, table, "ncs_id", ("mean", "std"), ncs_ids, (1.0, 0.0))
    named = set() if table is None else set(table["ncs_id"].tolist())
    has_noise = np.array([ncs_id in named for ncs_id in ncs_ids], dtype=np.bool_)
    return IndependentNoise(ncs_ids, values[:, 0], values[:, 1], has_noise)


def _values(
    case: Case,
    file: str,
    table: Table | None,
    id_column: str,
    columns: tuple[str, str],
    ids: tuple[int, ...],
    defaults: tuple[float, float],
) -> Floats:
    stage_table = StageTable(file, table, id_column, columns, ids)
    return stage_table.over([stage.id for stage in case.horizon.stages], defaults)
