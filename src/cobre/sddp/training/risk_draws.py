"""Forward paths whose openings are drawn by the weights of the risk measure (docs/adr/0060).

The weights at a trial point are known when the backward pass has solved all openings there; the forward pass needs
them before. So it draws from the mean of the weights that trial points of earlier iterations had, stage by stage, and
each path counts by its likelihood ratio: the product of weight over probability of all openings that it drew.

All ranks have the same probabilities: they follow from rows that are gathered with the values of trial points.
"""

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from cobre.core.arrays import Floats, Indices, Ints
from cobre.records import dataclass
from cobre.sddp.problem.problem import Problem
from cobre.solver.batches import Realisations
from cobre.stochastic.random.seeds import forward_seeds

FORWARD_BASE = 0x7269736B66776473
"""Base of these draws: ASCII "riskfwds"."""
LEAST_SHARE = 0.05
"""Share of draws with equal probabilities: no opening that may get a weight has a probability of 0."""
AVERAGED_ITERATIONS = 4
"""Iterations over which mean weights are averaged: probabilities follow the policy, with little noise."""


@dataclass(frozen=True, slots=True)
class RiskDraws:
    """Draws of the first `paths` forward passes of an iteration.

    sampling_probabilities: by stage and opening, before `LEAST_SHARE` is mixed in; `update` changes them in place, once
    an iteration. weights_by_stage: weights at this rank's trial points in the current iteration: own paths x openings.
    """

    problem: Problem
    paths: int
    seed: int
    sampling_probabilities: list[Floats]
    weights_by_stage: dict[int, Floats] = field(default_factory=dict)

    @classmethod
    def of(cls, problem: Problem, paths: int, seed: int) -> "RiskDraws":
        """Start with equal probabilities."""
        return cls(problem, paths, seed, [np.full(opening.count, 1.0 / opening.count) for opening in problem.openings])

    def opening_indices(self, iteration: int, numbers: Indices, stage: int) -> Indices:
        """Draw the opening of each path at a stage: a function of the probabilities and the path's number only."""
        words = forward_seeds(self.seed ^ FORWARD_BASE, iteration, numbers, stage)
        draws = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
        cumulative = np.add.accumulate(self._mixed_probabilities(stage))
        chosen: Indices = np.searchsorted(cumulative, draws * cumulative[-1], side="right").astype(np.int64)
        return np.minimum(chosen, len(cumulative) - 1)

    def override_draws(
        self, iteration: int, numbers: Indices, stage: int, sampled: tuple[Realisations, Ints]
    ) -> tuple[Realisations, Ints]:
        """Return the noise of paths at a stage: weighted ones draw openings, the rest keeps the sampler's noise."""
        openings, (noise, index) = self.problem.openings[stage].realisations, sampled
        is_weighted = numbers < self.paths
        if not is_weighted.any():
            return sampled
        drawn = self.opening_indices(iteration, numbers, stage).astype(np.int32)
        if noise is openings:
            return openings, np.where(is_weighted, drawn, index).astype(np.int32)
        if is_weighted.all():
            return openings, drawn
        joined = Realisations(
            np.concatenate([noise.inflow_m3s, openings.inflow_m3s]),
            np.concatenate([noise.load_mw, openings.load_mw]),
            np.concatenate([noise.availability, openings.availability]),
        )
        return joined, np.where(is_weighted, len(noise.inflow_m3s) + drawn, index).astype(np.int32)

    def record_weights(self, stage: int, costs: Floats) -> None:
        """Record the weights of a stage's openings at this rank's trial points. costs: paths x openings, scaled."""
        self.weights_by_stage[stage] = self.problem.risk[stage - 1].weights(costs)

    def weights_of(self, drawn: Sequence[Indices], first_weights: Floats) -> Floats:
        """Return the weights of the openings that own paths drew: stages x paths. first_weights: of the first stage."""
        paths = np.arange(len(drawn[0]))
        later = [self.weights_by_stage[stage][paths, drawn[stage]] for stage in range(1, self.problem.num_stages)]
        return np.stack([first_weights[drawn[0]], *later])

    def ratios(self, numbers: Indices, weights: Floats, drawn: Sequence[Indices]) -> Floats:
        """Return likelihood ratios of own paths up to each stage: stages x paths; 1 for unweighted paths.

        numbers: of the paths. drawn: by stage and path, the opening; weights: of these openings, from `weights_of`.
        """
        is_weighted = numbers < self.paths
        parts = [
            np.where(is_weighted, weights[stage] / self._mixed_probabilities(stage)[drawn[stage]], 1.0)
            for stage in range(self.problem.num_stages)
        ]
        ratios: Floats = np.multiply.accumulate(np.stack(parts), axis=0)
        return ratios

    def weight_rows(self) -> Floats:
        """Return the weights at this rank's trial points: own paths x openings of all stages but the first."""
        return np.concatenate([self.weights_by_stage[stage] for stage in range(1, self.problem.num_stages)], axis=1)

    def update(self, iteration: int, rows: Floats, first_weights: Floats) -> None:
        """Set the probabilities of the next iteration. rows: the weights of all ranks' paths, in the order of paths."""
        mean = np.concatenate([first_weights, np.add.accumulate(rows, axis=0)[-1] / len(rows)])
        for stage, (old, new) in enumerate(zip(self.sampling_probabilities, self._by_stage(mean), strict=True)):
            self.sampling_probabilities[stage] = old + (new - old) / min(iteration, AVERAGED_ITERATIONS)

    def restore(self, probabilities: Floats) -> None:
        """Restore the probabilities of a checkpoint, all stages side by side."""
        self.sampling_probabilities[:] = self._by_stage(probabilities)

    def _by_stage(self, numbers: Floats) -> list[Floats]:
        return np.split(numbers, np.add.accumulate([len(part) for part in self.sampling_probabilities])[:-1])

    def _mixed_probabilities(self, stage: int) -> Floats:
        """Return the probabilities with which openings of a stage are drawn."""
        probabilities = self.sampling_probabilities[stage]
        return (1.0 - LEAST_SHARE) * probabilities + LEAST_SHARE / len(probabilities)
