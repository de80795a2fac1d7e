"""The openings: the realisations of each stage that backward passes solve, all equally likely."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from cobre.core.arrays import Floats, Indices, distinct_values
from cobre.core.case import Table
from cobre.core.file_names import OPENINGS_FILE, STAGES_FILE
from cobre.core.temporal import Stage
from cobre.records import dataclass
from cobre.stochastic import NoiseModelError
from cobre.stochastic.correlation import CorrelationProfiles, group_leaders
from cobre.stochastic.layout import NoiseLayout
from cobre.stochastic.random.pcg64 import Pcg64Sequence, Pcg64Streams, norm_quantile, standard_normals
from cobre.stochastic.random.point_sets import (
    gray_rank,
    halton,
    halton_points,
    latin_hypercube,
    shuffled,
    sobol,
    sobol_points,
)
from cobre.stochastic.random.seeds import forward_seeds, grouped_forward_seeds, opening_seeds

# Independent standard normals (opening, entity) of a stage, from (tree seed, stage id, openings, dimension).
Design = Callable[[int, int, int, int], Floats]

HISTORICAL_RESIDUALS = "historical_residuals"


@dataclass(frozen=True, slots=True)
class TreePlan:
    """Inputs of the openings. `limits`: most openings by stage; `residuals` (stage, window, hydro): of history."""

    seed: int
    layout: NoiseLayout
    correlation: CorrelationProfiles
    limits: Sequence[int] | None = None
    residuals: Floats | None = None


def generated_openings(plan: TreePlan, stages: Sequence[Stage]) -> tuple[Floats, ...]:
    """Draw openings for every stage; stages of one noise group use the seed of the group's first."""
    leaders = group_leaders(stages)
    counts = [opening_count(stage) for stage in stages]
    if plan.limits is not None:
        counts = [min(count, limit) for count, limit in zip(counts, plan.limits, strict=True)]
    return tuple(
        _openings_of(plan, stages[leader], leader, count) for leader, count in zip(leaders, counts, strict=True)
    )


def _openings_of(plan: TreePlan, leader: Stage, index: int, count: int) -> Floats:
    if leader.sampling_method == HISTORICAL_RESIDUALS and plan.residuals is not None:
        return _from_residuals(plan, leader, plan.residuals[index], count)
    design = _DESIGNS.get(leader.sampling_method)
    if design is None:
        raise NoiseModelError(
            STAGES_FILE,
            f"stage {leader.id}, sampling_method",
            f"{leader.sampling_method!r} cannot generate openings; use one of {', '.join(_DESIGNS)}",
        )
    return plan.correlation.apply(leader.id, design(plan.seed, leader.id, count, plan.layout.dimension))


def _from_residuals(plan: TreePlan, leader: Stage, residuals: Floats, count: int) -> Floats:
    """Take inflow noise of past years, a year per opening and no more openings than years; draw the rest."""
    count = min(count, len(residuals))
    noise = independent_draws(plan.seed, leader.id, count, plan.layout.dimension)
    years = opening_seeds(plan.seed, np.arange(count), leader.id) % np.uint64(len(residuals))
    noise[:, plan.layout.inflow] = residuals[years.astype(np.int64)]
    for part in (plan.layout.load, plan.layout.ncs):
        plan.correlation.apply(leader.id, noise, part)
    return noise


def opening_count(stage: Stage) -> int:
    """Return the number of openings of a stage, at least one."""
    if stage.num_openings is None:
        return 1  # a node has one realisation, which external scenarios give
    if stage.num_openings < 1:
        raise NoiseModelError(
            STAGES_FILE, f"stage {stage.id}, num_openings", f"is {stage.num_openings}; give at least 1"
        )
    return stage.num_openings


def independent_draws(seed: int, stage_id: int, count: int, dimension: int) -> Floats:
    """Draw by plain Monte Carlo: every opening has a generator of its own."""
    return standard_normals(Pcg64Streams(opening_seeds(seed, np.arange(count), stage_id)), dimension)


