"""The backward pass at one stage: every trial point with every opening, and the cuts that follow."""

from collections.abc import Sequence

import numpy as np

from cobre.core.arrays import Floats
from cobre.records import dataclass
from cobre.sddp.cuts.averages import average_cuts
from cobre.sddp.cuts.pool import stray_coefficients
from cobre.sddp.records.phases import Phase
from cobre.sddp.stage_solve import StageSolve
from cobre.sddp.training.clock import Clock
from cobre.sddp.training.context import TrainingContext
from cobre.sddp.training.exchange import exchange_cuts
from cobre.sddp.training.forward import Paths
from cobre.solver.batches import Batch, Chains, Outputs

GRADIENTS = Outputs(gradient=True)


@dataclass(frozen=True, slots=True)
class BackwardStage:
    """What is solved at a stage, and what becomes of it. slots: of the stage before, for the cuts."""

    stage: int
    chains: Chains
    outputs: Outputs
    slots: range


def plan_backward(context: TrainingContext, paths: Paths, slots: range, stages: Sequence[int]) -> list[BackwardStage]:
    """Prepare the solves of some stages; the paths may still be on their way, only where they lie is read here.

    All stages at once: between two of them caches are full of LPs, and the same lines take four times as long.
    """
    planned = context.backward_chains
    return [
        BackwardStage(
            stage,
            planned.chains(stage, paths.states[stage], paths.bases[stage], paths.positions[stage]),
            _outputs(context, stage, slots),
            slots,
        )
        for stage in stages
    ]


def add_cuts(
    context: TrainingContext, iteration: int, plan: BackwardStage, paths: Paths, clock: Clock
) -> Floats | None:
    """Solve a stage at all trial points, and give the stage before a cut for each of them.

    Returns the costs of the openings that this rank's paths drew, scaled; None where nobody wants them.

    Where one memory is seen by all ranks the solver makes the cuts, and ranks wait for each other once. Elsewhere, and
    for risk measures that look at more than the order of costs, they wait, make cuts of their own paths, and exchange.
    """
    solved = solve_openings(context, iteration, plan)
    clock.lap("backward")
    context.team.wait("openings")
    clock.lap("exchange")
    stage, slots, pool = plan.stage - 1, plan.slots, context.pool
    if plan.outputs.cuts is not None:
        pool.activate(stage, slots)
    else:
        cuts = make_cuts(context, plan.stage, paths, solved)
        clock.lap("backward")
        exchange_cuts(context.comm, context.split, pool, stage, slots, cuts)
        clock.lap("exchange")
    context.traffic.add("cuts", len(slots) * pool.cut_bytes(stage))
    return _drawn_costs(context, plan.stage, paths, solved)


def _drawn_costs(context: TrainingContext, stage: int, paths: Paths, solved: Batch) -> Floats | None:
    """By own path: the cost of the opening that it drew. Costs of a stage stay until the one after the next begins."""
    if paths.drawn is None:
        return None
    costs = solved.objective.reshape(-1, context.problem.openings[stage].count)[context.own]
    if context.risk_draws is not None:
        context.risk_draws.note_costs(stage, costs)
    drawn: Floats = costs[np.arange(len(costs)), paths.drawn[stage][context.own]]  # -1: any, as it is not used
    return drawn


def solve_openings(context: TrainingContext, iteration: int, plan: BackwardStage) -> Batch:
    """The team's trial points with all openings of a stage; complete when the team has waited."""
    stage, chains = plan.stage, plan.chains
    shared = context.team.solves(len(chains.realisation_index), context.problem.dimension)
    noise = context.problem.openings[stage].realisations
    batch = context.solve(Phase.BACKWARD, iteration, StageSolve(stage, chains, noise, plan.outputs, shared=shared))
    if plan.outputs.cuts is not None and batch.has_stray_coefficients:
        raise stray_coefficients(stage - 1)
    return batch


def make_cuts(context: TrainingContext, stage: int, paths: Paths, solved: Batch) -> Floats:
    """Cuts for the stage before `stage`, one for each of this rank's paths: rows of intercept and coefficients.

    cost-to-go >= cost + gradient . (x - state), averaged over openings as the risk measure says.
    """
    problem, own, count = context.problem, context.own, context.problem.openings[stage].count
    states = paths.states[stage, own]
    costs = solved.objective.reshape(-1, count)[own]
    weights = np.ascontiguousarray(problem.risk[stage - 1].weights(costs))
    return average_cuts(costs, weights, solved.gradient[own.start * count : own.stop * count], states)


def _outputs(context: TrainingContext, stage: int, slots: range) -> Outputs:
    """Gradients, and cuts where the solver can make them itself."""
    problem, pool = context.problem, context.pool
    if not (context.solver.makes_cuts and pool.is_shared_by_all_ranks):
        return GRADIENTS
    weights = problem.risk[stage - 1].spectral_weights(problem.openings[stage].count)
    return GRADIENTS if weights is None else Outputs(gradient=True, cuts=pool.target(stage - 1, slots.start, weights))
