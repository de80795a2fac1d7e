"""The backward pass at one stage: every trial point with every opening, and the cuts that follow."""

import numpy as np

from cobre.sddp.cuts.averages import average_cuts
from cobre.sddp.phases import Phase
from cobre.sddp.training.context import TrainingContext
from cobre.sddp.training.forward import Paths
from cobre.solver.batches import Keep
from cobre.solver.program import Floats


def make_cuts(context: TrainingContext, iteration: int, stage: int, paths: Paths) -> Floats:
    """Cuts for the stage before `stage`, one for each of this rank's paths: rows of intercept and coefficients.

    cost-to-go >= cost + slope . (x - state), averaged over openings as the risk measure says.
    """
    problem = context.problem
    opening = problem.openings[stage]
    states = paths.states[stage]
    chains = opening.chains(states, paths.bases[stage], paths.met[stage])
    batch = context.solve(Phase.BACKWARD, stage, iteration, chains, opening.realisations, Keep(gradient=True))
    costs = batch.objective.reshape(len(states), opening.count)
    weights = np.ascontiguousarray(problem.risk[stage - 1].weights(costs))
    return average_cuts(costs, weights, batch.gradient, states)
