"""What the present policy costs in fresh scenarios, for stopping rules that want to know."""

from collections.abc import Sequence
from contextlib import closing

import numpy as np

from cobre.core.arrays import Floats, Indices, Ints
from cobre.sddp.plugins.interfaces import EVALUATION_BIT, Sampler, StoppingRule
from cobre.sddp.ranks.work_split import WorkSplit
from cobre.sddp.records.iteration_record import IterationRecord
from cobre.sddp.records.phases import Phase
from cobre.sddp.records.upper_bound import UpperBound
from cobre.sddp.stage_simulation import discounted_costs, sampled, simulate_stages
from cobre.sddp.stage_solve import StageSolve
from cobre.sddp.training.context import TrainingContext
from cobre.sddp.training.team import Team
from cobre.sddp.upper_bounds.find import find_upper_bound
from cobre.solver.batches import Batch, Chains, Outputs, Realisations


def simulated_costs(
    context: TrainingContext, rules: Sequence[StoppingRule], history: Sequence[IterationRecord]
) -> Floats | None:
    """Costs of as many paths as some rule wants to see now; None when none does."""
    wanted = max((rule.needs_simulation(history) for rule in rules), default=0)
    return evaluate_policy(context, history[-1].iteration, wanted) if wanted else None


def upper_bounds(
    context: TrainingContext, rules: Sequence[StoppingRule], history: Sequence[IterationRecord]
) -> list[UpperBound | None]:
    """For each rule the upper bound that it wants to see now; the first of them stays in the context."""
    plans = [rule.needs_bound(history) for rule in rules]
    iteration = history[-1].iteration
    found = [None if plan is None else find_upper_bound(context, plan, iteration) for plan in plans]
    context.upper_bound = next((bound for bound in found if bound is not None), None)
    return found


def evaluate_policy(context: TrainingContext, iteration: int, replications: int) -> Floats:
    """Costs in $ today of paths that training never met, in order and the same on all ranks.

    Paths follow the scheme of the forward passes, all cuts count, and every evaluation draws anew. The costs have the
    same bits for any number of ranks and threads.
    """
    split = WorkSplit(replications, context.comm.size)
    sampler = context.sampler.for_scenarios(replications)
    with closing(Team.for_solutions(context.comm, context.pool.memory, context.problem, split, Outputs())) as team:
        costs = _path_costs(context, sampler, iteration, team.indices(split), team)[team.own(split)]
    return context.gather(split, costs.reshape(-1, 1), "costs of simulated paths")[:, 0]


def _path_costs(context: TrainingContext, sampler: Sampler, iteration: int, paths: Indices, team: Team) -> Floats:
    problem, outputs = context.problem, Outputs()

    def noise(stage: int) -> tuple[Realisations, Ints]:
        return sampled(problem, sampler, iteration | EVALUATION_BIT, paths, stage)

    def solve(stage: int, states: Floats, realisations: Realisations, realisation_index: Ints) -> Batch:
        chains = Chains.single(states, realisation_index, context.bases[stage])
        shared = team.solutions(problem.stages[stage].program, len(states))
        work = StageSolve(stage, chains, realisations, outputs, all_cuts=True, shared=shared)
        batch = context.solve(Phase.SIMULATION, iteration, work)
        team.wait("simulated paths")
        return batch

    results = simulate_stages(problem, len(paths), noise, solve)
    table = np.array([(result.batch.objective.copy(), result.batch.future_cost.copy()) for result in results])
    return discounted_costs(problem, table[:, 0], table[:, 1])
