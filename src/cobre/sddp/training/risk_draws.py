"""Forward paths whose openings are drawn by the weights of the risk measure (docs/adr/0060).

The weights at a trial point are known when the backward pass has solved all openings there; the forward pass needs
them before. So it draws from the mean of the weights that trial points of earlier iterations had, stage by stage, and
each path counts by its likelihood ratio: the product of weight over chance of all that it drew.

All ranks have the same chances: they are made from rows that are gathered with the values of trial points anyway.
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
"""Share of draws with all openings alike: no opening that may get a weight has a chance of 0."""
REMEMBERED = 4
"""Iterations over which mean weights are averaged: chances follow the policy, with little noise."""


@dataclass(frozen=True, slots=True)
class RiskDraws:
    """Draws of the first `paths` forward passes of an iteration.

    chances: by stage and opening, of the present iteration; changed in place by `update`, once an iteration.
    found: by stage, the weights at this rank's trial points in the present iteration: own paths x openings.
    """

    problem: Problem
    paths: int
    seed: int
    chances: list[Floats]
    found: dict[int, Floats] = field(default_factory=dict)

    @classmethod
    def of(cls, problem: Problem, paths: int, seed: int) -> "RiskDraws":
        """Start with the chances of the first iteration: all openings alike."""
        return cls(problem, paths, seed, [np.full(opening.count, 1.0 / opening.count) for opening in problem.openings])

    def opening_indices(self, iteration: int, numbers: Indices, stage: int) -> Indices:
        """Draw the opening of each path at a stage: a function of the chances and the path's number alone."""
        words = forward_seeds(self.seed ^ FORWARD_BASE, iteration, numbers, stage)
        draws = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
        reached = np.add.accumulate(self._chances(stage))
        chosen: Indices = np.searchsorted(reached, draws * reached[-1], side="right").astype(np.int64)
        return np.minimum(chosen, len(reached) - 1)

    def override_draws(
        self, iteration: int, numbers: Indices, stage: int, others: tuple[Realisations, Ints]
    ) -> tuple[Realisations, Ints]:
        """Return the noise of paths at a stage: weighted ones draw openings, the rest keeps the sampler's noise."""
        own, (noise, index) = self.problem.openings[stage].realisations, others
        is_weighted = numbers < self.paths
        if not is_weighted.any():
            return others
        drawn = self.opening_indices(iteration, numbers, stage).astype(np.int32)
        if noise is own:
            return own, np.where(is_weighted, drawn, index).astype(np.int32)
        if is_weighted.all():
            return own, drawn
        both = Realisations(
            np.concatenate([noise.inflow_m3s, own.inflow_m3s]),
            np.concatenate([noise.load_mw, own.load_mw]),
            np.concatenate([noise.availability, own.availability]),
        )
        return both, np.where(is_weighted, len(noise.inflow_m3s) + drawn, index).astype(np.int32)

    def note_costs(self, stage: int, costs: Floats) -> None:
        """Keep the weights that openings of a stage have at this rank's trial points: paths x openings, scaled."""
        self.found[stage] = self.problem.risk[stage - 1].weights(costs)

    def weights_of(self, drawn: Sequence[Indices], first_weights: Floats) -> Floats:
        """Return the weights of the openings that own paths drew: stages x paths. first_weights: of the first stage."""
        paths = np.arange(len(drawn[0]))
        later = [self.found[stage][paths, drawn[stage]] for stage in range(1, self.problem.num_stages)]
        return np.stack([first_weights[drawn[0]], *later])

    def ratios(self, numbers: Indices, weights: Floats, drawn: Sequence[Indices]) -> Floats:
        """Return likelihood ratios of own paths up to each stage: stages x paths; 1 for unweighted paths.

        numbers: of the paths. drawn: by stage and path, the opening; weights: its own, as `weights_of` has them.
        """
        is_weighted = numbers < self.paths
        parts = [
            np.where(is_weighted, weights[stage] / self._chances(stage)[drawn[stage]], 1.0)
            for stage in range(self.problem.num_stages)
        ]
        ratios: Floats = np.multiply.accumulate(np.stack(parts), axis=0)
        return ratios

    def found_rows(self) -> Floats:
        """Return the weights at this rank's trial points: own paths x openings of all stages but the first."""
        return np.concatenate([self.found[stage] for stage in range(1, self.problem.num_stages)], axis=1)

    def update(self, iteration: int, rows: Floats, first_weights: Floats) -> None:
        """Make the chances of the next iteration from the weights of all ranks' paths, in the order of paths."""
        mean = np.concatenate([first_weights, np.add.accumulate(rows, axis=0)[-1] / len(rows)])
        for stage, (old, new) in enumerate(zip(self.chances, self._by_stage(mean), strict=True)):
            self.chances[stage] = old + (new - old) / min(iteration, REMEMBERED)

    def restore(self, chances: Floats) -> None:
        """Take the chances of a checkpoint, all stages side by side."""
        self.chances[:] = self._by_stage(chances)

    def _by_stage(self, numbers: Floats) -> list[Floats]:
        return np.split(numbers, np.add.accumulate([len(own) for own in self.chances])[:-1])

    def _chances(self, stage: int) -> Floats:
        """Return the chances that a stage is drawn from."""
        return (1.0 - LEAST_SHARE) * self.chances[stage] + LEAST_SHARE / len(self.chances[stage])
