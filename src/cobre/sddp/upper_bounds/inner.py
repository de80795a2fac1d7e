"""A deterministic upper bound by inner approximation (Philpott, de Matos and Finardi 2013), under any coherent risk.

From the last stage to the first, every vertex is solved for all openings, with the inner approximation of what follows
in place of cuts: the risk of those costs is an upper bound of the cost-to-go at the vertex. At the first stage it is an
upper bound of what training minimises. The cost-to-go must be convex: inflow truncated at zero while it depends on its
own past is not, and is refused.
"""

import numpy as np

from cobre.core.arrays import Flags, Floats
from cobre.sddp.cuts.components import stored_components
from cobre.sddp.plugins.risk import weighted
from cobre.sddp.ranks.work_split import WorkSplit
from cobre.sddp.records.phases import Phase
from cobre.sddp.training.context import TrainingContext
from cobre.sddp.upper_bounds.inner_program import NO_CUTS, InnerFuture, Slopes, inner_program, with_lags
from cobre.sddp.upper_bounds.openings import chains_over_openings, risk_into
from cobre.sddp.upper_bounds.slopes import slopes_before, slopes_of_boundary
from cobre.sddp.upper_bounds.vertices import boxes, corners
from cobre.solver.batches import Outputs, SolveFailedError


def inner_bound(context: TrainingContext, visited: Floats) -> tuple[float, int]:
    """The bound in $ and the number of vertices; inf where no vertex of some stage has a feasible LP.

    visited: states that enter the stages (stage, path, component): the more like the policy's, the tighter the bound.
    The same bits for any number of ranks.
    """
    sweep = _Sweep(context, visited)
    for stage in range(context.problem.num_stages - 1, 0, -1):
        sweep.step_to(stage)
    return float(sweep.values(0, context.problem.initial_state[None])[0]) * context.problem.cost_scale, sweep.vertices


class _Sweep:
    """The way back through the stages. future: of the stage that is at hand; None: the last one."""

    def __init__(self, context: TrainingContext, visited: Floats) -> None:
        problem, boundary = context.problem, context.pool.boundary
        self.context, self.problem, self.visited = context, problem, visited
        self.number = problem.num_stages  # a number in the solver that no stage has
        programs = [stage.program for stage in problem.stages]
        self.relevant: list[Flags] = stored_components(programs, is_priced=boundary is not None)
        self.boxes = boxes(problem, visited)
        self.slopes = slopes_of_boundary(problem.dimension, boundary)
        self.future: InnerFuture | None = None
        self.vertices = 0

    def step_to(self, stage: int) -> None:
        """Upper bounds of the cost-to-go before a stage, from those after it."""
        relevant = self.relevant[stage - 1]
        states = np.concatenate([self.visited[stage], corners(self.boxes[stage], relevant)])
        states = states[np.unique(states[:, relevant], axis=0, return_index=True)[1]]
        values = self.values(stage, np.ascontiguousarray(states))
        is_feasible = np.isfinite(values)
        slopes = slopes_before(self.problem, self.context.solver, self.number, stage, self.slopes)
        self.slopes = self._agreed(slopes)
        self.vertices += int(is_feasible.sum())
        self.future = InnerFuture(states[is_feasible], values[is_feasible], self.slopes, relevant)

    def values(self, stage: int, states: Floats) -> Floats:
        """The risk of a stage's costs at some states, scaled; inf where a state has no solution."""
        if self.future is not None and not len(self.future.values):
            return np.full(len(states), np.inf)
        if self.future is not None:
            program = inner_program(self.problem.stages[stage].program, self.future)
            self.context.solver.load(self.number, program)
        split = WorkSplit(len(states), self.context.comm.size)
        own = split.block(self.context.comm.rank)
        costs = self._costs(stage, states[own.start : own.stop])
        risk = weighted(risk_into(self.problem, stage).weights(costs), costs)
        return self.context.gather(split, risk.reshape(-1, 1), "values of vertices")[:, 0]

    def _costs(self, stage: int, states: Floats) -> Floats:
        """States x openings; a state that cannot be solved does not keep the others from it."""
        if not len(states):
            return np.zeros((0, self.problem.openings[stage].count))
        try:
            return self._solve(stage, states)
        except SolveFailedError:
            if len(states) == 1:
                return np.full((1, self.problem.openings[stage].count), np.inf)
            half = len(states) // 2
            return np.concatenate([self._costs(stage, states[:half]), self._costs(stage, states[half:])])

    def _solve(self, stage: int, states: Floats) -> Floats:
        program, opening = self.problem.stages[stage].program, self.problem.openings[stage]
        context = self.context
        if self.future is None:
            cuts, number = context.pool.rows(stage, all_cuts=True), stage
            chains = chains_over_openings(opening, states, program)
        else:
            cuts, number = NO_CUTS, self.number
            chains = chains_over_openings(opening, with_lags(program, states), program)
        batch = context.solver.solve(number, cuts, chains, opening.realisations, Outputs())
        context.counter.add(Phase.SIMULATION, batch)
        return batch.objective.reshape(len(states), opening.count)

    def _agreed(self, slopes: Slopes) -> Slopes:
        """The slopes that rank 0 found, on all ranks: solves that fail on one rank alone must not tell them apart."""
        both = np.concatenate([slopes.up, slopes.down])
        self.context.comm.broadcast(both, 0, label="slopes of the cost-to-go")
        return Slopes(*np.split(both, 2))
