"""Solves under a policy: chains of one stage, and paths through the stages. A failed LP is named, explained and saved.

Forward passes, evaluations during training and simulations all solve the stages by `solve_paths`. The
forward pass takes all stages in one call; simulations take one at a time, because they read the solution of a stage
before the next one replaces it. Both have the same bits.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Protocol

import numpy as np

from cobre.core.arrays import Floats, Indices, Ints
from cobre.records import dataclass
from cobre.sddp.cut_pool import CutPool
from cobre.sddp.lp.failure import FailedSolve, StageFailedError
from cobre.sddp.plugins.interfaces import Sampler
from cobre.sddp.problem.openings import realise
from cobre.sddp.problem.problem import Problem
from cobre.solver.batches import (
    Batch,
    Chains,
    FailedInputs,
    LpSolver,
    Outputs,
    PathBatch,
    PathOutputs,
    Realisations,
    SharedPaths,
    SolveFailedError,
    Step,
)
from cobre.solver.program import StageProgram

# From the LP that failed: where that is in words, and the name of the files that are saved.
NameFailure = Callable[[FailedInputs], tuple[str, str]]


class SolvedPolicy(Protocol):
    """Anything that solves stage LPs under a policy: training, or a simulation."""

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
        """Where an LP is saved that cannot be solved; None: nowhere."""


@dataclass(frozen=True, slots=True)
class StageSolve:
    """Chains of a stage, and the results that are wanted.

    all_cuts: with inactive cuts as well. pool_number: whose cuts, where a stage has several nodes; None: the stage's.
    """

    stage: int
    chains: Chains
    out: Outputs
    all_cuts: bool = False
    pool_number: int | None = None


def solve_stage(policy: SolvedPolicy, work: StageSolve, name_failure: NameFailure) -> Batch:
    """Solve chains of a stage; where an LP fails, raise `StageFailedError` and save the LP."""
    rows = policy.pool.rows(work.stage if work.pool_number is None else work.pool_number, all_cuts=work.all_cuts)
    try:
        return policy.solver.solve(work.stage, rows, work.chains, work.out)
    except SolveFailedError as error:
        raise _explain(policy, error, work.chains.realisations, name_failure) from error


def solve_paths(
    policy: SolvedPolicy, steps: Sequence[Step], states: Floats, out: PathOutputs, name_failure: NameFailure
) -> PathBatch:
    """Take paths (rows of `states`) through stages; where an LP fails, raise `StageFailedError` and save the LP."""
    try:
        return policy.solver.solve_paths(steps, states, out)
    except SolveFailedError as error:
        [failed] = [step for step in steps if step.stage == error.inputs.stage]
        raise _explain(policy, error, failed.realisations, name_failure) from error


def _explain(
    policy: SolvedPolicy, error: SolveFailedError, noise: Realisations, name_failure: NameFailure
) -> StageFailedError:
    where, file_name = name_failure(error.inputs)
    failed = FailedSolve.of(policy.problem.stages[error.inputs.stage], where, error, noise)
    folder = policy.failure_folder
    return failed.as_error(policy.problem.names, policy.solver, error.inputs.stage, folder, file_name)


@dataclass(slots=True)
class StageBatch:
    """Scenarios after one stage; costs are scaled. The solution (inflow, primal, dual) is empty where not wanted."""

    objective: Floats
    future_cost: Floats
    leaving: Floats  # scenarios x dimension, at the end of the stage
    inflow: Floats  # scenarios x hydros, realised
    primal: Floats  # scenarios x columns, scaled
    dual: Floats  # scenarios x rows, scaled

    @classmethod
    def of(cls, tables: PathBatch | SharedPaths) -> "StageBatch":
        """Read paths through a single stage."""
        solution = [part[0] if len(part) else np.zeros((0, 0)) for part in (tables.inflow, tables.primal, tables.dual)]
        leaving = np.zeros((0, 0)) if tables.leaving is None else tables.leaving
        return cls(tables.objective[0], tables.future_cost[0], leaving, *solution)

    @classmethod
    def new(cls, program: StageProgram, count: int) -> "StageBatch":
        """Return zeros for `count` scenarios of a stage, to `put` results into."""
        widths = (program.dimension, program.num_hydros, len(program.cost), len(program.row_lower))
        return cls(np.zeros(count), np.zeros(count), *(np.zeros((count, width)) for width in widths))

    def put(self, rows: Indices, batch: "StageBatch") -> None:
        """Copy the results of some scenarios into their rows."""
        for field in fields(self):
            getattr(self, field.name)[rows] = getattr(batch, field.name)


@dataclass(frozen=True, slots=True)
class StageResult:
    """One stage of a simulation: entering states and results of all scenarios.

    Scenario s has row realisation_index[s] of `realisations`.
    """

    stage: int
    states: Floats  # scenarios x dimension, entering
    realisations: Realisations
    realisation_index: Ints
    batch: StageBatch

    @property
    def scenario_realisations(self) -> Realisations:
        """The realisation of each scenario, one row for each."""
        return self.realisations.take(self.realisation_index)


# By stage: the realisations that scenarios are drawn from, and for each scenario the index of the one that it got.
StageNoise = Callable[[int], tuple[Realisations, Ints]]


def simulate_stages(
    problem: Problem, scenarios: int, noise: StageNoise, solve: Callable[[int, Floats, Realisations, Ints], StageBatch]
) -> Iterator[StageResult]:
    """Simulate scenarios stage by stage: each enters a stage in the state in which it left the last.

    `solve` gets the stage, entering states, realisations and indices of these. Results may be in shared tables: read
    them before the next stage.
    """
    states = np.tile(problem.initial_state, (scenarios, 1))
    for stage in range(problem.num_stages):
        realisations, realisation_index = noise(stage)
        batch = solve(stage, states, realisations, realisation_index)
        yield StageResult(stage, states, realisations, realisation_index, batch)
        states = batch.leaving.copy()  # a team reuses the table while a slow member still reads the next stage


def sampled(
    problem: Problem, sampler: Sampler, iteration: int, scenarios: Sequence[int] | Indices, stage: int
) -> tuple[Realisations, Ints]:
    """Draw the noise of some scenarios at a stage. In-sample scenarios share the realisations of the openings."""
    if sampler.is_in_sample:
        openings = sampler.opening_indices(iteration, scenarios, stage)
        return problem.openings[stage].realisations, openings.astype(np.int32)
    noise = sampler.sample(iteration, scenarios, stage)
    return realise(problem.noise, stage, noise), np.arange(len(noise), dtype=np.int32)


def discounted_costs(problem: Problem, objective: Floats, future_cost: Floats) -> Floats:
    """Return the cost of each scenario in $ of the first stage's money. Tables: stages x scenarios, scaled costs.

    Stages are added in order. The terminal cost, which a boundary policy may give, is included.
    """
    weights = problem.discount_to_first_stage
    future = np.array([problem.future_weight(stage) for stage in range(problem.num_stages)])
    stage_costs = objective - future[:, None] * future_cost
    total: Floats = np.add.accumulate(weights[:, None] * (stage_costs * problem.cost_scale), axis=0)[-1]
    return total
