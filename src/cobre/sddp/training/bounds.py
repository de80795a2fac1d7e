"""The lower bound: what the first stage costs under the policy, over all its openings."""

import numpy as np

from cobre.sddp.plugins.risk import weighted
from cobre.sddp.training.context import TrainingContext
from cobre.sddp.training.exchange import gather_rows
from cobre.sddp.work_split import WorkSplit
from cobre.solver.batches import Chains, Keep

OPENINGS_PER_CHAIN = 5  # fixed, so that the bits do not depend on how many ranks or threads share the work


def lower_bound(context: TrainingContext, iteration: int) -> float:
    """In $; with all cuts that were ever made, whatever selection put aside."""
    problem, comm = context.problem, context.comm
    opening = problem.openings[0]
    starts = list(range(0, opening.count, OPENINGS_PER_CHAIN))
    split = WorkSplit(len(starts), comm.size)
    mine = split.block(comm.rank)
    groups = [opening.order[starts[chain] : starts[chain] + OPENINGS_PER_CHAIN] for chain in mine]
    chains = Chains(
        states=np.tile(problem.initial_state, (len(groups), 1)),
        start=np.cumsum([0, *(len(group) for group in groups)], dtype=np.int32),
        items=np.concatenate([np.zeros(0, np.int32), *groups]).astype(np.int32),
        bases=context.bases[0],
        basis_index=np.full(len(groups), context.basis_index(0), np.int32),
    )
    batch = context.solve(0, iteration, chains, opening.realisations, Keep(), everything=True)
    own = np.full((len(groups), OPENINGS_PER_CHAIN), np.nan)
    own.reshape(-1)[np.arange(len(batch.objective))] = batch.objective
    table = gather_rows(comm, split, own, "lower bound")
    costs = np.empty((1, opening.count))
    costs[0, opening.order] = table.reshape(-1)[: opening.count]
    return float(weighted(problem.risk[0].weights(costs), costs)[0]) * problem.cost_scale
