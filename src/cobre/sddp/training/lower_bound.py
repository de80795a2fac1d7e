"""The lower bound: what the first stage costs under the policy, over all its openings."""

import numpy as np

from cobre.core.arrays import Floats
from cobre.sddp.plugins.risk import weighted
from cobre.sddp.records import Phase
from cobre.sddp.stage_solve import StageSolve
from cobre.sddp.training.context import TrainingContext
from cobre.solver.batches import Outputs


def lower_bound(context: TrainingContext, iteration: int) -> float:
    """Return the lower bound in $, with all cuts that were ever made, also those that selection deactivated."""
    return lower_bound_of(context, first_stage_costs(context, iteration))


def lower_bound_of(context: TrainingContext, costs: Floats) -> float:
    """Return the risk of the costs of the first stage's openings (1 x openings, scaled), in $."""
    problem = context.problem
    return float(weighted(problem.risk[0].weights(costs), costs)[0]) * problem.cost_scale


def first_stage_costs(context: TrainingContext, iteration: int) -> Floats:
    """Solve the first stage for each of its openings with all cuts; return scaled costs, 1 x openings."""
    opening = context.problem.openings[0]
    plan = context.lower_bound_plan
    shared = plan.team.solves(len(plan.realisation_index), 0)
    chains = plan.chains(context.bases[0])
    work = StageSolve(0, chains, Outputs(shared=shared), all_cuts=True)
    batch = context.solve(Phase.LOWER_BOUND, iteration, work)
    plan.team.wait("lower bound")
    found = np.full(plan.mask.shape, np.nan)
    found[plan.mask] = batch.objective
    table = context.gather(plan.split, found[plan.own], "lower bound")
    costs = np.empty((1, opening.count))
    costs[0, opening.order] = table.reshape(-1)[: opening.count]
    return costs
