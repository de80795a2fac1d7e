"""The upper bound of a policy by the method that suits its study."""

from dataclasses import replace

import numpy as np

from cobre.core.arrays import sum_in_order
from cobre.core.bound_methods import BoundMethod
from cobre.core.confidence import mean_with_half_width
from cobre.errors import CobreError
from cobre.sddp.problem.problem import Problem
from cobre.sddp.records.upper_bound import BoundPlan, UpperBound
from cobre.sddp.training.context import TrainingContext
from cobre.sddp.training.lower_bound import lower_bound
from cobre.sddp.upper_bounds.enumeration import policy_cost, tree_size
from cobre.sddp.upper_bounds.inner import inner_bound
from cobre.sddp.upper_bounds.sampled import Draw, bounding_excess, sample_paths
from cobre.sddp.upper_bounds.vertices import state_variables

MAX_STATES = 8  # with more state variables an inner approximation is loose


class BoundError(CobreError):
    """A bound that cannot be found by the method that was asked for, and why."""


def choose_method(problem: Problem, plan: BoundPlan) -> BoundMethod:
    """As asked for; `auto`: all paths where they are few, an inner approximation of a small state, else a sample."""
    if problem.tree is not None:
        return BoundMethod.ENUMERATION
    if plan.method is not BoundMethod.AUTO:
        return plan.method
    if tree_size(problem) <= plan.max_nodes:
        return BoundMethod.ENUMERATION
    return BoundMethod.INNER if problem.is_convex and state_variables(problem) <= MAX_STATES else BoundMethod.SAMPLED


def find_upper_bound(context: TrainingContext, plan: BoundPlan, iteration: int = 0) -> UpperBound:
    """The bound under the policy in the context's pool.

    iteration: samples of different iterations differ. Raises `BoundError` where the method does not suit the study.
    """
    match choose_method(context.problem, plan):
        case BoundMethod.ENUMERATION:
            return _enumerated(context, plan)
        case BoundMethod.INNER:
            return _inner(context, plan, iteration)
    return _sampled(context, plan, iteration)


def _enumerated(context: TrainingContext, plan: BoundPlan) -> UpperBound:
    size = tree_size(context.problem)
    if context.problem.tree is None and size > plan.max_nodes:
        raise BoundError(
            f"the opening tree has {size:,} nodes, more than the limit of {plan.max_nodes:,}: "
            "use the method inner or sampled, or allow more nodes"
        )
    lower = lower_bound(context, 0)
    return UpperBound(BoundMethod.ENUMERATION, policy_cost(context), lower, 0.0, None, size)


def _inner(context: TrainingContext, plan: BoundPlan, iteration: int) -> UpperBound:
    if not context.problem.is_convex:
        raise BoundError(
            "inflow truncated at zero while it depends on its past makes the cost-to-go non-convex: an inner "
            "approximation is not a bound. Use the method sampled, or the inflow method penalty"
        )
    # Half of the paths favour expensive openings, which weigh most in the bound; the others spread vertices evenly.
    draw = Draw(-(-plan.paths // 2), iteration, plan.seed)
    paths = sample_paths(context, draw)
    others = sample_paths(context, draw, is_weighted=False)
    visited = np.concatenate([paths.states, others.states], axis=1)
    value, vertices = inner_bound(context, visited)
    return UpperBound(BoundMethod.INNER, value, paths.lower_bound, 0.0, None, vertices)


def _sampled(context: TrainingContext, plan: BoundPlan, iteration: int) -> UpperBound:
    draw = Draw(plan.paths, iteration, plan.seed)
    paths = sample_paths(context, draw)
    mean, half_width = mean_with_half_width(paths.excess.tolist(), plan.confidence)
    lower = paths.lower_bound
    found = UpperBound(BoundMethod.SAMPLED, lower + mean, lower, half_width, plan.confidence, plan.paths)
    if context.problem.is_risk_neutral:
        return found
    excess = bounding_excess(context, draw)
    at_most = None
    if excess is not None:
        at_most = lower + sum_in_order(mean_with_half_width(excess.tolist(), plan.confidence))
    return replace(found, is_estimate=True, at_most=at_most)
