"""Simulated costs and upper bounds of the present policy, for stopping rules that need them."""

from collections.abc import Sequence
from contextlib import closing

import numpy as np

from cobre.core.arrays import Floats, Indices, Ints
from cobre.core.bounds import UpperBound
from cobre.sddp.iteration_records import IterationRecord, Phase
from cobre.sddp.plugins.interfaces import EVALUATION_BIT, Sampler, StoppingRule
from cobre.sddp.ranks import WorkSplit
from cobre.sddp.scenarios import StageBatch, discounted_costs, draw_noise, simulate_stages
from cobre.sddp.team import Team
from cobre.sddp.training.context import TrainingContext
from cobre.sddp.upper_bounds.find import find_upper_bound
from cobre.solver.batches import PathOutputs, Realisations, Step


def simulated_costs(
    context: TrainingContext, rules: Sequence[StoppingRule], history: Sequence[IterationRecord]
) -> Floats | None:
    """Return costs of as many simulated paths as some rule needs now; None if no rule needs any."""
    replications = max((rule.needs_simulation(history) for rule in rules), default=0)
    return evaluate_policy(context, history[-1].iteration, replications) if replications else None


def upper_bounds(
    context: TrainingContext, rules: Sequence[StoppingRule], history: Sequence[IterationRecord]
) -> list[UpperBound | None]:
    """Return the upper bound that each rule needs now; the first of them stays in the context."""
    plans = [rule.needs_bound(history) for rule in rules]
    iteration = history[-1].iteration
    bounds = [None if plan is None else find_upper_bound(context, plan, iteration) for plan in plans]
    context.state.upper_bound = next((bound for bound in bounds if bound is not None), None)
    return bounds


def evaluate_policy(context: TrainingContext, iteration: int, replications: int) -> Floats:
    """Return costs, in $ of the first stage's money, of paths that training never sampled; the same on all ranks.

    Paths follow the scheme of the forward passes, all cuts are used, also inactive ones, and every evaluation draws new
    paths. The costs have the same bits for any number of ranks and threads.
    """
    split = WorkSplit(replications, context.comm.size)
    sampler = context.sampler.for_scenarios(replications)
    with closing(Team.for_scenarios(context.comm, context.pool.memory, context.problem, split)) as team:
        costs = _path_costs(context, sampler, iteration, team.items(split), team)[team.own_rows(split)]
    return context.gather(split, costs.reshape(-1, 1), "costs of simulated paths")[:, 0]


def _path_costs(context: TrainingContext, sampler: Sampler, iteration: int, paths: Indices, team: Team) -> Floats:
    problem = context.problem

    def noise(stage: int) -> tuple[Realisations, Ints]:
        return draw_noise(problem, sampler, iteration | EVALUATION_BIT, paths, stage)

    def solve(stage: int, states: Floats, realisations: Realisations, realisation_index: Ints) -> StageBatch:
        rows = context.pool.rows(stage, all_cuts=True)
        step = Step(stage, rows, realisations, realisation_index, context.state.bases[stage])
        out = PathOutputs(shared=team.scenarios(problem.stages[stage].program, len(states)))
        batch = context.solve_paths(Phase.SIMULATION, iteration, [step], states, out)
        team.wait("simulated paths")
        return StageBatch.of(batch)

    results = simulate_stages(problem, len(paths), noise, solve)
    table = np.array([(result.batch.objective.copy(), result.batch.future_cost.copy()) for result in results])
    return discounted_costs(problem, table[:, 0], table[:, 1])
