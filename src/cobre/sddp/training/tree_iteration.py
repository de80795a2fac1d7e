"""An iteration over an enumerated tree: a forward and a backward pass that solve every node once, one cut a node.

The nodes of a stage are split among ranks; ranks with one shared memory form a team and take nodes from its counter.
Leaving states are gathered after each stage, because children of a node may belong to other ranks. In the backward pass
a team solves the same nodes, each from its optimal basis of the forward pass.
"""

from collections.abc import Iterator

import numpy as np

from cobre._native import average_cuts
from cobre.core.arrays import Floats, Indices
from cobre.records import dataclass
from cobre.sddp.iteration_records import IterationResult, Phase
from cobre.sddp.plugins.interfaces import CutSelection
from cobre.sddp.problem.scenario_tree import ScenarioTree
from cobre.sddp.ranks import WorkSplit
from cobre.sddp.training.context import TrainingContext
from cobre.sddp.training.passes import lower_bound
from cobre.sddp.training.select_cuts import apply_selection
from cobre.solver.batches import Bases, Batch, Chains, Outputs, no_bases

LEAVES_PER_UNIT = 8  # of a team: a call of the solver for each leaf would cost more than its LP


@dataclass(frozen=True, slots=True)
class TeamTreeNodes:
    """The nodes of one stage of the scenario tree that this rank's team solves. numbers: in the stage, from 0."""

    context: TrainingContext
    stage: int
    split: WorkSplit
    numbers: Indices

    @classmethod
    def of(cls, context: TrainingContext, stage: int, count: int) -> "TeamTreeNodes":
        """Return the team's share of a stage with `count` nodes."""
        split = WorkSplit(count, context.comm.size)
        return cls(context, stage, split, context.team.items(split))

    def new_rows(self) -> Floats:
        """Return a row for each node, an intercept or cost and an entry for each state; all members see them."""
        nodes = self.context.team.nodes
        shape = (len(self.numbers), 1 + self.context.problem.dimension)
        return np.zeros(shape) if nodes is None else nodes.rows(self.stage)

    def new_bases(self) -> Bases:
        """Return a table for one basis of each of the team's nodes, to be filled."""
        if (nodes := self.context.team.nodes) is not None:
            return nodes.bases(self.stage)
        none, count = no_bases(self.context.problem.stages[self.stage].program), len(self.numbers)
        return Bases(np.zeros((count, none.status.shape[1]), np.int8), np.zeros((count, none.cuts.shape[1]), np.int32))

    def claimed_groups(self) -> Iterator[slice]:
        """Yield groups of the team's nodes that this rank claims: each is one call of the solver.

        Every node has its own cuts, except leaves, which have none and are grouped.
        """
        nodes, total = self.context.team.nodes, len(self.numbers)
        is_leaf = self.stage == self.context.problem.num_stages - 1
        width = 1 if not is_leaf else max(1, total) if nodes is None else LEAVES_PER_UNIT
        groups = [slice(first, min(first + width, total)) for first in range(0, total, width)]
        yield from groups if nodes is None else (groups[number] for number in nodes.claimed_units(len(groups)))

    def gathered(self, rows: Floats, purpose: str) -> Floats:
        """Gather the rows of all nodes of the stage, once all members have solved what they took."""
        self.context.team.wait(purpose)
        # A copy: a member that has all rows may begin the next job, which reuses the memory.
        own_rows = rows[self.context.team.own_rows(self.split)].copy()
        return self.context.gather(self.split, own_rows, purpose)


@dataclass(frozen=True, slots=True)
class VisitedNodes:
    """The nodes of one stage. `bases` are those of the nodes of this rank's team."""

    entering: Floats  # nodes x dimension
    leaving: Floats
    costs: Floats  # without later stages, scaled; the terminal cost is included
    bases: Bases


def iterate_tree(
    context: TrainingContext, tree: ScenarioTree, iteration: int, selection: CutSelection | None
) -> IterationResult:
    """Run one iteration over a tree: forward pass, backward pass, and bounds, which are exact."""
    meter, state, stages = context.meter, context.state, context.problem.num_stages
    meter.restart()
    visited = _forward(context, tree, iteration)
    meter.lap("forward")
    slots = context.pool.reserve_slots(iteration, 1)
    for stage in range(stages - 1, 0, -1):
        cuts = _cuts(context, tree, iteration, stage, visited[stage])
        context.pool.write_node_cuts(tree.nodes(stage - 1), slots.start, cuts)
        meter.lap("backward")
    bound_value = lower_bound(context, iteration)
    meter.lap("bound")
    if state.visited.are_read(selection):
        split = WorkSplit(1, context.comm.size)
        own = split.block(context.comm.rank)
        state.visited.add(context.comm, split, _states(visited)[:, own.start : own.stop])
    if selection is not None and selection.is_due(iteration):
        states, poll = state.selection_states, context.solver.poll
        apply_selection(context.comm, context.pool, selection, state.visited, iteration, states, poll)
    meter.lap("bound")
    values = tree_value(context, tree, [nodes.costs for nodes in visited])
    return IterationResult(iteration, bound_value, _path_costs(context, tree, visited), values)


def policy_value(context: TrainingContext, tree: ScenarioTree) -> float:
    """Return the exact cost of the current policy in $: every node is solved once."""
    return tree_value(context, tree, [nodes.costs for nodes in _forward(context, tree, 0)])


