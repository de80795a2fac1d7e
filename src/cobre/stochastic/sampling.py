"""Draws the noise of scenarios, stage by stage, for forward passes and simulations.

Values depend on (seed, iteration, scenario, stage) alone, so any rank can draw any scenario. Classes of entities
(inflow, load, sources) may follow different schemes.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from cobre.core.arrays import Floats, Indices
from cobre.core.temporal import Stage
from cobre.records import dataclass
from cobre.stochastic.correlation import CorrelationProfiles
from cobre.stochastic.fresh_noise import FreshDraw, fresh_noise
from cobre.stochastic.layout import NoiseLayout
from cobre.stochastic.noise_groups import group_leaders, group_numbers
from cobre.stochastic.random.pcg64 import Pcg64Streams
from cobre.stochastic.random.seeds import as_indices, forward_seeds
from cobre.stochastic.random.selection import choose

MAX_DRAWN = 1 << 13  # choices at once, beyond one iteration: arrays of that size stay in the cache


class Scheme(ABC):
    """A sampling scheme: in sample, out of sample, or the replay of a library."""

    @abstractmethod
    def sample(self, iteration: int, scenarios: Indices, stage: int) -> Floats:
        """Noise vectors (scenario, entity) over all classes."""


class InSample(Scheme):
    """Every scenario draws one of the stage's openings, anew at each stage.

    A draw depends on its iteration, scenario and stage alone, so choices are made for all stages at once, and for some
    iterations ahead when the same scenarios come again: many at once cost little more than one.
    """

    def __init__(self, openings: Sequence[Floats], tree_seed: int) -> None:
        self._openings = openings
        self._tree_seed = tree_seed
        self._scenarios = b""  # for which, and for which iterations, the choices were made that are kept
        self._iterations = range(0)
        self._chosen: dict[int, Indices] = {}  # by stage: iterations x scenarios

    def opening_indices(self, iteration: int, scenarios: Indices, stage: int) -> Indices:
        """By scenario: the index (from 0) of the opening that it draws at a stage."""
        same = scenarios.tobytes()
        if self._scenarios != same or iteration not in self._iterations:
            is_next = self._scenarios == same and iteration == self._iterations.stop
            ahead = MAX_DRAWN // max(1, len(scenarios) * len(self._openings)) if is_next else 1
            self._scenarios, self._iterations = same, range(iteration, iteration + max(1, ahead))
            self._chosen = self._draw(self._iterations, scenarios)
        chosen: Indices = self._chosen[stage][iteration - self._iterations.start]
        return chosen

    def sample(self, iteration: int, scenarios: Indices, stage: int) -> Floats:
        """The vectors of the chosen openings."""
        return self._openings[stage][self.opening_indices(iteration, scenarios, stage)]

    def _draw(self, iterations: range, scenarios: Indices) -> dict[int, Indices]:
        counts = np.array([len(openings) for openings in self._openings])
        chosen: dict[int, Indices] = {}
        for count in np.unique(counts).tolist():
            stages = np.flatnonzero(counts == count)
            arguments = np.array(iterations)[None, :, None], scenarios[None, None, :], stages[:, None, None]
            seeds = forward_seeds(self._tree_seed, *arguments)
            drawn = choose(Pcg64Streams(seeds.reshape(-1)), count).reshape(seeds.shape)
            chosen |= zip(stages.tolist(), drawn, strict=True)
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
        """Draws of the stage's noise group, by the method of the group's first stage."""
        leader = self.stages[group_leaders(self.stages)[stage]]
        part = self.layout.part(self.entity_class)
        draw = FreshDraw(self.seed, iteration, group_numbers(self.stages)[stage], self.total, part.stop - part.start)
        noise = np.zeros((len(scenarios), self.layout.dimension))
        noise[:, part] = fresh_noise(leader, draw, scenarios)
        return self.correlation.apply(leader.id, noise, part)


@dataclass(frozen=True, slots=True)
class Replay(Scheme):
    """Every scenario repeats one trajectory of a library from beginning to end."""

    layout: NoiseLayout
    entity_class: str
    base: int
    library: Floats

    def sample(self, iteration: int, scenarios: Indices, stage: int) -> Floats:
        """The noise of the chosen trajectories at a stage."""
        chosen = forward_seeds(self.base, iteration, scenarios, 0) % np.uint64(self.library.shape[1])
        noise = np.zeros((len(scenarios), self.layout.dimension))
        noise[:, self.layout.part(self.entity_class)] = self.library[stage, chosen.astype(np.int64)]
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

    def sample(self, iteration: int, scenarios: Sequence[int] | Indices, stage: int) -> Floats:
        """Noise vectors (scenario, entity); `scenarios` are global numbers from 0, `stage` is an index."""
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
        """A sampler for `total` scenarios in each iteration, with the same schemes: some draw all of them at once."""
        changed: dict[int, Scheme] = {id(scheme): _for_scenarios(scheme, total) for scheme in self._schemes.values()}
        return NoiseSampler(self._layout, {name: changed[id(scheme)] for name, scheme in self._schemes.items()})

    def opening_indices(self, iteration: int, scenarios: Sequence[int] | Indices, stage: int) -> Indices:
        """Which opening of the stage each scenario draws; only where all noise comes from the openings."""
        scheme = next(iter(self._schemes.values()))
        if not isinstance(scheme, InSample) or not self.is_in_sample:
            raise ValueError("opening_indices: some class is not sampled from the openings; use sample")
        return scheme.opening_indices(iteration, as_indices(scenarios), stage)


def _for_scenarios(scheme: Scheme, total: int) -> Scheme:
    return replace(scheme, total=total) if isinstance(scheme, OutOfSample) else scheme
