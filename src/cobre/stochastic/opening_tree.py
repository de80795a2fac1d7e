"""The openings: the realisations of each stage that backward passes solve, all equally likely."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cobre.core.case import Table
from cobre.core.temporal import Stage
from cobre.stochastic.correlation import CorrelationProfiles
from cobre.stochastic.errors import NoiseModelError
from cobre.stochastic.halton import halton
from cobre.stochastic.latin_hypercube import latin_hypercube
from cobre.stochastic.noise_groups import group_leaders
from cobre.stochastic.normal import standard_normals
from cobre.stochastic.pcg64 import Pcg64Streams
from cobre.stochastic.seeds import opening_seeds
from cobre.stochastic.sobol import sobol

Floats = NDArray[np.float64]
# Independent standard normals (opening, entity) of a stage, from (tree seed, stage id, openings, dimension).
Design = Callable[[int, int, int, int], Floats]

OPENINGS_FILE = "scenarios/noise_openings.parquet"
_STAGES_FILE = "stages.json"


def generated_openings(
    seed: int, stages: Sequence[Stage], dimension: int, correlation: CorrelationProfiles, limit: int | None = None
) -> tuple[Floats, ...]:
    """Draws for every stage, at most `limit` each; stages of one noise group use the seed of the group's first."""
    leaders = [stages[index] for index in group_leaders(stages)]
    counts = [min(opening_count(stage), limit or opening_count(stage)) for stage in stages]
    return tuple(
        _openings_of(seed, leader, count, dimension, correlation) for leader, count in zip(leaders, counts, strict=True)
    )


def _openings_of(seed: int, leader: Stage, count: int, dimension: int, correlation: CorrelationProfiles) -> Floats:
    design = _DESIGNS.get(leader.sampling_method)
    if design is None:
        raise NoiseModelError(
            _STAGES_FILE,
            f"stage {leader.id}, sampling_method",
            f"{leader.sampling_method!r} makes no openings here; use one of {', '.join(_DESIGNS)}",
        )
    return correlation.apply(leader.id, design(seed, leader.id, count, dimension))


def opening_count(stage: Stage) -> int:
    """How many openings a stage asks for; at least one is needed."""
    if stage.num_openings is None or stage.num_openings < 1:
        raise NoiseModelError(
            _STAGES_FILE, f"stage {stage.id}, num_openings", f"is {stage.num_openings}; give at least 1"
        )
    return stage.num_openings


def independent_draws(seed: int, stage_id: int, count: int, dimension: int) -> Floats:
    """Plain Monte Carlo: every opening has a generator of its own."""
    return standard_normals(Pcg64Streams(opening_seeds(seed, np.arange(count), stage_id)), dimension)


def openings_from_file(table: Table | None, stages: Sequence[Stage], dimension: int) -> tuple[Floats, ...]:
    """The openings of a table; each stage must be there with all of its openings and entities."""
    if table is None:
        raise NoiseModelError(OPENINGS_FILE, "file", "missing, though scenario_source.openings says 'file'")
    known = {stage.id for stage in stages}
    for stage_id in np.unique(table["stage_id"]).tolist():
        if stage_id not in known:
            raise NoiseModelError(OPENINGS_FILE, f"stage_id {stage_id}", "there is no such stage")
    return tuple(_stage_from_file(table, stage, dimension) for stage in stages)


def _stage_from_file(table: Table, stage: Stage, dimension: int) -> Floats:
    where, count = f"stage_id {stage.id}", opening_count(stage)
    rows = np.flatnonzero(table["stage_id"] == stage.id)
    opening = table["opening_index"][rows].astype(np.int64)
    entity = table["entity_index"][rows].astype(np.int64)
    if len(rows) != count * dimension:
        raise NoiseModelError(
            OPENINGS_FILE,
            where,
            f"has {len(rows)} rows; {count} openings of {dimension} entities need {count * dimension}",
        )
    if len(rows) and (opening.max() >= count or entity.max() >= dimension or min(opening.min(), entity.min()) < 0):
        raise NoiseModelError(
            OPENINGS_FILE, where, f"indices must lie below {count} (opening_index) and {dimension} (entity_index)"
        )
    values = np.full((count, dimension), np.nan)
    values[opening, entity] = table["value"][rows]
    if not np.isfinite(values).all():
        raise NoiseModelError(OPENINGS_FILE, where, "a pair of indices is missing, given twice, or has no finite value")
    return values


_DESIGNS: Mapping[str, Design] = {
    "saa": independent_draws,
    "lhs": latin_hypercube,
    "qmc_sobol": sobol,
    "qmc_halton": halton,
}
