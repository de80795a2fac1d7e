"""The lower bound: what the first stage costs under the policy, over all its openings."""

import numpy as np

from cobre.core.arrays import Indices
from cobre.sddp.phases import Phase
from cobre.sddp.plugins.risk import weighted
from cobre.sddp.training.context import TrainingContext
from cobre.sddp.training.team import Team
from cobre.sddp.work_split import WorkSplit
from cobre.solver.batches import Chains, Keep

OPENINGS_PER_CHAIN = 5  # fixed, so that the bits do not depend on how many ranks or threads share the work


def lower_bound(context: TrainingContext, iteration: int) -> float:
    """The lower bound in $, with all cuts that were ever made, also those that selection made inactive."""
    problem, comm = context.problem, context.comm
    opening = problem.openings[0]
    split = WorkSplit(-(-opening.count // OPENINGS_PER_CHAIN), comm.size)
    team = context.team if problem.tree is None else Team.alone(comm.rank)  # a root has one opening
    places = _places(team.items(split), opening.count)
    chains = _chains(context, places)
    common = team.solves(len(chains.items), 0)
    batch = context.solve(
        Phase.LOWER_BOUND, 0, iteration, chains, opening.realisations, Keep(), all_cuts=True, common=common
    )
    team.wait("lower bound")
    found = np.full(places.shape, np.nan)
    found[places >= 0] = batch.objective
    table = context.gather(split, found[team.own(split)], "lower bound")
    costs = np.empty((1, opening.count))
    costs[0, opening.order] = table.reshape(-1)[: opening.count]
    return float(weighted(problem.risk[0].weights(costs), costs)[0]) * problem.cost_scale


def _chains(context: TrainingContext, places: Indices) -> Chains:
    """Neighbouring openings, a few in each chain."""
    problem = context.problem
    lengths = (places >= 0).sum(axis=1)
    return Chains(
        states=np.tile(problem.initial_state, (len(places), 1)),
        start=np.concatenate([[0], np.add.accumulate(lengths)]).astype(np.int32),
        items=problem.openings[0].order[places[places >= 0]],
        bases=context.bases[0],
        basis_index=np.full(len(places), 0 if len(context.bases[0].status) else -1, np.int32),
    )


def _places(numbers: Indices, openings: int) -> Indices:
    """Chains x OPENINGS_PER_CHAIN: positions in the order of openings; -1 beyond the last opening."""
    places = OPENINGS_PER_CHAIN * numbers[:, None] + np.arange(OPENINGS_PER_CHAIN)
    return np.where(places < openings, places, -1)
