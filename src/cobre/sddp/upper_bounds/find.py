"""The upper bound of a policy by the method that suits its study."""

from dataclasses import replace

import numpy as np

from cobre.core.arrays import Floats, sum_in_order
from cobre.core.bounds import BoundMethod, BoundPlan, UpperBound
from cobre.core.confidence import mean_with_half_width
from cobre.errors import CobreError
from cobre.sddp.plugins.risk import weighted
from cobre.sddp.problem.problem import Problem
from cobre.sddp.ranks import WorkSplit
from cobre.sddp.training.context import TrainingContext, lower_bound
from cobre.sddp.training.tree_iteration import policy_value as value_on_nodes
from cobre.sddp.upper_bounds.inner import inner_bound, risk_into, solve_all_openings, state_variables
from cobre.sddp.upper_bounds.sampled import Draw, bounding_excess, sample_paths

# The exact cost of a policy: every path of the opening tree, folded back by the risk measure node by node.


def tree_size(problem: Problem) -> int:
    """Count the nodes of the tree of all openings, or of the tree that the case enumerates."""
    if problem.tree is not None:
        return problem.tree.num_nodes
    nodes, total = 1, 0
    for opening in problem.openings:
        nodes *= opening.count
        total += nodes
    return total


def policy_cost(context: TrainingContext) -> float:
    """Return the exact cost of the policy over all paths, $. The same bits for any number of ranks."""
    problem = context.problem
    if problem.tree is not None:
        return value_on_nodes(context, problem.tree)
    states, costs = problem.initial_state[None], []
    for stage in range(problem.num_stages):
        states, found = _simulate(context, stage, states)
        costs.append(found)
    return _folded(problem, costs) * problem.cost_scale


def _simulate(context: TrainingContext, stage: int, states: Floats) -> tuple[Floats, Floats]:
    """Return the states that leave the nodes of a stage, and stage costs without the future: states x openings."""
    split = WorkSplit(len(states), context.comm.size)
    own = split.block(context.comm.rank)
    found = solve_all_openings(context, stage, states[own.start : own.stop])
    rows = np.concatenate([found.stage_costs[:, :, None], found.leaving], axis=2)
    openings, width = rows.shape[1:]
    gathered = context.gather(split, rows.reshape(len(own), openings * width), "nodes of a stage")
    table = gathered.reshape(len(states), openings, width)
    return np.ascontiguousarray(table[:, :, 1:].reshape(-1, width - 1)), table[:, :, 0].copy()


def _folded(problem: Problem, costs: list[Floats]) -> float:
    """Fold costs from the leaves to the root under the risk measure; all costs are scaled."""
    values = costs[-1]
    for stage in range(problem.num_stages - 1, 0, -1):
        risk = weighted(risk_into(problem, stage).weights(values), values)
        values = costs[stage - 1] + problem.discounts[stage - 1] * risk.reshape(costs[stage - 1].shape)
    return float(weighted(risk_into(problem, 0).weights(values), values)[0])


MAX_STATES = 8  # with more state variables an inner approximation is loose


class BoundError(CobreError):
    """A bound that cannot be found by the method that was asked for, and why."""

    remedy = "choose another method (--method), or `auto`"


def choose_method(problem: Problem, plan: BoundPlan) -> BoundMethod:
    """Choose the requested method; `auto`: all paths if few, inner approximation for a small state, else a sample."""
    if problem.tree is not None:
        return BoundMethod.ENUMERATION
    if plan.method is not BoundMethod.AUTO:
        return plan.method
    if tree_size(problem) <= plan.max_nodes:
        return BoundMethod.ENUMERATION
    return BoundMethod.INNER if problem.is_convex and state_variables(problem) <= MAX_STATES else BoundMethod.SAMPLED


def find_upper_bound(context: TrainingContext, plan: BoundPlan, iteration: int = 0) -> UpperBound:
    """Return the bound under the policy in the context's pool.

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