def tree_value(context: TrainingContext, tree: ScenarioTree, costs: list[Floats]) -> float:
    """Return the cost of the policy in $: costs (stage, node) are folded from the leaves to the root."""
    problem = context.problem
    values = costs[-1]
    for stage in range(problem.num_stages - 2, -1, -1):
        start = tree.first[stage + 1]
        future = np.empty(len(tree.nodes(stage)))
        for position, node in enumerate(tree.nodes(stage)):
            children = tree.children(node)
            child_values = values[children.start - start : children.stop - start]
            weights = problem.risk[stage].weights_for(child_values, tree.probability[children.start : children.stop])
            future[position] = np.add.accumulate(weights * child_values)[-1]
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
    problem, program = context.problem, context.problem.stages[stage].program
    nodes = TeamTreeNodes.of(context, stage, len(entering))
    future = problem.future_weight(stage)
    rows, bases = nodes.new_rows(), nodes.new_bases()
    start = _starting_basis(context, tree, iteration, stage, entering)
    for group in nodes.claimed_groups():
        chains = _chains(tree, stage, entering, nodes.numbers[group], start)
        batch = _solve(context, Phase.FORWARD, tree, iteration, stage, chains, Outputs(basis=True))
        rows[group, :-1] = program.next_states(chains.states, batch.decided, batch.inflow)
        rows[group, -1] = batch.objective - future * batch.future_cost
        bases.status[group], bases.cuts[group] = batch.basis_status, batch.basis_cuts
    table = nodes.gathered(rows, "nodes of a stage")
    return VisitedNodes(entering, np.ascontiguousarray(table[:, :-1]), table[:, -1].copy(), bases)


def _starting_basis(
    context: TrainingContext, tree: ScenarioTree, iteration: int, stage: int, entering: Floats
) -> Bases:
    """Return the basis from which all nodes of a stage start: none, or for large LPs the optimal one of the first node.

    Every rank solves the first node: an additional cold start costs less than sharing a basis. For small LPs a cold
    start is as fast.
    """
    program = context.problem.stages[stage].program
    if len(entering) == 1 or not context.problem.is_large(stage):
        return no_bases(program)
    chains = _chains(tree, stage, entering, np.zeros(1, np.int64), no_bases(program))
    batch = _solve(context, Phase.FORWARD, tree, iteration, stage, chains, Outputs(basis=True))
    return Bases(batch.basis_status, batch.basis_cuts)


def _cuts(context: TrainingContext, tree: ScenarioTree, iteration: int, stage: int, visited: VisitedNodes) -> Floats:
    """Make the cuts of all nodes of the stage before `stage`, in order: rows of intercept and coefficients."""
    nodes = TeamTreeNodes.of(context, stage, len(visited.entering))
    rows, bases = nodes.new_rows(), visited.bases
    for group in nodes.claimed_groups():
        start = Bases(bases.status[group], bases.cuts[group])
        chains = _chains(tree, stage, visited.entering, nodes.numbers[group], start)
        batch = _solve(context, Phase.BACKWARD, tree, iteration, stage, chains, Outputs(gradient=True))
        rows[group, 0], rows[group, 1:] = batch.objective, batch.gradient
    table = nodes.gathered(rows, "values of nodes")
    return np.concatenate([_cut(context, tree, stage, node, table, visited) for node in tree.nodes(stage - 1)])


def _cut(
    context: TrainingContext, tree: ScenarioTree, stage: int, node: int, table: Floats, visited: VisitedNodes
) -> Floats:
    children, start = tree.children(node), tree.first[stage]
    rows = table[children.start - start : children.stop - start]
    costs, gradients = np.ascontiguousarray(rows[:, 0]), np.ascontiguousarray(rows[:, 1:])
    weights = context.problem.risk[stage - 1].weights_for(costs, tree.probability[children.start : children.stop])
    state = np.ascontiguousarray(visited.entering[children.start - start][None])
    return average_cuts(costs[None], np.ascontiguousarray(weights[None]), gradients, state)


def _chains(tree: ScenarioTree, stage: int, entering: Floats, numbers: Indices, bases: Bases) -> Chains:
    """Return a chain for each node, by its number in the stage. bases: one for each of them, one for all, or none."""
    count = np.arange(len(numbers) + 1, dtype=np.int32)
    index = count[:-1]
    if len(bases.status) < len(numbers):  # one for all, or none
        index = np.full(len(numbers), len(bases.status) - 1, np.int32)
    states, noise = np.ascontiguousarray(entering[numbers]), tree.realisations[stage]
    return Chains(states, count, noise, numbers.astype(np.int32), bases, index)


def _solve(
    context: TrainingContext,
    phase: Phase,
    tree: ScenarioTree,
    iteration: int,
    stage: int,
    chains: Chains,
    outputs: Outputs,
) -> Batch:
    node = tree.first[stage] + int(chains.realisation_index[0])
    return context.solve(phase, iteration, stage, chains, outputs, node=node)


def _states(visited: list[VisitedNodes]) -> Floats:
    """Return stage starts x 1 x dimension, as `VisitedStates` stores them: entering the root, leaving each node."""
    return np.concatenate([visited[0].entering, *(nodes.leaving for nodes in visited)])[:, None]


def _path_costs(context: TrainingContext, tree: ScenarioTree, visited: list[VisitedNodes]) -> Floats:
    """Return the cost of each path in $ of the first stage's money."""
    problem, paths = context.problem, tree.paths()
    costs = np.concatenate([nodes.costs for nodes in visited])[paths]
    total: Floats = np.add.accumulate(costs * problem.discount_to_first_stage * problem.cost_scale, axis=1)[:, -1]
    return total
