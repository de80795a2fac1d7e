"""External scenarios: libraries of trajectories that forward passes replay, one column of the table per scenario.

Backward passes still solve generated openings. These are scaled by the library's own mean and population deviation of
each stage (inflows with autoregressive terms keep the statistics of their model).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.core.case import Case, Table
from cobre.stochastic.errors import NoiseModelError
from cobre.stochastic.par.sample_statistics import ordered_sum

Floats = NDArray[np.float64]

_FORMATS = {
    "inflow": ("scenarios/external_inflow_scenarios.parquet", "hydro_id", "value_m3s"),
    "load": ("scenarios/external_load_scenarios.parquet", "bus_id", "value_mw"),
    "ncs": ("scenarios/external_ncs_scenarios.parquet", "ncs_id", "availability_factor"),
}


@dataclass(frozen=True, slots=True)
class ExternalLibrary:
    """`values` (stage, scenario, entity) for the entities with these ids."""

    file: str
    entity_ids: tuple[int, ...]
    values: Floats

    @property
    def count(self) -> int:
        """Scenarios in the library."""
        return int(self.values.shape[1])

    def mean(self) -> Floats:
        """Of each stage and entity."""
        return ordered_sum(np.swapaxes(self.values, 0, 1)) / self.count

    def std(self) -> Floats:
        """The population deviation of each stage and entity."""
        deviation = np.swapaxes(self.values, 0, 1) - self.mean()
        result: Floats = np.sqrt(ordered_sum(deviation * deviation) / self.count)
        return result


def external_library(case: Case, entity_class: str) -> ExternalLibrary:
    """The library of a class; every scenario must give every entity a value at every stage."""
    file, id_column, value_column = _FORMATS[entity_class]
    table = _table(case, entity_class)
    if table is None or not len(table[value_column]):
        raise NoiseModelError(file, "file", f"missing or empty, though scenario_source.{entity_class} is 'external'")
    entity_ids = _present(table[id_column], _ids(case, entity_class), file, id_column)
    stage_ids = [stage.id for stage in case.horizon.stages]
    _present(table["stage_id"], stage_ids, file, "stage_id")
    scenario_ids = np.unique(table["scenario_id"]).tolist()
    values = np.full((len(stage_ids), len(scenario_ids), len(entity_ids)), np.nan)
    places = tuple(
        np.searchsorted(known, table[column])
        for known, column in ((stage_ids, "stage_id"), (scenario_ids, "scenario_id"))
    )
    position = {entity_id: index for index, entity_id in enumerate(entity_ids)}
    entities = np.array([position[entity_id] for entity_id in table[id_column].tolist()])
    values[places[0], places[1], entities] = table[value_column]
    _check_complete(file, id_column, values, stage_ids, scenario_ids, entity_ids, len(table[value_column]))
    return ExternalLibrary(file, entity_ids, values)


def _table(case: Case, entity_class: str) -> Table | None:
    tables = case.scenarios
    return {
        "inflow": tables.external_inflow_scenarios,
        "load": tables.external_load_scenarios,
        "ncs": tables.external_ncs_scenarios,
    }[entity_class]


def _ids(case: Case, entity_class: str) -> list[int]:
    system = case.system
    return {
        "inflow": [hydro.id for hydro in system.hydros],
        "load": [bus.id for bus in system.buses],
        "ncs": [source.id for source in system.non_controllable_sources],
    }[entity_class]


def _present(column: NDArray[np.int32], known: Sequence[int], file: str, name: str) -> tuple[int, ...]:
    """The known ids that a column holds, in their own order; others are refused."""
    found = set(column.tolist())
    for unknown in sorted(found - set(known)):
        raise NoiseModelError(file, f"{name} {unknown}", "there is no such id in this study")
    return tuple(value for value in known if value in found)


def _check_complete(
    file: str,
    id_column: str,
    values: Floats,
    stage_ids: Sequence[int],
    scenario_ids: Sequence[int],
    entity_ids: Sequence[int],
    rows: int,
) -> None:
    missing = np.argwhere(~np.isfinite(values))
    if len(missing):
        stage, scenario, entity = missing[0]
        raise NoiseModelError(
            file,
            f"stage_id {stage_ids[stage]}, scenario_id {scenario_ids[scenario]}, {id_column} {entity_ids[entity]}",
            "no finite value; every scenario needs one for every stage and entity",
        )
    if rows != values.size:
        raise NoiseModelError(file, "rows", "two rows for the same stage, scenario and entity; give one")
