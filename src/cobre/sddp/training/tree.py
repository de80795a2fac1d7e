"""An iteration over a tree: every node once on the way forward, once on the way back, one cut for each.

Nodes are shared out among ranks stage by stage. What leaves a stage is gathered, for children may live elsewhere; on
the way back each rank solves the nodes that it had, from the bases that it found there.
"""

from dataclasses import dataclass

import numpy as np

from cobre.core.arrays import Floats
from cobre.sddp.cuts.averages import average_cuts
from cobre.sddp.phases import Phase
from cobre.sddp.plugins.interfaces import CutSelection
from cobre.sddp.training.bounds import lower_bound
from cobre.sddp.training.clock import Clock
from cobre.sddp.training.context import TrainingContext
from cobre.sddp.training.iteration_result import IterationResult
from cobre.sddp.training.selection import apply_selection
from cobre.sddp.tree import ScenarioTree, children_weights
from cobre.sddp.work_split import WorkSplit
from cobre.solver.batches import Bases, Batch, Chains, Keep


@dataclass(frozen=True, slots=True)
class VisitedNodes:
    """The nodes of one stage. `bases` are those of this rank's nodes, by group of `_groups`."""

    entering: Floats  # nodes x dimension
    leaving: Floats
    costs: Floats  # of the stage alone, in LP money; with what lies beyond the last stage
    bases: list[Bases]


def iterate_tree(
    context: TrainingContext, tree: ScenarioTree, iteration: int, selection: CutSelection | None
) -> IterationResult:
    """Forward, backward, bounds: both are exact."""
    context.start_counting()
    clock, stages = Clock(), context.problem.num_stages
    visited = _forward(context, tree, iteration)
    clock.lap("forward")
    slots = context.pool.open_slots(iteration, 1)
    for stage in range(stages - 1, 0, -1):
        cuts = _cuts(context, tree, iteration, stage, visited[stage])
        context.pool.write_each(tree.nodes(stage - 1), slots.start, cuts)
        clock.lap("backward")
    bound_value = lower_bound(context, iteration)
    clock.lap("bound")
    if (selection is not None and selection.reads_states) or context.keeps_states:
        split = WorkSplit(1, context.comm.size)
        own = split.block(context.comm.rank)
        context.visited.add(context.comm, split, _states(visited)[:, own.start : own.stop])
    if selection is not None and selection.is_due(iteration):
        apply_selection(context.comm, context.pool, selection, context.visited, iteration, context.selection_memory)
    clock.lap("bound")
    values = tree_value(context, tree, [found.costs for found in visited])
    return IterationResult(iteration, bound_value, _path_costs(context, tree, visited), clock, values)


def policy_value(context: TrainingContext, tree: ScenarioTree) -> float:
    """What the present policy costs in $, exactly: every node solved once."""
    return tree_value(context, tree, [found.costs for found in _forward(context, tree, 0)])


def tree_value(context: TrainingContext, tree: ScenarioTree, costs: list[Floats]) -> float:
    """What the policy costs in $: costs (stage, node) brought back from the leaves to the root."""
    problem = context.problem
    values = costs[-1]
    for stage in range(problem.num_stages - 2, -1, -1):
        start = tree.first[stage + 1]
        future = np.empty(len(tree.nodes(stage)))
        for at, node in enumerate(tree.nodes(stage)):
            own = tree.children(node)
            found = values[own.start - start : own.stop - start]
            weights = children_weights(problem.risk[stage], found, tree.probability[own.start : own.stop])
            future[at] = np.add.accumulate(weights * found)[-1]
        values = costs[stage] + problem.discounts[stage] * future
    return float(values[0]) * problem.cost_scale


def _forward(context: TrainingContext, tree: ScenarioTree, iteration: int) -> list[VisitedNodes]:
    problem = context.problem
    leaving, visited = problem.initial_state[None], []
    for stage in range(problem.num_stages):
        above = tree.parent[tree.nodes(stage).start : tree.nodes(stage).stop]
        entering = leaving[above - tree.first[stage - 1]] if stage else leaving
        visited.append(_solve_forward(context, tree, iteration, stage, np.ascontiguousarray(entering)))
        leaving = visited[-1].leaving
    return visited