def openings_from_file(table: Table | None, stages: Sequence[Stage], dimension: int) -> tuple[Floats, ...]:
    """Return the openings of a table; each stage must be there with all of its openings and entities."""
    if table is None:
        raise NoiseModelError(OPENINGS_FILE, "file", "missing, though scenario_source.openings says 'file'")
    stage_ids = {stage.id for stage in stages}
    for stage_id in distinct_values(table["stage_id"]).tolist():
        if stage_id not in stage_ids:
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
            OPENINGS_FILE, where, f"indices must be below {count} (opening_index) and {dimension} (entity_index)"
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


# Out-of-sample noise, drawn for each scenario.
#
# Each class of entities has its own seed, and each noise group of stages one draw, by the stage's sampling method:
# independently, or so that the scenarios of an iteration form a Latin hypercube, Sobol or Halton points.


@dataclass(frozen=True, slots=True)
class OutOfSampleDraw:
    """Key of a draw: seed of the class, iteration, noise group, total number of scenarios, numbers per scenario."""

    seed: int
    iteration: int
    group: int
    total: int
    dimension: int


def check_methods(stages: Sequence[Stage]) -> None:
    """Raise for stages whose sampling method draws no out-of-sample noise."""
    for stage in stages:
        if stage.sampling_method not in _METHODS:
            raise NoiseModelError(
                STAGES_FILE,
                f"stage {stage.id}, sampling_method",
                f"{stage.sampling_method!r} cannot draw noise outside the openings; use one of {', '.join(_METHODS)}",
            )


def out_of_sample_noise(stage: Stage, draw: OutOfSampleDraw, scenarios: Indices) -> Floats:
    """Draw standard normals (scenario, number) by the sampling method of a stage."""
    if len(scenarios) and int(scenarios.max()) >= draw.total:
        raise ValueError(f"scenario {scenarios.max()} of {draw.total}")
    return _METHODS[stage.sampling_method](draw, scenarios)


def independent(draw: OutOfSampleDraw, scenarios: Indices) -> Floats:
    """Draw independently: each scenario has its own generator (sampling method `saa`)."""
    seeds = grouped_forward_seeds(draw.seed, draw.iteration, scenarios, draw.group)
    return standard_normals(Pcg64Streams(seeds), draw.dimension)


def stratified(draw: OutOfSampleDraw, scenarios: Indices) -> Floats:
    """Draw one Latin hypercube for all scenarios of an iteration; each draws its own point inside its intervals."""
    common = Pcg64Sequence(_shared_seed(draw))
    inside = Pcg64Streams(forward_seeds(draw.seed, draw.iteration, scenarios, draw.group))
    values = np.empty((len(scenarios), draw.dimension))
    for column in range(draw.dimension):
        interval = shuffled(common, draw.total)[scenarios]
        values[:, column] = norm_quantile((interval + inside.next_range_unit()) / draw.total)
    return values


def sobol_of_scenarios(draw: OutOfSampleDraw, scenarios: Indices) -> Floats:
    """Return the Sobol point with the scenario's number, in natural order."""
    return sobol_points(_shared_seed(draw), gray_rank(scenarios), draw.dimension)


def halton_of_scenarios(draw: OutOfSampleDraw, scenarios: Indices) -> Floats:
    """Return the Halton point with the scenario's number."""
    return halton_points(_shared_seed(draw), scenarios, draw.dimension)


def _shared_seed(draw: OutOfSampleDraw) -> int:
    return int(opening_seeds(draw.seed, draw.iteration, draw.group)[0])


_METHODS: Mapping[str, Callable[[OutOfSampleDraw, Indices], Floats]] = {
    "saa": independent,
    "lhs": stratified,
    "qmc_sobol": sobol_of_scenarios,
    "qmc_halton": halton_of_scenarios,
}
