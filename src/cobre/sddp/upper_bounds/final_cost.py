"""The cost of the final policy of a training run, from new paths and from those of its last iterations."""

from cobre.core.arrays import sum_in_order
from cobre.core.bounds import relative_gap
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
from cobre.sddp.iteration_records import IterationRecord
from cobre.sddp.training.context import TrainingContext
from cobre.sddp.training.loop import TrainingOutcome
from cobre.sddp.upper_bounds.find import Draw, sample_paths

FINAL_SHARE = 0.02
"""Of the solves of training: what sampling the cost of the final policy may take. Solves, not seconds: bits are the
same on any machine. They have more cuts and fewer starting bases than those of training: 3 % of its time."""
MIN_FINAL_PATHS = 8
"""Smallest useful number of paths: fewer give a wider interval than those of the last iterations."""
MAX_FINAL_PATHS = 1000


def final_policy_cost(context: TrainingContext, outcome: TrainingOutcome) -> PolicyCost | None:
    """Estimate the cost of the final policy from new paths; from the last iterations if these take too long."""
    last = outcome.history[-1]
    if last.policy_cost is None or last.is_exact or outcome.stop.kind.is_interruption or outcome.is_dropped:
        return last.policy_cost
    openings = sum(opening.count for opening in context.problem.openings)
    paths = min(MAX_FINAL_PATHS, int(FINAL_SHARE * sum(record.solves for record in outcome.history)) // openings)
    if paths < MIN_FINAL_PATHS:
        return last.policy_cost
    paths_of_policy = sample_paths(context, Draw(paths, last.iteration))
    sample = CostSample.of((paths_of_policy.lower_bound + paths_of_policy.excess).tolist())
    if not context.problem.is_risk_neutral:  # likelihood ratios of the paths of training spread far more than costs
        return sampled_cost(sample, is_estimate=True)
    similar_iterations = [record for record in outcome.history if _has_similar_bound(record, last)]
    recent_samples = latest([record.cost_sample for record in similar_iterations], SPREAD_PATHS, share=1.0)
    if sum(costs.paths for costs in recent_samples) < ENOUGH_PATHS:
        spread = pooled(latest([record.cost_sample for record in outcome.history], SPREAD_PATHS))
        return sampled_cost(sample, is_estimate=False, spread=spread)
    bounds = [record.lower_bound for record in similar_iterations[-len(recent_samples) :]]
    drift = max(0.0, last.lower_bound - sum_in_order(bounds) / len(bounds))
    return final_cost(sample, pooled(recent_samples), drift)


def _has_similar_bound(record: IterationRecord, last: IterationRecord) -> bool:
    """Return whether the lower bound of an iteration is so close to the last one that the policies are alike."""
    return relative_gap(last.lower_bound, record.lower_bound) >= -MAX_DRIFT
