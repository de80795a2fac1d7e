"""The lower bound: what the first stage costs under the policy, over all its openings."""

import numpy as np

from cobre.sddp.phases import Phase
from cobre.sddp.plugins.risk import weighted
from cobre.sddp.training.context import TrainingContext
from cobre.sddp.work_split import WorkSplit
from cobre.solver.batches import Chains, Keep

OPENINGS_PER_CHAIN = 5  # fixed, so that the bits do not depend on how many ranks or threads share the work


def lower_bound(context: TrainingContext, iteration: int) -> float:
    """In $; with all cuts that were ever made, whatever selection put aside."""
    problem, comm = context.problem, context.comm
    opening = problem.openings[0]
    split = WorkSplit(-(-opening.count // OPENINGS_PER_CHAIN), comm.size)
    chains = _chains(context, split.block(comm.rank))
    batch = context.solve(Phase.LOWER_BOUND, 0, iteration, chains, opening.realisations, Keep(), everything=True)
    own = np.full((len(chains.states), OPENINGS_PER_CHAIN), np.nan)
    own.reshape(-1)[: len(batch.objective)] = batch.objective
    table = context.gather(split, own, "lower bound")
    costs = np.empty((1, opening.count))
    costs[0, opening.order] = table.reshape(-1)[: opening.count]
    return float(weighted(problem.risk[0].weights(costs), costs)[0]) * problem.cost_scale


def _chains(context: TrainingContext, mine: range) -> Chains:
    """Neighbouring openings, a few in each chain."""
    problem = context.problem
    order = problem.openings[0].order
    edges = np.minimum(OPENINGS_PER_CHAIN * np.arange(mine.start, mine.stop + 1), len(order)).astype(np.int32)
    return Chains(
        states=np.tile(problem.initial_state, (len(mine), 1)),
        start=edges - edges[0],
        items=order[edges[0] : edges[-1]],
        bases=context.bases[0],
        basis_index=np.full(len(mine), context.basis_index(0), np.int32),
    )
