"""The one way through the stages: scenarios side by side, each entering a stage in the state in which it left the last.

Simulations, evaluations during training and the search for a failed solve go this way. The forward pass proper is a
single call of the solver (`LpSolver.solve_paths`), which gives the same bits and does not return to Python in between.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np

from cobre.core.arrays import Floats, Indices, Ints
from cobre.records import dataclass
from cobre.sddp.plugins.interfaces import Sampler
from cobre.sddp.problem.problem import Problem, realise
from cobre.solver.batches import Realisations

# By stage: the realisations that scenarios are drawn from, and for each scenario the index of the one that it got.
StageNoise = Callable[[int], tuple[Realisations, Ints]]


class StageBatch(Protocol):
    """The results of a batch that every simulation of stages reads."""

    objective: Floats
    future_cost: Floats
    decided: Floats
    inflow: Floats


AnyBatch = TypeVar("AnyBatch", bound=StageBatch)


@dataclass(frozen=True, slots=True)
class StageResult(Generic[AnyBatch]):
    """One stage of a simulation: entering states and results of all scenarios.

    Scenario s has row realisation_index[s] of `realisations`.
    """

    stage: int
    states: Floats  # scenarios x dimension, entering
    realisations: Realisations
    realisation_index: Ints
    batch: AnyBatch

    @property
    def scenario_realisations(self) -> Realisations:
        """The realisation of each scenario, one row for each."""
        return self.realisations.take(self.realisation_index)


def simulate_stages(
    problem: Problem, scenarios: int, noise: StageNoise, solve: Callable[[int, Floats, Realisations, Ints], AnyBatch]
) -> Iterator[StageResult[AnyBatch]]:
    """From the first stage to the last. `solve` gets the stage, entering states, realisations and indices of these.

    Nothing of a stage is kept here: what is wanted of a result must be taken before the next one.
    """
    states = np.tile(problem.initial_state, (scenarios, 1))
    for stage, lp in enumerate(problem.stages):
        realisations, realisation_index = noise(stage)
        batch = solve(stage, states, realisations, realisation_index)
        yield StageResult(stage, states, realisations, realisation_index, batch)
        states = lp.program.next_states(states, batch.decided, batch.inflow)


def sampled(
    problem: Problem, sampler: Sampler, iteration: int, scenarios: Sequence[int] | Indices, stage: int
) -> tuple[Realisations, Ints]:
    """What a sampler draws for some scenarios at a stage. In-sample scenarios share those of the openings."""
    if sampler.is_in_sample:
        openings = sampler.opening_indices(iteration, scenarios, stage)
        return problem.openings[stage].realisations, openings.astype(np.int32)
    noise = sampler.sample(iteration, scenarios, stage)
    return realise(problem.noise, stage, noise), np.arange(len(noise), dtype=np.int32)


def discounted_costs(problem: Problem, objective: Floats, future_cost: Floats) -> Floats:
    """By scenario, in $ of the first stage's money: stages added in order. Tables: stages x scenarios, scaled costs.

    What lies beyond the last stage is nothing, or priced by another study: it belongs to the cost.
    """
    weights = problem.discount_to_first_stage
    future = np.array([problem.future_weight(stage) for stage in range(problem.num_stages)])
    stage_costs = objective - future[:, None] * future_cost
    total: Floats = np.add.accumulate(weights[:, None] * (stage_costs * problem.cost_scale), axis=0)[-1]
    return total
