"""The forward pass: every path through the stages under the present policy, all paths of a team side by side."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cobre.core.arrays import Floats, Indices, Ints
from cobre.records import dataclass
from cobre.sddp.problem.problem import Problem
from cobre.sddp.records.phases import Phase
from cobre.sddp.stage_simulation import discounted_costs, simulate_stages
from cobre.sddp.stage_solve import StageSolve
from cobre.sddp.training.context import TrainingContext
from cobre.solver.batches import Bases, Batch, Chains, Outputs, Realisations, SolveFailedError, Step


@dataclass(frozen=True, slots=True)
class Paths:
    """The paths of this rank and of its team. states[t] enters stage t; costs are scaled."""

    states: Floats  # stages x paths x dimension
    bases: list[Bases]  # by stage; one basis for each path
    positions: list[Ints]  # by stage and path: the sampled realisation among the openings, driest first
    objective: Floats  # stages x paths
    future_cost: Floats
    drawn: list[Indices] | None = None  # by stage and path: the opening, -1 where noise is none; None: not wanted


def run_forward(context: TrainingContext, iteration: int) -> Paths:
    """Take the team's paths from the first stage to the last; complete when the team has waited."""
    problem = context.problem
    steps = [context.step(iteration, stage) for stage in range(problem.num_stages)]
    first = np.tile(problem.initial_state, (len(context.team_paths), 1))
    try:
        solved = context.solver.solve_paths(steps, first, context.team.paths())
    except SolveFailedError:
        _find_failure(context, iteration, steps)
        raise
    context.counter.add(Phase.FORWARD, solved)
    bases = [Bases(status, cuts) for status, cuts in zip(solved.basis_status, solved.basis_cuts, strict=True)]
    planned = context.backward_chains
    positions = [planned.positions(step.stage, step.realisations, step.realisation_index) for step in steps]
    drawn = [context.drawn_openings(step) for step in steps] if context.samples_policy_cost else None
    return Paths(solved.states, bases, positions, solved.objective, solved.future_cost, drawn)


def path_costs(problem: Problem, paths: Paths, own: slice) -> Floats:
    """What some paths cost, in $ of the first stage's money."""
    return discounted_costs(problem, paths.objective[:, own], paths.future_cost[:, own])


def _find_failure(context: TrainingContext, iteration: int, steps: Sequence[Step]) -> None:
    """Solve the same paths stage by stage: the failure occurs again, where stage, state and noise are known."""
    previous = Bases.none(context.problem.stages[0].program)

    def solve(stage: int, states: Floats, realisations: Realisations, realisation_index: Ints) -> Batch:
        chains = Chains.single(
            states, realisation_index, previous if steps[stage].carries_basis else steps[stage].bases
        )
        if steps[stage].carries_basis:
            chains = replace(chains, basis_index=np.arange(len(states), dtype=np.int32))
        return context.solve(Phase.FORWARD, iteration, StageSolve(stage, chains, realisations, Outputs(basis=True)))

    def noise(stage: int) -> tuple[Realisations, Ints]:
        return steps[stage].realisations, steps[stage].realisation_index

    for result in simulate_stages(context.problem, len(context.team_paths), noise, solve):
        previous = Bases(result.batch.basis_status, result.batch.basis_cuts)
