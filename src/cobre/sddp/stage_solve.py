"""One call of the solver at a stage under a policy: with the policy's cuts, and an explanation where an LP fails."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import numpy as np

from cobre.core.arrays import Floats, Indices, Ints
from cobre.records import dataclass
from cobre.sddp.cuts.pool import CutPool
from cobre.sddp.lp.failure import FailedSolve
from cobre.sddp.plugins.interfaces import Sampler
from cobre.sddp.problem.problem import Problem, realise
from cobre.solver.batches import Batch, Chains, LpSolver, Outputs, Realisations, SharedBatch, SolveFailedError

# From the number of the chain that failed: where that is in words, and the name of the files that are left.
NameFailure = Callable[[int], tuple[str, str]]


class SolvedPolicy(Protocol):
    """Who solves stages: training, or a simulation."""

    @property
    def problem(self) -> Problem:
        """The study whose stages are solved."""

    @property
    def solver(self) -> LpSolver:
        """The solver that all stages are loaded into."""

    @property
    def pool(self) -> CutPool:
        """The cuts of the policy."""

    @property
    def failure_folder(self) -> Path | None:
        """Where an LP goes that cannot be solved; None: nowhere."""


@dataclass(frozen=True, slots=True)
class StageSolve:
    """What is solved at a stage, and what is wanted of it.

    all_cuts: with inactive cuts as well. pool_number: whose cuts, where a stage has several nodes; None: the stage's.
    shared: together with the team.
    """

    stage: int
    chains: Chains
    noise: Realisations
    outputs: Outputs
    all_cuts: bool = False
    pool_number: int | None = None
    shared: SharedBatch | None = None


def solve_stage(policy: SolvedPolicy, work: StageSolve, name_failure: NameFailure) -> Batch:
    """Solve chains of a stage; raises `StageFailedError`, and leaves the LP for a closer look, where one fails."""
    rows = policy.pool.rows(work.stage if work.pool_number is None else work.pool_number, all_cuts=work.all_cuts)
    try:
        return policy.solver.solve(work.stage, rows, work.chains, work.noise, work.outputs, work.shared)
    except SolveFailedError as error:
        where, name = name_failure(error.chain)
        failed = FailedSolve.of(policy.problem.stages[work.stage], where, error, work.chains, work.noise)
        folder = policy.failure_folder
        raise failed.as_error(policy.problem.names, policy.solver, work.stage, folder, name) from error


# The one way through the stages: scenarios side by side, each entering a stage in the state in which it left the
# last.
#
# Simulations, evaluations during training and the search for a failed solve go this way. The forward pass proper is a
# single call of the solver (`LpSolver.solve_paths`), which gives the same bits and does not return to Python in
# between.


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
