"""The upper bound of a policy by the method that suits its study: all paths, an inner approximation, or a sample.

The methods are derived in docs/explanation/upper-bounds.md.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cobre.core.arrays import Floats, sum_in_order
from cobre.core.bounds import BoundMethod, BoundPlan, UpperBound
from cobre.core.confidence import mean_with_half_width
from cobre.errors import CobreError
from cobre.records import dataclass
from cobre.sddp.plugins.risk import weighted
from cobre.sddp.problem.problem import Problem
from cobre.sddp.ranks import WorkSplit
from cobre.sddp.training.context import TrainingContext
from cobre.sddp.training.passes import lower_bound
from cobre.sddp.training.tree_iteration import policy_value as value_on_nodes
from cobre.sddp.upper_bounds.inner import inner_bound, risk_into, solve_all_openings, state_variables
from cobre.stochastic.random.seeds import BOUND_BASE, uniform_draws

# Paths drawn by the weights that the risk measure gives the openings: importance sampling for nested risk.
#
# At every state that a path visits, the stage is solved for all openings under the policy. The risk measure turns those
# costs into weights q, and the next opening is drawn from q. What the policy costs under q is the lower bound plus, at
# every state visited, what the risk of the openings exceeds the cost-to-go that the cuts gave it. Only these excesses
# are averaged, so a policy that has converged has an estimate without variance.
#
# The weights are feasible for the dual of the risk measure: the expectation lies between the lower bound and the nested
# cost of the policy, and is equal to both when the cuts rank the openings as their true costs do. It is an estimate of
# the policy's cost, approached from below, not a bound on it (docs/adr/0037).
#
# A bound in expectation has all openings drawn alike, with excesses that grow by the largest ratio of a weight to its
# probability from stage to stage. Risk measures are subadditive: risk(cost + excess) <= risk(cost) + risk(excess), and
# the risk of an excess, which is not negative, is at most that ratio times its mean (`bounding_excess`).

# A bound whose excesses grow by more than this from the first stage to the last is meaningless.
MAX_GROWTH = 1e4
_SPREAD = 0x9E3779B97F4A7C15  # spreads the bits of a small seed over 64
STAGE_BITS = 16  # the other bits of a seed are the number of the iteration


@dataclass(frozen=True, slots=True)
class SampledPaths:
    """All ranks' paths. excess: $, how much more than the lower bound each path costs; states: entering, by stage."""

    lower_bound: float
    excess: Floats
    states: Floats  # stages x paths x dimension


@dataclass(frozen=True, slots=True)
class Draw:
    """How paths are drawn: how many, and by which random numbers; samples of different iterations differ."""

    paths: int
    iteration: int = 0
    seed: int = 0

    def at(self, stage: int) -> Floats:
        """Draw a number in [0, 1) for each path."""
        base = BOUND_BASE ^ (self.seed * _SPREAD & (2**64 - 1))
        return uniform_draws(base, (self.iteration << STAGE_BITS) | stage, self.paths)


def bounding_excess(context: TrainingContext, draw: Draw) -> Floats | None:
    """Return excesses by path, $: their mean plus the lower bound bounds the nested cost of the policy from above.

    None if the bound is useless because excesses grow too much over the stages, or if a risk measure does not
    say how large its weights get.
    """
    growth = [_growth(context.problem, stage) for stage in range(context.problem.num_stages)]
    if None in growth or np.prod([ratio or 1.0 for ratio in growth[:-1]]) > MAX_GROWTH:
        return None
    return sample_paths(context, draw, is_weighted=False, growth=[ratio or 1.0 for ratio in growth]).excess


def _growth(problem: Problem, stage: int) -> float | None:
    """Return the largest ratio of a weight to the probability of its opening, 1 without a risk measure."""
    count = problem.openings[stage].count
    weights = risk_into(problem, stage).spectral_weights(count)
    return None if weights is None else float(weights.max()) * count


