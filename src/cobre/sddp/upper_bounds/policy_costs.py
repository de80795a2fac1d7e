"""Costs and upper bounds of a policy: those that stopping rules need during training, and the final cost.

The final cost is estimated from new paths and from those of the last iterations.
"""

from collections.abc import Sequence
from contextlib import closing

import numpy as np

from cobre.core.arrays import Floats, Indices, Ints, sum_in_order
from cobre.core.bounds import UpperBound, relative_gap
from cobre.core.policy_cost import (
    ENOUGH_PATHS,
    MAX_DRIFT,
    SPREAD_PATHS,
    CostSample,
    PolicyCost,
    final_cost,
    latest,
    pooled,
    sampled_cost,
)
from cobre.sddp.iteration_records import IterationRecord, Phase
from cobre.sddp.plugins.interfaces import EVALUATION_BIT, Sampler, StoppingRule
from cobre.sddp.ranks import WorkSplit
from cobre.sddp.scenarios import StageBatch, discounted_costs, draw_noise, simulate_stages
from cobre.sddp.team import Team
from cobre.sddp.training.context import TrainingContext
from cobre.sddp.upper_bounds.find import Draw, find_upper_bound, sample_paths
from cobre.solver.batches import PathOutputs, Realisations, Step

FINAL_SHARE = 0.02
"""Of the solves of training: what sampling the cost of the final policy may take. Solves, not seconds: bits are the
same on any machine. They have more cuts and fewer starting bases than those of training: 3 % of its time."""
MIN_FINAL_PATHS = 8
"""Smallest useful number of paths: fewer give a wider interval than those of the last iterations."""
MAX_FINAL_PATHS = 1000


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


def final_policy_cost(
    context: TrainingContext, history: Sequence[IterationRecord], *, was_interrupted: bool
) -> PolicyCost | None:
    """Estimate the cost of the final policy from new paths; from the last iterations if these take too long.

    Nothing is sampled after an interruption.
    """
    last = history[-1]
    if last.policy_cost is None or last.is_exact or was_interrupted:
        return last.policy_cost
    openings = sum(opening.count for opening in context.problem.openings)
    paths = min(MAX_FINAL_PATHS, int(FINAL_SHARE * sum(record.solves for record in history)) // openings)
    if paths < MIN_FINAL_PATHS:
        return last.policy_cost
    paths_of_policy = sample_paths(context, Draw(paths, last.iteration))
    sample = CostSample.of((paths_of_policy.lower_bound + paths_of_policy.excess).tolist())
    if not context.problem.is_risk_neutral:  # likelihood ratios of the paths of training spread far more than costs
        return sampled_cost(sample, is_estimate=True)
    similar_iterations = [record for record in history if _has_similar_bound(record, last)]
    recent_samples = latest([record.cost_sample for record in similar_iterations], SPREAD_PATHS, share=1.0)
    if sum(costs.paths for costs in recent_samples) < ENOUGH_PATHS:
        spread = pooled(latest([record.cost_sample for record in history], SPREAD_PATHS))
        return sampled_cost(sample, is_estimate=False, spread=spread)
    bounds = [record.lower_bound for record in similar_iterations[-len(recent_samples) :]]
    drift = max(0.0, last.lower_bound - sum_in_order(bounds) / len(bounds))
    return final_cost(sample, pooled(recent_samples), drift)


def _has_similar_bound(record: IterationRecord, last: IterationRecord) -> bool:
    """Return whether the lower bound of an iteration is so close to the last one that the policies are alike."""
    return relative_gap(last.lower_bound, record.lower_bound) >= -MAX_DRIFT
