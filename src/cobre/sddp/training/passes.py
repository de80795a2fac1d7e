"""The solves of an iteration: forward pass, backward pass and lower bound."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre._native import average_cuts
from cobre.comm import Communicator
from cobre.core.arrays import Floats, Indices, Ints
from cobre.records import dataclass
from cobre.sddp.cut_pool import CutPool, unstored_coefficient_error
from cobre.sddp.iteration_records import Phase
from cobre.sddp.plugins.risk import weighted
from cobre.sddp.problem.problem import Problem
from cobre.sddp.ranks import WorkSplit, gather_rows
from cobre.sddp.scenarios import discounted_costs, draw_noise
from cobre.sddp.training.chains import FirstStageSplit
from cobre.sddp.training.context import TrainingContext
from cobre.solver.batches import Bases, Batch, Chains, NewCuts, Outputs, PathOutputs, Step

# The forward pass: every path through the stages under the current policy, all paths of a team side by side.


@dataclass(frozen=True, slots=True)
class Paths:
    """The paths of this rank and of its team. states[t] enters stage t; costs are scaled."""

    states: Floats  # stages x paths x dimension
    bases: list[Bases]  # by stage; one basis for each path
    positions: list[Ints]  # by stage and path: the sampled realisation among the openings, driest first
    objective: Floats  # stages x paths
    future_cost: Floats
    drawn: list[Indices] | None = None  # by stage and path: as `drawn_openings`; None if paths are not a cost sample


def run_forward(context: TrainingContext, iteration: int) -> Paths:
    """Simulate the team's paths from the first stage to the last; complete when the team has waited."""
    problem = context.problem
    steps = [forward_step(context, iteration, stage) for stage in range(problem.num_stages)]
    first = np.tile(problem.initial_state, (len(context.team_paths), 1))
    out = PathOutputs(basis=True, shared=context.team.paths())
    solved = context.solve_paths(Phase.FORWARD, iteration, steps, first, out)
    bases = [Bases(status, cuts) for status, cuts in zip(solved.basis_status, solved.basis_cuts, strict=True)]
    chains = context.backward_chains
    positions = [chains.positions(step.stage, step.realisations, step.realisation_index) for step in steps]
    drawn = [drawn_openings(problem, step) for step in steps] if context.samples_policy_cost else None
    return Paths(solved.states, bases, positions, solved.objective, solved.future_cost, drawn)


def forward_step(context: TrainingContext, iteration: int, stage: int) -> Step:
    """Return the forward step of one stage for the team's paths: their noise, and the bases that they start from."""
    state, paths = context.state, context.team_paths
    noise, realisation_index = draw_noise(context.problem, context.sampler, iteration, paths, stage)
    if (draws := state.risk_draws) is not None:
        noise, realisation_index = draws.override_draws(iteration, paths, stage, (noise, realisation_index))
    rows = context.pool.rows(stage)
    if stage == 0 and (bases := state.first_stage_bases) is not None:
        positions = context.backward_chains.positions(stage, noise, realisation_index)
        nearest = context.problem.openings[stage].order[positions]
        return Step(stage, rows, noise, realisation_index, bases, basis_index=nearest)
    return Step(stage, rows, noise, realisation_index, state.bases[stage], *context.basis_sources[stage])


def drawn_openings(problem: Problem, step: Step) -> Indices:
    """Return, by path of the team, the opening that it draws in a step; -1 where its noise is not an opening."""
    opening, index = problem.openings[step.stage], step.realisation_index.astype(np.int64)
    if step.realisations is opening.realisations:
        return index
    first = len(step.realisations.inflow_m3s) - opening.count  # `RiskDraws.override_draws` puts openings last
    return np.where(index >= first, index - first, -1)


def first_bases(paths: Paths) -> list[Bases]:
    """Copy the basis of the first path, by stage; without a path, one to receive it into from another rank."""
    return [_first_basis(bases) for bases in paths.bases]


def _first_basis(bases: Bases) -> Bases:
    if not len(bases.status):
        widths = bases.status.shape[1], bases.cuts.shape[1]
        return Bases(np.zeros((1, widths[0]), np.int8), np.full((1, widths[1]), -1, np.int32))
    return Bases(bases.status[:1].copy(), bases.cuts[:1].copy())