def _solve_forward(
    context: TrainingContext, tree: ScenarioTree, iteration: int, stage: int, entering: Floats
) -> VisitedNodes:
    problem, split = context.problem, WorkSplit(len(entering), context.comm.size)
    is_last = stage == problem.num_stages - 1
    future = 0.0 if is_last else problem.discounts[stage]
    rows, bases = [np.zeros((0, problem.dimension + 1))], []
    for group in _groups(context, stage, split):
        chains = _chains(entering, group, Bases.none(problem.stages[stage].program))
        batch = _solve(context, Phase.FORWARD, tree, iteration, stage, group, chains, Keep(basis=True))
        states = problem.stages[stage].program.next_states(
            entering[group.start : group.stop], batch.decided, batch.inflow
        )
        rows.append(np.column_stack([states, batch.objective - future * batch.future_cost]))
        bases.append(Bases(batch.basis_status, batch.basis_cuts))
    table = context.gather(split, np.concatenate(rows), "nodes of a stage")
    return VisitedNodes(entering, np.ascontiguousarray(table[:, :-1]), table[:, -1].copy(), bases)


def _cuts(context: TrainingContext, tree: ScenarioTree, iteration: int, stage: int, visited: VisitedNodes) -> Floats:
    """Cuts of all nodes of the stage before `stage`, in order: rows of intercept and coefficients."""
    problem, split = context.problem, WorkSplit(len(visited.entering), context.comm.size)
    rows = [np.zeros((0, problem.dimension + 1))]
    for group, bases in zip(_groups(context, stage, split), visited.bases, strict=True):
        chains = _chains(visited.entering, group, bases)
        batch = _solve(context, Phase.BACKWARD, tree, iteration, stage, group, chains, Keep(gradient=True))
        rows.append(np.column_stack([batch.objective, batch.gradient]))
    table = context.gather(split, np.concatenate(rows), "values of nodes")
    return np.concatenate([_cut(context, tree, stage, node, table, visited) for node in tree.nodes(stage - 1)])


def _cut(
    context: TrainingContext, tree: ScenarioTree, stage: int, node: int, table: Floats, visited: VisitedNodes
) -> Floats:
    own, start = tree.children(node), tree.first[stage]
    found = table[own.start - start : own.stop - start]
    costs = np.ascontiguousarray(found[:, 0])
    weights = children_weights(context.problem.risk[stage - 1], costs, tree.probability[own.start : own.stop])
    state = np.ascontiguousarray(visited.entering[own.start - start][None])
    return average_cuts(costs[None], np.ascontiguousarray(weights[None]), np.ascontiguousarray(found[:, 1:]), state)


def _groups(context: TrainingContext, stage: int, split: WorkSplit) -> list[range]:
    """This rank's nodes of a stage, counted from its first; leaves have no cuts of their own and go together."""
    own = split.block(context.comm.rank)
    if stage == context.problem.num_stages - 1:
        return [own] if own else []
    return [range(node, node + 1) for node in own]


def _chains(entering: Floats, group: range, bases: Bases) -> Chains:
    states = np.ascontiguousarray(entering[group.start : group.stop])
    count = np.arange(len(group) + 1, dtype=np.int32)
    index = np.arange(len(group), dtype=np.int32) if len(bases.status) else np.full(len(group), -1, np.int32)
    return Chains(states, count, np.array(group, np.int32), bases, index)


def _solve(
    context: TrainingContext,
    phase: Phase,
    tree: ScenarioTree,
    iteration: int,
    stage: int,
    group: range,
    chains: Chains,
    keep: Keep,
) -> Batch:
    node = tree.first[stage] + group.start
    return context.solve(phase, stage, iteration, chains, tree.realisations[stage], keep, pool_number=node)


def _states(visited: list[VisitedNodes]) -> Floats:
    """Places x 1 x dimension: what enters the root, then what leaves each node."""
    return np.concatenate([visited[0].entering, *(found.leaving for found in visited)])[:, None]


def _path_costs(context: TrainingContext, tree: ScenarioTree, visited: list[VisitedNodes]) -> Floats:
    """By path: its cost in $ of the first stage's money."""
    problem, paths = context.problem, tree.paths()
    weights = np.concatenate([np.ones(1), np.multiply.accumulate(problem.discounts)[:-1]])
    costs = np.concatenate([found.costs for found in visited])[paths]
    total: Floats = np.add.accumulate(costs * weights * problem.cost_scale, axis=1)[:, -1]
    return total
