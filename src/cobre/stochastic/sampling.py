"""Draws the noise of scenarios, stage by stage, for forward passes and simulations.

Values only depend on (seed, iteration, scenario, stage), so any rank can draw any scenario. Classes of entities
(inflow, load, sources) may follow different schemes.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from cobre.core.arrays import Floats, Indices, distinct_values
from cobre.core.case import Case, Correlation
from cobre.core.config import NOISE_CLASSES, ScenarioSource
from cobre.core.file_names import CONFIG_FILE, CORRELATION_FILE, HISTORY_FILE
from cobre.core.temporal import Stage
from cobre.records import dataclass
from cobre.stochastic import NoiseModelError
from cobre.stochastic.correlation import CorrelationProfiles, correlation_profiles, group_leaders, group_numbers
from cobre.stochastic.external import (
    ExternalLibrary,
    external_library,
    historical_library,
    inflow_noise,
    memoryless_noise,
)
from cobre.stochastic.independent_noise import IndependentNoise
from cobre.stochastic.layout import NoiseLayout
from cobre.stochastic.opening_tree import (
    HISTORICAL_RESIDUALS,
    OutOfSampleDraw,
    TreePlan,
    check_methods,
    generated_openings,
    openings_from_file,
    out_of_sample_noise,
)
from cobre.stochastic.par.model import InflowMemory, InflowModel
from cobre.stochastic.par.seasons import season_cycle
from cobre.stochastic.random.pcg64 import Pcg64Streams
from cobre.stochastic.random.point_sets import choose
from cobre.stochastic.random.seeds import (
    EXTERNAL_BASE,
    HISTORICAL_BASE,
    as_indices,
    as_seed,
    class_forward_seed,
    forward_seeds,
)

MAX_DRAWN = 1 << 13  # choices at once, beyond one iteration: arrays of that size stay in the cache


class Scheme(ABC):
    """A sampling scheme: in sample, out of sample, or the replay of a library."""

    @abstractmethod
    def sample(self, iteration: int, scenarios: Indices, stage: int) -> Floats:
        """Return noise vectors (scenario, entity) over all classes."""


class InSample(Scheme):
    """Scheme in which every scenario draws one of the openings at each stage, independently.

    A draw only depends on its iteration, scenario and stage, so choices are made for all stages at once, and for some
    iterations ahead when the same scenarios are drawn again: many at once cost little more than one.
    """

    def __init__(self, openings: Sequence[Floats], tree_seed: int) -> None:
        self._openings = openings
        self._tree_seed = tree_seed
        self._scenarios = b""  # for which, and for which iterations, the choices were made that are kept
        self._iterations = range(0)
        self._chosen: dict[int, Indices] = {}  # by stage: iterations x scenarios

    def opening_indices(self, iteration: int, scenarios: Indices, stage: int) -> Indices:
        """Return by scenario the index (from 0) of the opening that it draws at a stage."""
        key = scenarios.tobytes()
        if self._scenarios != key or iteration not in self._iterations:
            is_next = self._scenarios == key and iteration == self._iterations.stop
            ahead = MAX_DRAWN // max(1, len(scenarios) * len(self._openings)) if is_next else 1
            self._scenarios, self._iterations = key, range(iteration, iteration + max(1, ahead))
            self._chosen = self._draw(self._iterations, scenarios)
        chosen: Indices = self._chosen[stage][iteration - self._iterations.start]
        return chosen

    def sample(self, iteration: int, scenarios: Indices, stage: int) -> Floats:
        """Return the vectors of the chosen openings."""
        return self._openings[stage][self.opening_indices(iteration, scenarios, stage)]

    def _draw(self, iterations: range, scenarios: Indices) -> dict[int, Indices]:
        counts = np.array([len(openings) for openings in self._openings])
        chosen: dict[int, Indices] = {}
        for count in distinct_values(counts).tolist():
            stages = np.flatnonzero(counts == count)
            arguments = np.array(iterations)[None, :, None], scenarios[None, None, :], stages[:, None, None]
            seeds = forward_seeds(self._tree_seed, *arguments)
            choices = choose(Pcg64Streams(seeds.reshape(-1)), count).reshape(seeds.shape)
            chosen |= zip(stages.tolist(), choices, strict=True)
        return chosen


@dataclass(frozen=True, slots=True)
class OutOfSample(Scheme):
    """Fresh noise for every scenario of a class; `total` scenarios take part in each iteration."""

    layout: NoiseLayout
    entity_class: str
    seed: int
    total: int
    stages: Sequence[Stage]
    correlation: CorrelationProfiles

    def sample(self, iteration: int, scenarios: Indices, stage: int) -> Floats:
        """Draw noise of the stage's group, by the method of the group's first stage."""
        leader = self.stages[group_leaders(self.stages)[stage]]
        part = self.layout.part(self.entity_class)
        draw = OutOfSampleDraw(
            self.seed, iteration, group_numbers(self.stages)[stage], self.total, part.stop - part.start
        )
        noise = np.zeros((len(scenarios), self.layout.dimension))
        noise[:, part] = out_of_sample_noise(leader, draw, scenarios)
        return self.correlation.apply(leader.id, noise, part)


@dataclass(frozen=True, slots=True)
class Replay(Scheme):
    """Every scenario repeats one trajectory of a library from beginning to end."""

    layout: NoiseLayout
    entity_class: str
    base: int
    library: Floats

    def sample(self, iteration: int, scenarios: Indices, stage: int) -> Floats:
        """Return the noise of the chosen trajectories at a stage."""
        positions = forward_seeds(self.base, iteration, scenarios, 0) % np.uint64(self.library.shape[1])
        noise = np.zeros((len(scenarios), self.layout.dimension))
        noise[:, self.layout.part(self.entity_class)] = self.library[stage, positions.astype(np.int64)]
        return noise


class NoiseSampler:
    """The noise of scenarios, each class after its own scheme."""

    def __init__(self, layout: NoiseLayout, schemes: Mapping[str, Scheme]) -> None:
        self._layout = layout
        self._schemes = dict(schemes)
        self._is_in_sample = all(isinstance(scheme, InSample) for scheme in self._schemes.values())

    @property
    def is_in_sample(self) -> bool:
        """Whether all noise comes from the openings."""
        return self._is_in_sample

    @property
    def is_representative(self) -> bool:
        """Whether all openings are drawn equally often: then the mean cost of paths is that of the policy."""
        return self._is_in_sample

    def sample(self, iteration: int, scenarios: Sequence[int] | Indices, stage: int) -> Floats:
        """Return noise vectors (scenario, entity); `scenarios` are global numbers from 0, `stage` is an index."""
        numbers = as_indices(scenarios)
        noise = np.empty((len(numbers), self._layout.dimension))
        drawn: dict[int, Floats] = {}
        for entity_class, scheme in self._schemes.items():
            if id(scheme) not in drawn:
                drawn[id(scheme)] = scheme.sample(iteration, numbers, stage)
            part = self._layout.part(entity_class)
            noise[:, part] = drawn[id(scheme)][:, part]
        return noise

    def for_scenarios(self, total: int) -> "NoiseSampler":
        """Return a sampler for `total` scenarios in each iteration, with the same schemes: some draw all at once."""
        changed: dict[int, Scheme] = {id(scheme): _for_scenarios(scheme, total) for scheme in self._schemes.values()}
        return NoiseSampler(self._layout, {name: changed[id(scheme)] for name, scheme in self._schemes.items()})

    def opening_indices(self, iteration: int, scenarios: Sequence[int] | Indices, stage: int) -> Indices:
        """Return the opening of the stage that each scenario draws; only if all noise comes from the openings."""
        scheme = next(iter(self._schemes.values()))
        if not isinstance(scheme, InSample) or not self.is_in_sample:
            raise ValueError("opening_indices: some class is not sampled from the openings; use sample")
        return scheme.opening_indices(iteration, as_indices(scenarios), stage)


def _for_scenarios(scheme: Scheme, total: int) -> Scheme:
    return replace(scheme, total=total) if isinstance(scheme, OutOfSample) else scheme


# From `scenario_source` in config.json to openings and samplers.


@dataclass(frozen=True, slots=True)
class SourceData:
    """The models and data that sampling schemes draw from."""

    case: Case
    layout: NoiseLayout
    correlation: CorrelationProfiles
    inflow: InflowModel
    memory: InflowMemory
    load: IndependentNoise
    availability: IndependentNoise


def training_libraries(case: Case) -> dict[str, ExternalLibrary]:
    """Return the external libraries that training uses, by class."""
    source = case.config.training.scenario_source
    return {name: external_library(case, name) for name in NOISE_CLASSES if source.scheme(name) == "external"}


def correlation(case: Case, layout: NoiseLayout, estimated: Correlation | None) -> CorrelationProfiles:
    """Return profiles from the file, else from history, else none."""
    known = {
        "inflow": frozenset(hydro.id for hydro in case.system.hydros),
        "load": frozenset(bus.id for bus in case.system.buses),
        "ncs": frozenset(source.id for source in case.system.non_controllable_sources),
    }
    stage_ids = [stage.id for stage in case.horizon.stages]
    given = case.scenarios.correlation
    source = HISTORY_FILE if given is None else CORRELATION_FILE
    return correlation_profiles(given or estimated, stage_ids, layout.positions(), known, source)


def openings(data: SourceData, libraries: Mapping[str, ExternalLibrary]) -> tuple[Floats, ...]:
    """Return openings from the file, or generated; at most as many as external libraries have scenarios at a stage."""
    stages = data.case.horizon.stages
    training = data.case.config.training
    if training.scenario_source.has_openings_file:
        return openings_from_file(data.case.scenarios.noise_openings, stages, data.layout.dimension)
    counts = [library.counts for library in libraries.values()]
    limits = [min(of_stage) for of_stage in zip(*counts, strict=True)] if counts else None
    needs_history = any(stage.sampling_method == HISTORICAL_RESIDUALS for stage in stages)
    residuals = _historical_noise(data, training.scenario_source) if needs_history else None
    plan = TreePlan(as_seed(training.tree_seed), data.layout, data.correlation, limits, residuals)
    return generated_openings(plan, stages)


def sampler(data: SourceData, tree: tuple[Floats, ...], *, is_training: bool) -> NoiseSampler:
    """Return the sampler of forward passes, or of simulations."""
    config = data.case.config
    source = config.training.scenario_source
    if not is_training and config.simulation.scenario_source is not None:
        source = config.simulation.scenario_source
    is_enumerated = config.training.is_enumerated or (not is_training and config.simulation.is_enumerated)
    if is_enumerated:
        source = ScenarioSource()  # paths are those of a tree: nothing is drawn
    total = config.training.forward_passes if is_training else config.simulation.num_scenarios
    in_sample = InSample(tree, as_seed(config.training.tree_seed))
    schemes: dict[str, Scheme] = {}
    for entity_class in NOISE_CLASSES:
        name = source.scheme(entity_class)
        schemes[entity_class] = in_sample if name == "in_sample" else _scheme(data, source, entity_class, name, total)
    return NoiseSampler(data.layout, schemes)


def _scheme(data: SourceData, source: ScenarioSource, entity_class: str, name: str, total: int) -> Scheme:
    if name == "out_of_sample":
        seed = class_forward_seed(_seed(source, entity_class), entity_class)
        stages = data.case.horizon.stages
        check_methods(stages)
        return OutOfSample(data.layout, entity_class, seed, total, stages, data.correlation)
    if name == "external":
        return Replay(data.layout, entity_class, EXTERNAL_BASE, _external_noise(data, entity_class))
    if name == "historical" and entity_class == "inflow":
        return Replay(data.layout, entity_class, HISTORICAL_BASE, _historical_noise(data, source))
    raise NoiseModelError(
        CONFIG_FILE, f"scenario_source, {entity_class}, scheme", f"{name!r} is not possible for this class"
    )


def _seed(source: ScenarioSource, entity_class: str) -> int:
    if source.seed is None:
        raise NoiseModelError(
            CONFIG_FILE, "scenario_source, seed", f"missing; {entity_class} is 'out_of_sample' and needs one"
        )
    return as_seed(source.seed)


def _external_noise(data: SourceData, entity_class: str) -> Floats:
    """Return noise (stage, scenario, entity of the class that has noise)."""
    library = external_library(data.case, entity_class)
    if entity_class == "inflow":
        _require_all(library, data.layout.hydro_ids)
        return inflow_noise(data.inflow, data.memory, library.values, library.file, library.entity_ids)
    plain = data.load if entity_class == "load" else data.availability
    plain.check_entities(library)
    columns = [plain.entity_ids.index(entity_id) for entity_id in library.entity_ids]
    noise = memoryless_noise(
        plain.mean[:, columns], plain.std[:, columns], library.values, library.file, library.entity_ids
    )
    return noise[:, :, plain.has_noise[columns]]


def _require_all(library: ExternalLibrary, entity_ids: tuple[int, ...]) -> None:
    for entity_id in entity_ids:
        if entity_id not in library.entity_ids:
            raise NoiseModelError(library.file, f"hydro_id {entity_id}", "no external scenarios; add rows for it")


def _historical_noise(data: SourceData, source: ScenarioSource) -> Floats:
    cycle = season_cycle(data.case.horizon)
    library = historical_library(data.case, cycle, source.years)
    hydro_ids = data.layout.hydro_ids
    return inflow_noise(data.inflow, data.memory, library.values, HISTORY_FILE, hydro_ids)
