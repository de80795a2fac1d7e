"""The forward pass: every path through the stages under the present policy, all paths of a team side by side."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cobre.core.arrays import Floats, Ints
from cobre.sddp.phases import Phase
from cobre.sddp.problem import Problem
from cobre.sddp.training.context import TrainingContext
from cobre.solver.batches import Bases, Chains, Keep, SolveFailedError, Step


@dataclass(frozen=True, slots=True)
class Paths:
    """The paths of this rank and of its team. states[t] enters stage t; costs are LP money."""

    states: Floats  # stages x paths x dimension
    bases: list[Bases]  # by stage; one basis for each path
    met: list[Ints]  # by stage: how wet what each path met is among the openings, from 0
    objective: Floats  # stages x paths
    future_cost: Floats


def run_forward(context: TrainingContext, iteration: int) -> Paths:
    """Walk the team's paths from the first stage to the last; complete when the team has waited."""
    problem = context.problem
    steps = [context.step(iteration, stage) for stage in range(problem.num_stages)]
    first = np.tile(problem.initial_state, (len(context.team_paths), 1))
    try:
        walk = context.solver.walk(steps, first, context.team.paths())
    except SolveFailedError:
        _find_failure(context, iteration, steps, first)
        raise
    context.counter.add(Phase.FORWARD, walk)
    bases = [Bases(status, cuts) for status, cuts in zip(walk.basis_status, walk.basis_cuts, strict=True)]
    met = [
        opening.wetness(step.realisations, step.items) for opening, step in zip(problem.openings, steps, strict=True)
    ]
    return Paths(walk.states, bases, met, walk.objective, walk.future_cost)


def rows_of(states: Floats) -> Floats:
    """The trial points of each path, all stages side by side."""
    stages, count, dimension = states.shape
    return states.transpose(1, 0, 2).reshape(count, stages * dimension)


def path_costs(problem: Problem, paths: Paths, own: slice) -> Floats:
    """What some paths cost in $ today: the stages, added from the first to the last."""
    discounts = problem.discounts
    weights = np.concatenate([np.ones(1), np.multiply.accumulate(discounts)[:-1]])
    # What lies beyond the last stage is nothing, or priced by another study: it belongs to the cost of the path.
    future = np.concatenate([discounts[:-1], np.zeros(1)])
    stage_costs = paths.objective[:, own] - future[:, None] * paths.future_cost[:, own]
    total: Floats = np.add.accumulate(weights[:, None] * (stage_costs * problem.cost_scale), axis=0)[-1]
    return total


def _find_failure(context: TrainingContext, iteration: int, steps: Sequence[Step], state: Floats) -> None:
    """Go the same way stage by stage: the failure comes again, where everything about it is known."""
    left = Bases.none(context.problem.stages[0].program)
    for step in steps:
        bases = left if step.follows else step.bases
        index = np.full(len(state), 0 if len(bases.status) else -1, np.int32)
        if step.follows:
            index = np.arange(len(state), dtype=np.int32)
        chains = Chains(state, np.arange(len(state) + 1, dtype=np.int32), step.items, bases, index)
        batch = context.solve(Phase.FORWARD, step.stage, iteration, chains, step.realisations, Keep(basis=True))
        left = Bases(batch.basis_status, batch.basis_cuts)
        state = context.problem.stages[step.stage].program.next_states(state, batch.decided, batch.inflow)
