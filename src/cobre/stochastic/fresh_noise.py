"""Noise that is drawn anew for every scenario, outside the openings.

Each class of entities has a seed of its own, and each noise group of stages one draw. The stage's sampling method
says how: independently, or so that the scenarios of an iteration form a Latin hypercube, Sobol or Halton points.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from cobre.core.arrays import Floats, Indices
from cobre.core.case_file_names import STAGES_FILE
from cobre.core.temporal import Stage
from cobre.records import dataclass
from cobre.stochastic.errors import NoiseModelError
from cobre.stochastic.random.halton import halton_points
from cobre.stochastic.random.latin_hypercube import shuffled
from cobre.stochastic.random.normal import standard_normals
from cobre.stochastic.random.pcg64 import Pcg64Sequence, Pcg64Streams
from cobre.stochastic.random.quantile import norm_quantile
from cobre.stochastic.random.seeds import forward_seeds, grouped_forward_seeds, opening_seeds
from cobre.stochastic.random.sobol import gray_rank, sobol_points


@dataclass(frozen=True, slots=True)
class FreshDraw:
    """Which draw: the class's seed, iteration and noise group, how many scenarios there are, numbers per scenario."""

    seed: int
    iteration: int
    group: int
    total: int
    dimension: int


def check_methods(stages: Sequence[Stage]) -> None:
    """Refuse stages whose sampling method draws no noise of its own."""
    for stage in stages:
        if stage.sampling_method not in _METHODS:
            raise NoiseModelError(
                STAGES_FILE,
                f"stage {stage.id}, sampling_method",
                f"{stage.sampling_method!r} cannot draw noise outside the openings; use one of {', '.join(_METHODS)}",
            )


def fresh_noise(stage: Stage, draw: FreshDraw, scenarios: Indices) -> Floats:
    """Standard normals (scenario, number) by the sampling method of a stage."""
    if len(scenarios) and int(scenarios.max()) >= draw.total:
        raise ValueError(f"scenario {scenarios.max()} of {draw.total}")
    return _METHODS[stage.sampling_method](draw, scenarios)


def independent(draw: FreshDraw, scenarios: Indices) -> Floats:
    """Independent draws: each scenario has a generator of its own (sampling method `saa`)."""
    seeds = grouped_forward_seeds(draw.seed, draw.iteration, scenarios, draw.group)
    return standard_normals(Pcg64Streams(seeds), draw.dimension)


def stratified(draw: FreshDraw, scenarios: Indices) -> Floats:
    """All scenarios of an iteration are one Latin hypercube; each draws its own point inside its intervals."""
    common = Pcg64Sequence(_shared_seed(draw))
    inside = Pcg64Streams(forward_seeds(draw.seed, draw.iteration, scenarios, draw.group))
    values = np.empty((len(scenarios), draw.dimension))
    for column in range(draw.dimension):
        interval = shuffled(common, draw.total)[scenarios]
        values[:, column] = norm_quantile((interval + inside.next_range_unit()) / draw.total)
    return values


def sobol_of_scenarios(draw: FreshDraw, scenarios: Indices) -> Floats:
    """The Sobol point with the scenario's number, in natural order."""
    return sobol_points(_shared_seed(draw), gray_rank(scenarios), draw.dimension)


def halton_of_scenarios(draw: FreshDraw, scenarios: Indices) -> Floats:
    """The Halton point with the scenario's number."""
    return halton_points(_shared_seed(draw), scenarios, draw.dimension)


def _shared_seed(draw: FreshDraw) -> int:
    return int(opening_seeds(draw.seed, draw.iteration, draw.group)[0])


_METHODS: Mapping[str, Callable[[FreshDraw, Indices], Floats]] = {
    "saa": independent,
    "lhs": stratified,
    "qmc_sobol": sobol_of_scenarios,
    "qmc_halton": halton_of_scenarios,
}
