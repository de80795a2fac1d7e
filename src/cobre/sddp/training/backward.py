"""The backward pass at one stage: every trial point with every opening, and the cuts that follow."""

import numpy as np
from numpy.typing import NDArray

from cobre.sddp.cuts.pool import CutSet
from cobre.sddp.plugins.risk import weighted
from cobre.sddp.training.context import TrainingContext
from cobre.sddp.training.forward import Paths
from cobre.solver.batches import Chains, Keep
from cobre.solver.program import Floats


def make_cuts(context: TrainingContext, iteration: int, stage: int, paths: Paths) -> CutSet:
    """Cuts for the stage before `stage`, one for each of this rank's paths.

    Chains start from the basis that the same path had in the forward pass: it is optimal but for the opening and for
    the cuts that are new.
    """
    problem = context.problem
    opening = problem.openings[stage]
    states = paths.states[stage]
    chains = Chains.all_of(states, opening.order, paths.bases[stage], np.arange(len(states), dtype=np.int32))
    batch = context.solve(stage, iteration, chains, opening.realisations, Keep(gradient=True))
    shape = (len(states), opening.count)
    costs = _by_opening(batch.objective.reshape(shape), opening.order)
    slopes = _by_opening(batch.gradient.reshape(*shape, problem.dimension), opening.order)
    return _cuts(problem.risk[stage - 1].weights(costs), costs, slopes, states)


def _by_opening(values: Floats, order: NDArray[np.int32]) -> Floats:
    """From the order of the chain to that of the openings."""
    sorted_values = np.empty_like(values)
    sorted_values[:, order] = values
    return sorted_values


def _cuts(weights: Floats, costs: Floats, slopes: Floats, states: Floats) -> CutSet:
    """cost-to-go >= cost + slope . (x - state), averaged over openings; sums in a fixed order."""
    if not len(states):
        return CutSet(np.zeros(0), np.zeros(states.shape))
    if not states.shape[1]:
        return CutSet(weighted(weights, costs), np.zeros(states.shape))
    explained = np.add.accumulate(slopes * states[:, None, :], axis=2)[:, :, -1]
    return CutSet(weighted(weights, costs - explained), weighted(weights, slopes))
