"""How steep the cost-to-go can be: proven from what every stage can always do, whatever it decided.

A state that changes by one unit moves right-hand sides. Columns without an upper limit (spillage, slacks with a
penalty) can always take that up, from any solution; the cheapest way to do so is an LP over the directions in which
columns and rows have no limit (the recession cone). Its optimum limits the rise of the stage's cost for every opening,
and so that of any coherent risk measure of it. Outgoing states that must change count with the next stage's limits.
"""

from dataclasses import replace

import numpy as np

from cobre.core.arrays import Floats
from cobre.sddp.problem.problem import Problem
from cobre.sddp.upper_bounds.inner_program import NO_CUTS, InnerFuture, Slopes, inner_program, with_lags
from cobre.solver.batches import Bases, Chains, CutRows, LpSolver, Outputs, Realisations, SolveFailedError
from cobre.solver.program import Corrections, StageProgram


def slopes_of_boundary(dimension: int, boundary: CutRows | None) -> Slopes:
    """After the last stage: those of another study's cuts, or none."""
    if boundary is None or not boundary.count:
        return Slopes(np.zeros(dimension), np.zeros(dimension))
    table = np.concatenate(boundary.chunks, axis=1)[:, : boundary.count]
    up, down = np.zeros(dimension), np.zeros(dimension)
    for component in range(dimension):
        row = 1 + component if boundary.rows is None else int(boundary.rows[component])
        if row >= 0:
            up[component] = max(0.0, float(table[row].max()))
            down[component] = max(0.0, float(-table[row].min()))
    return Slopes(up, down)


def slopes_before(problem: Problem, solver: LpSolver, number: int, stage: int, later: Slopes) -> Slopes:
    """Bounds on the slopes of the cost-to-go before a stage, from those after it.

    number: the number under which the solver holds the auxiliary LP.
    """
    program, dimension = problem.stages[stage].program, problem.dimension
    origin = InnerFuture(np.zeros((1, dimension)), np.zeros(1), later, np.ones(dimension, bool))
    directions = inner_program(_directions(program), origin)
    solver.load(number, directions)
    zero_noise = _nothing_happens(problem.openings[stage].realisations)
    changes = with_lags(program, np.concatenate([np.eye(dimension), -np.eye(dimension)]))
    found = np.array([_least_cost(solver, number, directions, change[None], zero_noise) for change in changes])
    return Slopes(found[:dimension], found[dimension:])


def _nothing_happens(usual: Realisations) -> Realisations:
    """A single realisation with zero inflow, load and availability."""
    parts = (usual.inflow_m3s, usual.load_mw, usual.availability)
    return Realisations(*(np.zeros((1, part.shape[1])) for part in parts))


def _directions(program: StageProgram) -> StageProgram:
    """The program of changes: what has a limit cannot go towards it."""
    lower, upper = (_unlimited(side) for side in (program.column_lower, program.column_upper))
    return replace(
        program,
        column_lower=lower,
        column_upper=upper,
        row_lower=_unlimited(program.row_lower),
        row_upper=_unlimited(program.row_upper),
        load_factor=np.zeros_like(program.load_factor),
        source_factor=np.zeros_like(program.source_factor),
        truncates=False,
        corrections=_none_of(program.corrections),
    )


def _none_of(corrections: Corrections | None) -> Corrections | None:
    """Corrections follow from inflows below zero alone, not from changes of the state."""
    return None if corrections is None else replace(corrections, factor=np.zeros_like(corrections.factor))


def _unlimited(side: Floats) -> Floats:
    return np.where(np.isfinite(side), 0.0, side)


def _least_cost(
    solver: LpSolver, number: int, program: StageProgram, change: Floats, zero_noise: Realisations
) -> float:
    """The least cost of a change of the state, scaled and at least zero.

    Inf where nothing can absorb it for certain.
    """
    chains = Chains.single(change, np.zeros(1, np.int32), Bases.none(program))
    try:
        batch = solver.solve(number, NO_CUTS, chains, zero_noise, Outputs())
    except SolveFailedError:
        return np.inf
    return max(0.0, float(batch.objective[0]))