def path_costs(problem: Problem, paths: Paths, own: slice) -> Floats:
    """Return the costs of some paths, in $ of the first stage's money."""
    return discounted_costs(problem, paths.objective[:, own], paths.future_cost[:, own])


# The backward pass at one stage: every trial point with every opening, and the cuts that follow.


@dataclass(frozen=True, slots=True)
class BackwardStage:
    """Solves of a stage in the backward pass, and the slots of their cuts.

    slots: in the stage before. cuts: destination; None: the solver returns gradients and the ranks build the cuts.
    """

    stage: int
    chains: Chains
    slots: range
    cuts: NewCuts | None


def plan_backward(context: TrainingContext, paths: Paths, slots: range, stages: Sequence[int]) -> list[BackwardStage]:
    """Prepare the solves of some stages from the tables of paths, which other members may still be filling.

    Prepare all stages at once: between solves the CPU caches hold LPs, and the same code runs four times slower.
    """
    chains = context.backward_chains
    return [
        BackwardStage(
            stage,
            chains.chains(stage, paths.states[stage], paths.bases[stage], paths.positions[stage]),
            slots,
            _cut_target(context, stage, slots),
        )
        for stage in stages
    ]


def add_cuts(context: TrainingContext, iteration: int, plan: BackwardStage, paths: Paths) -> Floats | None:
    """Solve a stage at all trial points, and add a cut for each of them to the stage before.

    Returns the costs of the openings that this rank's paths drew, scaled; None if paths are not a cost sample.

    If all ranks share one memory, the solver writes the cuts, and ranks wait for each other once. Otherwise, and for
    risk measures that depend on more than the order of costs, each rank builds the cuts of its own paths, and ranks
    exchange them.
    """
    stage, slots, pool, meter = plan.stage - 1, plan.slots, context.pool, context.meter
    solved = solve_openings(context, iteration, plan)
    meter.lap("backward")
    context.team.wait("openings")
    meter.lap("exchange")
    if plan.cuts is not None:
        pool.activate(stage, slots)
    else:
        cuts = build_cuts(context, plan.stage, paths, solved)
        meter.lap("backward")
        exchange_cuts(context.comm, context.split, pool, stage, slots, cuts)
        meter.lap("exchange")
    meter.count_bytes("cuts", len(slots) * pool.cut_bytes(stage))
    return _drawn_costs(context, plan.stage, paths, solved)


def _drawn_costs(context: TrainingContext, stage: int, paths: Paths, solved: Batch) -> Floats | None:
    """Return, by own path, the cost of the opening that it drew; valid until the stage after the next is solved."""
    if paths.drawn is None:
        return None
    own = context.own_rows
    costs = solved.objective.reshape(-1, context.problem.openings[stage].count)[own]
    if context.state.risk_draws is not None:
        context.state.risk_draws.record_weights(stage, costs)
    drawn: Floats = costs[np.arange(len(costs)), paths.drawn[stage][own]]  # -1: any, as it is not used
    return drawn


def solve_openings(context: TrainingContext, iteration: int, plan: BackwardStage) -> Batch:
    """Solve the team's trial points with all openings of a stage; complete when the team has waited."""
    stage, chains = plan.stage, plan.chains
    shared = context.team.solves(len(chains.realisation_index), context.problem.dimension)
    out = Outputs(gradient=True, cuts=plan.cuts, shared=shared)
    batch = context.solve(Phase.BACKWARD, iteration, stage, chains, out)
    if plan.cuts is not None and batch.has_stray_coefficients:
        raise unstored_coefficient_error(stage - 1)
    return batch


def build_cuts(context: TrainingContext, stage: int, paths: Paths, solved: Batch) -> Floats:
    """Build the cuts of the stage before `stage`, one for each of this rank's paths: intercept, then coefficients.

    cost-to-go >= cost + gradient . (x - state), averaged over openings with the weights of the risk measure.
    """
    problem, own, count = context.problem, context.own_rows, context.problem.openings[stage].count
    states = paths.states[stage, own]
    costs = solved.objective.reshape(-1, count)[own]
    weights = np.ascontiguousarray(problem.risk[stage - 1].weights(costs))
    return average_cuts(costs, weights, solved.gradient[own.start * count : own.stop * count], states)