def sample_paths(
    context: TrainingContext, draw: Draw, *, is_weighted: bool = True, growth: Sequence[float] | None = None
) -> SampledPaths:
    """Draw paths by the weights of the risk measure, or all openings alike. The same bits for any number of ranks.

    growth: by stage, the factor of all later excesses, which then are not negative; None: they count as they are.
    """
    count = draw.paths
    split = WorkSplit(count, context.comm.size)
    own = split.block(context.comm.rank)
    lower, excess, states = _simulate_sample(context, draw, own, is_weighted=is_weighted, growth=growth)
    table = context.gather(split, np.column_stack([lower, excess, states]), "sampled paths")
    stages, dimension = context.problem.num_stages, context.problem.dimension
    by_stage = np.ascontiguousarray(table[:, 2:].reshape(count, stages, dimension).transpose(1, 0, 2))
    return SampledPaths(float(table[0, 0]), table[:, 1].copy(), by_stage)


def _simulate_sample(
    context: TrainingContext, draw: Draw, own: range, *, is_weighted: bool, growth: Sequence[float] | None
) -> tuple[Floats, Floats, Floats]:
    """Return lower bound, excess and states (one row for each path, all stages side by side) of this rank's paths."""
    problem = context.problem
    states = np.tile(problem.initial_state, (len(own), 1))
    lower, excess, expected = np.zeros(len(own)), np.zeros(len(own)), np.zeros(len(own))
    visited, scale = [], problem.cost_scale
    for stage in range(problem.num_stages):
        visited.append(states)
        solved = solve_all_openings(context, stage, states)
        weights = risk_into(problem, stage).weights(solved.costs)
        risk = weighted(weights, solved.costs)
        if stage == 0:
            lower = risk * problem.cost_scale
        else:
            more = risk - expected
            excess = excess + scale * (more if growth is None else np.maximum(more, 0.0))
        draws = draw.at(stage)[own.start : own.stop]
        opening = _choose(weights if is_weighted else np.full_like(solved.costs, 1.0 / solved.costs.shape[1]), draws)
        rows = np.arange(len(own))
        states = np.ascontiguousarray(solved.leaving[rows, opening])
        expected = solved.future[rows, opening]
        scale = scale * float(problem.discounts[stage])
        if growth is not None:
            scale = scale * growth[stage]
    return lower, excess, np.concatenate(visited, axis=1)


def _choose(weights: Floats, draws: Floats) -> NDArray[np.intp]:
    """Choose the opening that each draw in [0, 1) falls upon; never one without weight."""
    reached = np.add.accumulate(weights, axis=1)
    opening = np.argmax(reached > draws[:, None], axis=1)
    last = weights.shape[1] - 1 - np.argmax(weights[:, ::-1] > 0.0, axis=1)
    chosen: NDArray[np.intp] = np.where(draws < reached[:, -1], opening, last)
    return chosen


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
        states, stage_costs = _solve_nodes(context, stage, states)
        costs.append(stage_costs)
    return _folded(problem, costs) * problem.cost_scale


def _solve_nodes(context: TrainingContext, stage: int, states: Floats) -> tuple[Floats, Floats]:
    """Return the states that leave the nodes of a stage, and stage costs without the future: states x openings."""
    split = WorkSplit(len(states), context.comm.size)
    own = split.block(context.comm.rank)
    solved = solve_all_openings(context, stage, states[own.start : own.stop])
    rows = np.concatenate([solved.stage_costs[:, :, None], solved.leaving], axis=2)
    openings, width = rows.shape[1:]
    table_rows = context.gather(split, rows.reshape(len(own), openings * width), "nodes of a stage")
    table = table_rows.reshape(len(states), openings, width)
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
    """The requested method cannot bound this study; the message says why."""

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
    bound = UpperBound(BoundMethod.SAMPLED, lower + mean, lower, half_width, plan.confidence, plan.paths)
    if context.problem.is_risk_neutral:
        return bound
    excess = bounding_excess(context, draw)
    at_most = None
    if excess is not None:
        at_most = lower + sum_in_order(mean_with_half_width(excess.tolist(), plan.confidence))
    return replace(bound, is_estimate=True, at_most=at_most)
