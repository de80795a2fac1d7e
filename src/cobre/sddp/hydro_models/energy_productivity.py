"""Energy of water, in a plant and down the cascade.

Energies serve generic constraints (computed parameters) and energy columns of results; the LP does not read them.
"""

import math
from collections.abc import Iterator, Mapping

from cobre.core.arrays import sum_in_order
from cobre.core.case import ABSENT_ID, Case, Table
from cobre.core.hydro import Hydro, ProductionChoice
from cobre.core.temporal import Stage
from cobre.errors import CobreError
from cobre.sddp.hydro_models.production_function import net_head_m, tailrace_m
from cobre.sddp.hydro_models.reservoir import ReservoirGeometry

# Default share of the useful volume.
DEFAULT_REFERENCE_SHARE = 0.65
EQUIVALENT = "equivalent_productivity_mw_per_m3s"
INTEGRATED = "integrated_equivalent_productivity_mw_per_m3s"


class NoProductivityError(CobreError, ValueError):
    """A productivity that no file gives."""


class EnergyProductivity:
    """Productivities of all plants, by hydro id and stage: MW per m3/s, specific ones MW per m3/s and metre of head."""

    def __init__(self, case: Case, geometry: Mapping[int, ReservoirGeometry]) -> None:
        self._hydros = {hydro.id: hydro for hydro in case.system.hydros}
        self._models = case.production
        self._table = ProductivityTable(case.production.energy_productivity)
        self._geometry = geometry
        # Format 0.19 has a column of its own for what 0.18 takes from the column of equivalent productivities.
        self._integrated_column = EQUIVALENT if case.format_version == "0.18" else INTEGRATED

    def specific(self, hydro_id: int, stage: Stage) -> float:
        """Return MW per m3/s and metre: the table's, or the plant's own."""
        value = self._specific_or_none(self._hydros[hydro_id], stage)
        if value is None:
            raise NoProductivityError(f"hydro {hydro_id} has no specific_productivity_mw_per_m3s_per_m")
        return value

    def reference_volume_hm3(self, hydro_id: int, stage: Stage) -> float:
        """Return the volume at which productivities are taken, hm3."""
        hydro = self._hydros[hydro_id]
        return reference_volume_hm3(self._models.choice_for(hydro, stage), hydro)

    def reference_turbine_m3s(self, hydro_id: int, stage: Stage) -> float:
        """Return the table's reference outflow, or all that the plant can turbine, m3/s."""
        value = self._from_table("reference_outflow_m3s", hydro_id, stage)
        return self._hydros[hydro_id].generation.max_turbined_m3s if value is None else value

    def equivalent(self, hydro_id: int, stage: Stage) -> float:
        """Return MW per m3/s: as given, else at the reference volume with all machines running."""
        hydro = self._hydros[hydro_id]
        override = self._given(hydro, stage)
        if override is not None:
            return override
        if hydro_id not in self._geometry:
            raise NoProductivityError(f"hydro {hydro_id} has neither a productivity nor a geometry in stage {stage.id}")
        level_m = self._geometry[hydro_id].height_at(self.reference_volume_hm3(hydro_id, stage))
        return self.specific(hydro_id, stage) * self._net_head(hydro, level_m)

    def accumulated(self, hydro_id: int, stage: Stage) -> float:
        """Return MW per m3/s released here, over all plants down to the end of the cascade."""
        return sum_in_order(self.equivalent(part, stage) for part in self._downstream_path(hydro_id))

    def integrated_equivalent(self, hydro_id: int, stage: Stage) -> float:
        """Return `equivalent` with the mean level between least and most storage, where there is a geometry."""
        hydro = self._hydros[hydro_id]
        from_table = self._from_table(self._integrated_column, hydro_id, stage)
        specific, geometry = self._specific_or_none(hydro, stage), self._geometry.get(hydro_id)
        if from_table is not None or specific is None or geometry is None:
            return self.equivalent(hydro_id, stage) if from_table is None else from_table
        level_m = geometry.mean_height(hydro.reservoir.min_storage_hm3, hydro.reservoir.max_storage_hm3)
        return specific * self._net_head(hydro, level_m)

    def integrated_accumulated(self, hydro_id: int, stage: Stage) -> float:
        """Return `accumulated` over integrated productivities."""
        return sum_in_order(self.integrated_equivalent(part, stage) for part in self._downstream_path(hydro_id))

    def max_stored_energy(self, hydro_id: int, stage: Stage) -> float:
        """Return the energy of the useful volume down the cascade, in MW per m3/s times hm3."""
        reservoir = self._hydros[hydro_id].reservoir
        return self.integrated_accumulated(hydro_id, stage) * (reservoir.max_storage_hm3 - reservoir.min_storage_hm3)

    def _given(self, hydro: Hydro, stage: Stage) -> float | None:
        choice = self._models.choice_for(hydro, stage)
        if choice.model != "fpha" and choice.productivity_mw_per_m3s is not None:
            return choice.productivity_mw_per_m3s
        return self._from_table(EQUIVALENT, hydro.id, stage)

    def _specific_or_none(self, hydro: Hydro, stage: Stage) -> float | None:
        value = self._from_table("specific_productivity_mw_per_m3s_per_m", hydro.id, stage)
        return hydro.specific_productivity_mw_per_m3s_per_m if value is None else value

    def _net_head(self, hydro: Hydro, level_m: float) -> float:
        return net_head_m(hydro, level_m - tailrace_m(hydro, hydro.generation.max_turbined_m3s))

    def _from_table(self, name: str, hydro_id: int, stage: Stage) -> float | None:
        return self._table.value(name, hydro_id, stage.id)

    def _downstream_path(self, hydro_id: int) -> Iterator[int]:
        at: int | None = hydro_id
        while at is not None:
            yield at
            at = self._hydros[at].downstream_id


def reference_volume_hm3(choice: ProductionChoice, hydro: Hydro) -> float:
    """Return the volume at which a plant's level counts: as its choice says, or a share of its useful volume."""
    minimum, maximum = hydro.reservoir.min_storage_hm3, hydro.reservoir.max_storage_hm3
    reference = choice.reference_volume
    if reference is not None and reference.volume_hm3 is not None:
        return reference.volume_hm3
    share = DEFAULT_REFERENCE_SHARE if reference is None or reference.percentile is None else reference.percentile
    return minimum + share * (maximum - minimum)


class ProductivityTable:
    """Rows of hydro_energy_productivity.parquet by hydro and stage, each column read once."""

    def __init__(self, table: Table | None) -> None:
        self._table = table
        self._columns: dict[str, dict[tuple[int, int], float]] = {}

    def value(self, name: str, hydro_id: int, stage_id: int) -> float | None:
        """Return a column's number in the row of the stage, or in that of all stages; None if neither has one."""
        if self._table is None:
            return None
        if name not in self._columns:
            self._columns[name] = _by_hydro_and_stage(self._table, name)
        column = self._columns[name]
        productivity = column.get((hydro_id, stage_id))
        return column.get((hydro_id, ABSENT_ID)) if productivity is None else productivity


def _by_hydro_and_stage(table: Table, name: str) -> dict[tuple[int, int], float]:
    """Return the number of the first row of each hydro and stage, unless it is missing."""
    first: dict[tuple[int, int], float] = {}
    for *key, value in zip(table["hydro_id"].tolist(), table["stage_id"].tolist(), table[name].tolist(), strict=True):
        first.setdefault((key[0], key[1]), value)
    return {key: value for key, value in first.items() if not math.isnan(value)}