def _cut_target(context: TrainingContext, stage: int, slots: range) -> NewCuts | None:
    """Return the destination of cuts that the solver writes; None if it cannot."""
    problem, pool = context.problem, context.pool
    if not (context.solver.makes_cuts and pool.is_shared_by_all_ranks):
        return None
    weights = problem.risk[stage - 1].spectral_weights(problem.openings[stage].count)
    return None if weights is None else pool.target(stage - 1, slots.start, weights)


def exchange_cuts(comm: Communicator, split: WorkSplit, pool: CutPool, stage: int, slots: range, own: Floats) -> None:
    """Put all ranks' cuts of a stage (rows of intercept and coefficients) into their slots, in the order of paths.

    If all ranks see the pool's memory, each writes its own cuts, and nothing else is copied. Otherwise cuts are
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


# The lower bound: the risk-adjusted cost of the first stage over all its openings.


def lower_bound(context: TrainingContext, iteration: int) -> float:
    """Return the lower bound in $, with all cuts, also those that selection deactivated."""
    return lower_bound_of(context.problem, first_stage_costs(context, iteration))


def lower_bound_of(problem: Problem, costs: Floats) -> float:
    """Return the risk of the costs of the first stage's openings (1 x openings, scaled), in $."""
    return float(weighted(problem.risk[0].weights(costs), costs)[0]) * problem.cost_scale


def first_stage_costs(context: TrainingContext, iteration: int) -> Floats:
    """Solve the first stage for each of its openings with all cuts; return scaled costs, 1 x openings.

    In a large stage each opening starts from its optimal basis of the last lower bound, and its new basis is kept.
    """
    state, first_stage = context.state, context.first_stage_chains
    split, chains = first_stage.chains(state.bases[0], state.first_stage_bases)
    shared = split.team.first_stage(len(split.realisation_index), has_bases=first_stage.keeps_bases)
    out = Outputs(basis=first_stage.keeps_bases, shared=shared)
    batch = context.solve(Phase.LOWER_BOUND, iteration, 0, chains, out, all_cuts=True)
    split.team.wait("lower bound")
    if first_stage.keeps_bases:
        tables = (batch.basis_status, batch.basis_cuts)
        state.first_stage_bases = Bases(*(_by_opening(context, split, table) for table in tables))
    # The gathering ends the job: no member begins another one before all have read the tables.
    table = context.gather(split.work, split.by_chain(batch.objective)[split.own_rows], "lower bound")
    return np.ascontiguousarray(split.by_opening(table).T)


def _by_opening(context: TrainingContext, split: FirstStageSplit, results: NDArray[Any]) -> NDArray[Any]:
    """Return a copy of the results of all teams' openings, by opening."""
    rows = split.by_chain(results)
    if len(split.team.members) < context.comm.size:
        rows = context.gather(split.work, rows[split.own_rows], "bases of the lower bound")
    return split.by_opening(rows)


def expected_first_stage_end(context: TrainingContext, iteration: int) -> tuple[float, ...] | None:
    """Return the mean over openings of the state at the end of the first stage, with all cuts; None except on rank 0.

    Rank 0 solves the first stage once more for this.
    """
    if context.comm.rank != 0:
        return None
    problem, opening = context.problem, context.problem.openings[0]
    states = np.tile(problem.initial_state, (opening.count, 1))
    numbers = np.arange(opening.count, dtype=np.int32)
    chains = Chains.single(states, opening.realisations, numbers, context.state.bases[0])
    if (bases := context.state.first_stage_bases) is not None:  # optimal, as `first_stage_costs` has left them
        chains = Chains(states, chains.start, opening.realisations, numbers, bases, numbers)
    batch = context.solve(Phase.LOWER_BOUND, iteration, 0, chains, Outputs(), all_cuts=True)
    ends = problem.stages[0].program.next_states(states, batch.decided, batch.inflow)
    return tuple((np.add.accumulate(ends, axis=0)[-1] / opening.count).tolist())
