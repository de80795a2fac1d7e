"""The backward pass at one stage: every trial point with every opening, and the cuts that follow."""

import numpy as np

from cobre.core.arrays import Floats
from cobre.sddp.cuts.averages import average_cuts
from cobre.sddp.phases import Phase
from cobre.sddp.training.context import TrainingContext
from cobre.sddp.training.forward import Paths
from cobre.solver.batches import Batch, Keep


def solve_openings(context: TrainingContext, iteration: int, stage: int, paths: Paths) -> Batch:
    """The team's trial points with all openings of a stage; complete when the team has waited."""
    opening = context.problem.openings[stage]
    states = paths.states[stage]
    chains = opening.chains(states, paths.bases[stage], paths.positions[stage])
    common = context.team.solves(len(chains.items), states.shape[1])
    keep = Keep(gradient=True)
    return context.solve(Phase.BACKWARD, stage, iteration, chains, opening.realisations, keep, common=common)


def make_cuts(context: TrainingContext, stage: int, paths: Paths, solved: Batch) -> Floats:
    """Cuts for the stage before `stage`, one for each of this rank's paths: rows of intercept and coefficients.

    cost-to-go >= cost + slope . (x - state), averaged over openings as the risk measure says.
    """
    problem, own, count = context.problem, context.own, context.problem.openings[stage].count
    states = paths.states[stage, own]
    costs = solved.objective.reshape(-1, count)[own]
    weights = np.ascontiguousarray(problem.risk[stage - 1].weights(costs))
    return average_cuts(costs, weights, solved.gradient[own.start * count : own.stop * count], states)
