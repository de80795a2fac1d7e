"""The exact cost of a policy: every path of the opening tree, folded back by the risk measure node by node."""

import numpy as np

from cobre.core.arrays import Floats
from cobre.sddp.plugins.risk import weighted
from cobre.sddp.problem.problem import Problem
from cobre.sddp.ranks.work_split import WorkSplit
from cobre.sddp.training.context import TrainingContext
from cobre.sddp.training.tree_iteration import policy_value as value_on_nodes
from cobre.sddp.upper_bounds.openings import risk_into, solve_all_openings


def tree_size(problem: Problem) -> int:
    """Nodes of the tree of all openings, or of the tree that the case enumerates."""
    if problem.tree is not None:
        return problem.tree.num_nodes
    nodes, total = 1, 0
    for opening in problem.openings:
        nodes *= opening.count
        total += nodes
    return total


def policy_cost(context: TrainingContext) -> float:
    """The exact cost of the policy over all paths, $. The same bits for any number of ranks."""
    problem = context.problem
    if problem.tree is not None:
        return value_on_nodes(context, problem.tree)
    states, costs = problem.initial_state[None], []
    for stage in range(problem.num_stages):
        states, found = _simulate(context, stage, states)
        costs.append(found)
    return _folded(problem, costs) * problem.cost_scale


def _simulate(context: TrainingContext, stage: int, states: Floats) -> tuple[Floats, Floats]:
    """What leaves the nodes of a stage, and what they cost without their future: states x openings."""
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
