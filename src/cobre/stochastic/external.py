"""Replayed scenarios, external and historical, as noise that reproduces them.

Backward passes still solve generated openings. These are scaled by the library's own mean and population deviation of
each stage (inflows with autoregressive terms keep the statistics of their model).

A library may be ragged: a few weeks with one forecast, then a month with many scenarios. There are as many trajectories
as the richest stage has scenarios; trajectory k meets scenario k modulo n at a stage with n of them.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from cobre.core.arrays import Floats, Ints, distinct_values
from cobre.core.case import Case, Table
from cobre.core.file_names import (
    CONFIG_FILE,
    EXTERNAL_INFLOWS_FILE,
    EXTERNAL_LOADS_FILE,
    EXTERNAL_SOURCES_FILE,
    HISTORY_FILE,
)
from cobre.records import dataclass
from cobre.stochastic import NoiseModelError
from cobre.stochastic.par.model import InflowMemory, InflowModel
from cobre.stochastic.par.observations import Observations, observations
from cobre.stochastic.par.seasons import SeasonCycle, StagePeriods
from cobre.stochastic.par.statistics import ordered_sum

_FORMATS = {
    "inflow": (EXTERNAL_INFLOWS_FILE, "hydro_id", "value_m3s"),
    "load": (EXTERNAL_LOADS_FILE, "bus_id", "value_mw"),
    "ncs": (EXTERNAL_SOURCES_FILE, "ncs_id", "availability_factor"),
}


@dataclass(frozen=True, slots=True)
class ExternalLibrary:
    """`values` (stage, trajectory, entity) for the entities with these ids; `counts`: scenarios of each stage."""

    file: str
    entity_ids: tuple[int, ...]
    values: Floats
    counts: tuple[int, ...]

    def mean(self) -> Floats:
        """Return the mean over scenarios, by stage and entity."""
        return np.array([ordered_sum(values) / len(values) for values in self._by_stage()])

    def std(self) -> Floats:
        """Return the population deviation of each stage and entity."""
        return np.array([_deviation(values) for values in self._by_stage()])

    def _by_stage(self) -> Iterator[Floats]:
        """Yield the scenarios of each stage, without repetitions."""
        return (values[:count] for values, count in zip(self.values, self.counts, strict=True))


def _deviation(values: Floats) -> Floats:
    deviation = values - ordered_sum(values) / len(values)
    result: Floats = np.sqrt(ordered_sum(deviation * deviation) / len(values))
    return result


def external_library(case: Case, entity_class: str) -> ExternalLibrary:
    """Return the library of a class; every scenario of a stage must give every entity a value."""
    file, id_column, value_column = _FORMATS[entity_class]
    table = _table(case, entity_class)
    if table is None or not len(table[value_column]):
        raise NoiseModelError(file, "file", f"missing or empty, though scenario_source.{entity_class} is 'external'")
    entity_ids = _present(table[id_column], _ids(case, entity_class), file, id_column)
    stage_ids = [stage.id for stage in case.horizon.stages]
    _present(table["stage_id"], stage_ids, file, "stage_id")
    scenario_ids = distinct_values(table["scenario_id"]).tolist()
    values = np.full((len(stage_ids), len(scenario_ids), len(entity_ids)), np.nan)
    indices = tuple(
        np.searchsorted(known, table[column])
        for known, column in ((stage_ids, "stage_id"), (scenario_ids, "scenario_id"))
    )
    position = {entity_id: index for index, entity_id in enumerate(entity_ids)}
    entities = np.array([position[entity_id] for entity_id in table[id_column].tolist()])
    values[indices[0], indices[1], entities] = table[value_column]
    counts = tuple(int(known.any(axis=1).sum()) for known in ~np.isnan(values))
    _check_complete(_Shape(file, id_column, stage_ids, scenario_ids, entity_ids), values, counts)
    if len(table[value_column]) != sum(counts) * len(entity_ids):
        raise NoiseModelError(file, "rows", "two rows for the same stage, scenario and entity; keep one")
    for stage, count in enumerate(counts):
        values[stage] = values[stage, np.arange(len(scenario_ids)) % count]
    return ExternalLibrary(file, entity_ids, values, counts)


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


def _present(column: Ints, known: Sequence[int], file: str, name: str) -> tuple[int, ...]:
    """Return the known ids that a column holds, in their own order; others are refused."""
    declared = set(column.tolist())
    for unknown in sorted(declared - set(known)):
        raise NoiseModelError(file, f"{name} {unknown}", "there is no such id in this study")
    return tuple(value for value in known if value in declared)


@dataclass(frozen=True, slots=True)
class _Shape:
    """Axes of a library of scenarios."""

    file: str
    id_column: str
    stage_ids: Sequence[int]
    scenario_ids: Sequence[int]
    entity_ids: Sequence[int]


def _check_complete(shape: _Shape, values: Floats, counts: Sequence[int]) -> None:
    """Refuse a library unless each stage has its first scenarios, without a gap, for all entities."""
    for stage, count in enumerate(counts):
        missing = np.argwhere(~np.isfinite(values[stage, : max(1, count)]))
        if len(missing):
            scenario, entity = missing[0]
            raise NoiseModelError(
                shape.file,
                f"stage_id {shape.stage_ids[stage]}, scenario_id {shape.scenario_ids[scenario]}, "
                f"{shape.id_column} {shape.entity_ids[entity]}",
                "no finite value; every scenario of a stage, counted from 0, needs one for every entity",
            )


# Historical scenarios: years of observed inflows, replayed from the study's first season on.


@dataclass(frozen=True, slots=True)
class HistoricalLibrary:
    """`values` (stage, window, hydro) of the windows that start in these years."""

    years: tuple[int, ...]
    values: Floats


def historical_library(case: Case, cycle: SeasonCycle, wanted: tuple[int, ...] | None) -> HistoricalLibrary:
    """Return the windows that history covers for every hydro at every stage; `wanted` None: all of them."""
    history = observations(case, cycle)
    windows = {year: _window(case, cycle, history, year) for year in history.years}
    complete = tuple(year for year, values in windows.items() if np.isfinite(values).all())
    if wanted is not None:
        _refuse_missing(wanted, complete)
        complete = tuple(sorted(set(wanted)))
    if not complete:
        raise NoiseModelError(HISTORY_FILE, "years", "no year of history covers all hydros and seasons of the study")
    return HistoricalLibrary(complete, np.stack([windows[year] for year in complete], axis=1))


def _window(case: Case, cycle: SeasonCycle, history: Observations, year: int) -> Floats:
    """Return inflows (stage, hydro) as if the study had started in `year`."""
    occurrences = StagePeriods(case.horizon, cycle).of_stages
    return np.array([history.at(year + at.year - occurrences[0].year, at.position) for at in occurrences])


def _refuse_missing(wanted: tuple[int, ...], complete: tuple[int, ...]) -> None:
    missing = sorted(set(wanted) - set(complete))
    if missing:
        raise NoiseModelError(
            CONFIG_FILE,
            "scenario_source, historical_years",
            f"{', '.join(map(str, missing))}: history does not cover such a window; it covers those that start in "
            f"{', '.join(map(str, complete)) or 'no year'}",
        )


# Inverts the noise model: the noise vectors with which it reproduces given trajectories.

# Tolerance, relative to the values, for trajectories of a model without noise.
_SAME = 1e-9


def inflow_noise(model: InflowModel, memory: InflowMemory, values: Floats, file: str, ids: Sequence[int]) -> Floats:
    """Return noise (stage, trajectory, hydro) with which the model gives `values`, starting from the initial lags."""
    lags = np.repeat(memory.first[:, None, :], values.shape[1], axis=1)
    noise = np.zeros(values.shape)
    for stage, inflow in enumerate(values):
        expected = np.broadcast_to(model.base_m3s[stage], inflow.shape)
        for lag, past in enumerate(lags):
            expected = expected + memory.psi[stage, lag] * past
        noise[stage] = _invert(inflow, expected, model.sigma_m3s[stage], file, f"stage number {stage}", ids)
        lags = memory.after(stage, lags, inflow)
    return noise


def memoryless_noise(mean: Floats, std: Floats, values: Floats, file: str, ids: Sequence[int]) -> Floats:
    """Return noise (stage, trajectory, entity) with which mean and deviation (stage, entity) give `values`."""
    noise = np.zeros(values.shape)
    for stage, value in enumerate(values):
        expected = np.broadcast_to(mean[stage], value.shape)
        noise[stage] = _invert(value, expected, std[stage], file, f"stage number {stage}", ids)
    return noise


def _invert(values: Floats, expected: Floats, sigma: Floats, file: str, where: str, ids: Sequence[int]) -> Floats:
    difference = values - expected
    silent = sigma == 0.0
    unreachable = (silent & (np.abs(difference) > _SAME * np.maximum(1.0, np.abs(values)))).any(axis=0)
    if unreachable.any():
        entity_id = ids[int(np.flatnonzero(unreachable)[0])]
        raise NoiseModelError(
            file,
            f"id {entity_id}, {where}",
            "the model has no noise there (standard deviation 0) and cannot produce this value; give a standard "
            "deviation above 0, or use the same scheme for training",
        )
    result: Floats = np.where(silent, 0.0, difference / np.where(silent, 1.0, sigma))
    return result
