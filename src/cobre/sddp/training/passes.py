"""Forward and backward pass of an iteration."""

from collections.abc import Sequence

import numpy as np

from cobre._native import average_cuts
from cobre.comm import Communicator
from cobre.core.arrays import Floats, Indices, Ints
from cobre.records import dataclass
from cobre.sddp.cut_pool import CutPool, stray_coefficients
from cobre.sddp.problem.problem import Problem
from cobre.sddp.ranks import WorkSplit, gather_rows
from cobre.sddp.records import Phase
from cobre.sddp.stage_solve import StageSolve, discounted_costs
from cobre.sddp.training.context import Clock, TrainingContext
from cobre.solver.batches import Bases, Batch, Chains, NewCuts, Outputs, PathOutputs

# The forward pass: every path through the stages under the present policy, all paths of a team side by side.


@dataclass(frozen=True, slots=True)
class Paths:
    """The paths of this rank and of its team. states[t] enters stage t; costs are scaled."""

    states: Floats  # stages x paths x dimension
    bases: list[Bases]  # by stage; one basis for each path
    positions: list[Ints]  # by stage and path: the sampled realisation among the openings, driest first
    objective: Floats  # stages x paths
    future_cost: Floats
    drawn: list[Indices] | None = None  # by stage and path: the opening, -1 where noise is none; None: not wanted


def run_forward(context: TrainingContext, iteration: int) -> Paths:
    """Take the team's paths from the first stage to the last; complete when the team has waited."""
    problem = context.problem
    steps = [context.step(iteration, stage) for stage in range(problem.num_stages)]
    first = np.tile(problem.initial_state, (len(context.team_paths), 1))
    out = PathOutputs(basis=True, shared=context.team.paths())
    solved = context.solve_paths(Phase.FORWARD, iteration, steps, first, out)
    bases = [Bases(status, cuts) for status, cuts in zip(solved.basis_status, solved.basis_cuts, strict=True)]
    planned = context.backward_chains
    positions = [planned.positions(step.stage, step.realisations, step.realisation_index) for step in steps]
    drawn = [context.drawn_openings(step) for step in steps] if context.samples_policy_cost else None
    return Paths(solved.states, bases, positions, solved.objective, solved.future_cost, drawn)


def path_costs(problem: Problem, paths: Paths, own: slice) -> Floats:
    """Return what some paths cost, in $ of the first stage's money."""
    return discounted_costs(problem, paths.objective[:, own], paths.future_cost[:, own])


# The backward pass at one stage: every trial point with every opening, and the cuts that follow.


@dataclass(frozen=True, slots=True)
class BackwardStage:
    """Solves of a stage in the backward pass, and where its cuts go.

    slots: of the stage before. cuts: where the solver puts them; None: it gives gradients, and ranks make the cuts.
    """

    stage: int
    chains: Chains
    slots: range
    cuts: NewCuts | None


def plan_backward(context: TrainingContext, paths: Paths, slots: range, stages: Sequence[int]) -> list[BackwardStage]:
    """Prepare the solves of some stages from the tables of paths, which other members may still be filling.

    All stages at once: between two of them caches are full of LPs, and the same lines take four times as long.
    """
    planned = context.backward_chains
    return [
        BackwardStage(
            stage,
            planned.chains(stage, paths.states[stage], paths.bases[stage], paths.positions[stage]),
            slots,
            _cut_target(context, stage, slots),
        )
        for stage in stages
    ]


def add_cuts(
    context: TrainingContext, iteration: int, plan: BackwardStage, paths: Paths, clock: Clock
) -> Floats | None:
    """Solve a stage at all trial points, and give the stage before a cut for each of them.

    Returns the costs of the openings that this rank's paths drew, scaled; None where they are not wanted.

    Where one memory is seen by all ranks the solver makes the cuts, and ranks wait for each other once. Elsewhere, and
    for risk measures that look at more than the order of costs, they wait, make cuts of their own paths, and exchange.
    """
    solved = solve_openings(context, iteration, plan)
    clock.lap("backward")
    context.team.wait("openings")
    clock.lap("exchange")
    stage, slots, pool = plan.stage - 1, plan.slots, context.pool
    if plan.cuts is not None:
        pool.activate(stage, slots)
    else:
        cuts = make_cuts(context, plan.stage, paths, solved)
        clock.lap("backward")
        exchange_cuts(context.comm, context.split, pool, stage, slots, cuts)
        clock.lap("exchange")
    context.traffic.add("cuts", len(slots) * pool.cut_bytes(stage))
    return _drawn_costs(context, plan.stage, paths, solved)


def _drawn_costs(context: TrainingContext, stage: int, paths: Paths, solved: Batch) -> Floats | None:
    """Return, by own path, the cost of the opening that it drew; valid until the stage after the next is solved."""
    if paths.drawn is None:
        return None
    costs = solved.objective.reshape(-1, context.problem.openings[stage].count)[context.own]
    if context.risk_draws is not None:
        context.risk_draws.note_costs(stage, costs)
    drawn: Floats = costs[np.arange(len(costs)), paths.drawn[stage][context.own]]  # -1: any, as it is not used
    return drawn


def solve_openings(context: TrainingContext, iteration: int, plan: BackwardStage) -> Batch:
    """Solve the team's trial points with all openings of a stage; complete when the team has waited."""
    stage, chains = plan.stage, plan.chains
    shared = context.team.solves(len(chains.realisation_index), context.problem.dimension)
    out = Outputs(gradient=True, cuts=plan.cuts, shared=shared)
    batch = context.solve(Phase.BACKWARD, iteration, StageSolve(stage, chains, out))
    if plan.cuts is not None and batch.has_stray_coefficients:
        raise stray_coefficients(stage - 1)
    return batch


def make_cuts(context: TrainingContext, stage: int, paths: Paths, solved: Batch) -> Floats:
    """Make the cuts of the stage before `stage`, one for each of this rank's paths: intercept, then coefficients.

    cost-to-go >= cost + gradient . (x - state), averaged over openings as the risk measure says.
    """
    problem, own, count = context.problem, context.own, context.problem.openings[stage].count
    states = paths.states[stage, own]
    costs = solved.objective.reshape(-1, count)[own]
    weights = np.ascontiguousarray(problem.risk[stage - 1].weights(costs))
    return average_cuts(costs, weights, solved.gradient[own.start * count : own.stop * count], states)


def _cut_target(context: TrainingContext, stage: int, slots: range) -> NewCuts | None:
    """Return where the solver puts the cuts, where it can make them itself."""
    problem, pool = context.problem, context.pool
    if not (context.solver.makes_cuts and pool.is_shared_by_all_ranks):
        return None
    weights = problem.risk[stage - 1].spectral_weights(problem.openings[stage].count)
    return None if weights is None else pool.target(stage - 1, slots.start, weights)


def exchange_cuts(comm: Communicator, split: WorkSplit, pool: CutPool, stage: int, slots: range, own: Floats) -> None:
    """Put all ranks' cuts of a stage (rows of intercept and coefficients) into their slots, in the order of paths.

    Where all ranks see the pool's memory each writes its own cuts, and nothing else is copied. Elsewhere cuts are
    gathered first: a pool is stored component by component, so they cannot be received in place.
    """
    own = pool.stored_columns(stage, own)
    if pool.is_shared_by_all_ranks:
        pool.write_at(stage, slots.start + split.block(comm.rank).start, own)
    else:
        table = gather_rows(comm, split, own, f"cuts of stage {stage}")
        if pool.is_leader:
            pool.write_at(stage, slots.start, table)
    pool.publish(stage, slots)
