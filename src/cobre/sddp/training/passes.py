"""Forward and backward pass of an iteration, simulated paths for stopping rules, and values of trial points."""

from collections.abc import Sequence
from contextlib import closing

import numpy as np

from cobre._native import average_cuts
from cobre.core.arrays import Floats, Indices, Ints
from cobre.core.bounds import UpperBound
from cobre.core.confidence import mean_and_std
from cobre.core.policy_cost import CostSample
from cobre.records import dataclass
from cobre.sddp.cut_pool import CutPool, stray_coefficients
from cobre.sddp.plugins.interfaces import EVALUATION_BIT, Sampler, StoppingRule
from cobre.sddp.problem.problem import Problem
from cobre.sddp.ranks import WorkSplit
from cobre.sddp.records import IterationRecord, Phase, TrialPoints
from cobre.sddp.stage_solve import StageBatch, StageSolve, discounted_costs, sampled, simulate_stages
from cobre.sddp.training.context import Clock, TrainingContext
from cobre.sddp.training.team import Team, exchange_cuts
from cobre.sddp.upper_bounds.find import find_upper_bound
from cobre.solver.batches import Bases, Batch, Chains, NewCuts, Outputs, PathOutputs, Realisations, Step

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


# Simulated costs and upper bounds of the present policy, for stopping rules that need them.


def simulated_costs(
    context: TrainingContext, rules: Sequence[StoppingRule], history: Sequence[IterationRecord]
) -> Floats | None:
    """Return costs of as many simulated paths as some rule needs now; None when none does."""
    wanted = max((rule.needs_simulation(history) for rule in rules), default=0)
    return evaluate_policy(context, history[-1].iteration, wanted) if wanted else None


def upper_bounds(
    context: TrainingContext, rules: Sequence[StoppingRule], history: Sequence[IterationRecord]
) -> list[UpperBound | None]:
    """Return the upper bound that each rule needs now; the first of them stays in the context."""
    plans = [rule.needs_bound(history) for rule in rules]
    iteration = history[-1].iteration
    found = [None if plan is None else find_upper_bound(context, plan, iteration) for plan in plans]
    context.upper_bound = next((bound for bound in found if bound is not None), None)
    return found


def evaluate_policy(context: TrainingContext, iteration: int, replications: int) -> Floats:
    """Return costs, in $ of the first stage's money, of paths that training never sampled; the same on all ranks.

    Paths follow the scheme of the forward passes, all cuts count, and every evaluation draws new paths. The costs have
    the same bits for any number of ranks and threads.
    """
    split = WorkSplit(replications, context.comm.size)
    sampler = context.sampler.for_scenarios(replications)
    with closing(Team.for_scenarios(context.comm, context.pool.memory, context.problem, split)) as team:
        costs = _path_costs(context, sampler, iteration, team.indices(split), team)[team.own(split)]
    return context.gather(split, costs.reshape(-1, 1), "costs of simulated paths")[:, 0]


def _path_costs(context: TrainingContext, sampler: Sampler, iteration: int, paths: Indices, team: Team) -> Floats:
    problem = context.problem

    def noise(stage: int) -> tuple[Realisations, Ints]:
        return sampled(problem, sampler, iteration | EVALUATION_BIT, paths, stage)

    def solve(stage: int, states: Floats, realisations: Realisations, realisation_index: Ints) -> StageBatch:
        rows = context.pool.rows(stage, all_cuts=True)
        step = Step(stage, rows, realisations, realisation_index, context.bases[stage])
        out = PathOutputs(shared=team.scenarios(problem.stages[stage].program, len(states)))
        batch = context.solve_paths(Phase.SIMULATION, iteration, [step], states, out)
        team.wait("simulated paths")
        return StageBatch.of(batch)

    results = simulate_stages(problem, len(paths), noise, solve)
    table = np.array([(result.batch.objective.copy(), result.batch.future_cost.copy()) for result in results])
    return discounted_costs(problem, table[:, 0], table[:, 1])


# Values of trial points from the backward pass, compared with those of the cuts that the forward pass followed.
#
# The value of a trial point is the risk-adjusted cost of all later stages there, with the new cuts of
# this iteration. The new cut takes this value at its own trial point, so nothing more has to be solved or stored.
#
# The forward pass left the stage with a future cost: the highest of the older cuts. Its *excess* is the
# value less that cost. Cuts of a convex cost-to-go are below it, and later ones only raise it: an excess is negative
# by rounding alone. Where inflows that are truncated at zero depend on their past the cost-to-go is not convex in the
# lags. Then cuts may be above the value, and the lower bound above the cost of the policy (docs/adr/0045).
#
# What the policy of the forward pass costs follows from the same numbers (docs/adr/0060). The backward pass has
# solved the opening that a path drew, and knows the mean over all of them: the difference is the effect of chance at
# this stage, and its mean is 0. A path's cost less these effects has the same mean, and hardly any variance once cuts
# agree with the cost of the policy.


ROUNDING = 1e-7  # relative to the value of a trial point: tolerance of the LPs that gave it

# Columns of the exchanged table, one row for each path; where paths are drawn by weights, those of openings follow.
EXCESS, OVERSTATED, WORST_SHARE, POLICY_COST, FIRST_WEIGHT = range(5)


@dataclass(frozen=True, slots=True)
class BackwardCosts:
    """Costs of the backward pass, scaled. slots: of the new cuts.

    first: by opening of the first stage. drawn: by later stage and own path, of the opening that the path drew; None
    where no path tells what the policy costs.
    """

    iteration: int
    slots: range
    first: Floats
    drawn: Sequence[Floats | None]


def measure_trial_points(
    context: TrainingContext, paths: Paths, backward: BackwardCosts
) -> tuple[TrialPoints | None, CostSample | None]:
    """Compare the values of all trial points with those of the older cuts; None for a study of one stage.

    The sample is that of the policy's cost: None where paths are drawn neither from the openings nor by their weights.
    """
    problem, own, draws = context.problem, context.own, context.risk_draws
    if problem.num_stages == 1:
        return None, None
    first = backward.slots.start + context.split.block(context.comm.rank).start
    values = np.stack(
        [_values(context.pool, stage, first, paths.states[stage + 1, own]) for stage in range(problem.num_stages - 1)]
    )
    parts = [_by_path(problem, values, paths.future_cost[:-1, own]), _policy_costs(context, paths, backward, values)]
    if draws is not None:
        parts.append(draws.found_rows())
    found = context.gather(context.split, np.concatenate(parts, axis=1), "trial points")
    if draws is not None:
        draws.update(backward.iteration, found[:, FIRST_WEIGHT:], problem.risk[0].weights(backward.first[None])[0])
    return _trial_points(problem, found), _cost_sample(context, found)


def _trial_points(problem: Problem, found: Floats) -> TrialPoints:
    mean, std = mean_and_std(found[:, EXCESS].tolist())
    if problem.is_convex:
        return TrialPoints(mean, std)
    overstated, _ = mean_and_std(found[:, OVERSTATED].tolist())
    return TrialPoints(mean, std, overstated, float(found[:, WORST_SHARE].max()))


def _cost_sample(context: TrainingContext, found: Floats) -> CostSample | None:
    """Sample the policy's cost from the paths drawn by weight, or from all where openings count alike."""
    if not context.samples_policy_cost:
        return None
    draws = context.risk_draws
    is_plain = context.problem.is_risk_neutral and context.sampler.is_representative
    counted = found if draws is None or is_plain else found[: draws.paths]
    return CostSample.of(counted[:, POLICY_COST].tolist())


def _policy_costs(context: TrainingContext, paths: Paths, backward: BackwardCosts, values: Floats) -> Floats:
    """Return, by own path, its cost without the effect of chance, in $ of the first stage; 0 where not wanted."""
    problem, own, draws = context.problem, context.own, context.risk_draws
    if paths.drawn is None:
        return np.zeros((values.shape[1], 1))
    weights = problem.risk[0].weights(backward.first[None])[0]
    mean = np.add.accumulate(weights * backward.first)[-1]  # the lower bound
    drawn = [backward.first[paths.drawn[0][own]], *(costs for costs in backward.drawn if costs is not None)]
    counts = [opening.count for opening in problem.openings]
    future = np.array([problem.future_weight(stage) for stage in range(problem.num_stages)])
    stage_costs = paths.objective[:, own] - future[:, None] * paths.future_cost[:, own]
    unexplained = stage_costs - np.stack(drawn)
    expected = np.concatenate([np.full((1, values.shape[1]), mean), values])
    # What a path's own cuts add to the opening that it drew is no chance: without them it is as likely as the others.
    own_effect = _own_effects(context, paths, backward, values, paths.objective[:, own], np.stack(drawn))
    chosen = [drawn[own] for drawn in paths.drawn]
    shares = np.stack([np.full(len(opening), 1.0 / count) for opening, count in zip(chosen, counts, strict=True)])
    if draws is not None:
        shares = draws.weights_of(chosen, weights)
        ratios = draws.ratios(context.team_paths[own], shares, chosen)
        before = np.concatenate([np.ones_like(ratios[:1]), ratios[:-1]])
        unexplained, expected = ratios * (unexplained + own_effect), before * (expected - shares * own_effect)
    else:
        unexplained, expected = unexplained + own_effect, expected - shares * own_effect
    to_first = problem.cost_scale * problem.discount_to_first_stage[:, None]
    total: Floats = np.add.accumulate(to_first * (expected + unexplained), axis=0)[-1]
    return total[:, None]


def _own_effects(
    context: TrainingContext, paths: Paths, backward: BackwardCosts, values: Floats, objective: Floats, drawn: Floats
) -> Floats:
    """Return, by stage and own path, what the path's own new cut adds to the cost of its opening, scaled.

    The path goes on from the drawn opening alone, so its own cut raises the cost of this one more than that of others.
    That is known at the state where the path left the stage: the value there less what all other cuts say of it, the
    new ones of other paths included. It is no more than all new cuts together added.
    """
    problem, own, pool, slots = context.problem, context.own, context.pool, backward.slots
    numbers = np.arange(len(slots))[:, None] == context.team_paths[own]
    found = np.zeros_like(objective)
    for stage in range(problem.num_stages - 1):
        others = _at_states(pool, stage, slots, paths.states[stage + 1, own])
        others = np.where(numbers, -np.inf, others).max(axis=0)
        without_own = np.maximum(paths.future_cost[stage, own], others)
        found[stage] = problem.future_weight(stage) * (values[stage] - without_own)
    return np.clip(found, 0.0, np.maximum(drawn - objective, 0.0))


def _at_states(pool: CutPool, stage: int, slots: range, states: Floats) -> Floats:
    """Evaluate cuts of a stage (rows) at states (columns), component by component: the same bits for any split."""
    table, components = pool.stored_rows(stage, slots.start, len(slots)), pool.components(stage)
    total = np.repeat(table[:, :1], len(states), axis=1)
    term = np.empty_like(total)
    for number, component in enumerate(components.tolist(), start=1):
        np.multiply(table[:, number : number + 1], states[:, component], out=term)
        total += term
    return total


def _values(pool: CutPool, stage: int, first: int, states: Floats) -> Floats:
    """Evaluate the cuts from slot `first` on, each at the trial point of its own row: the same bits for any split."""
    table = pool.stored_rows(stage, first, len(states))
    terms = np.empty((table.shape[1], len(states)))
    terms[0] = table[:, 0]
    np.multiply(table[:, 1:].T, states[:, pool.components(stage)].T, out=terms[1:])
    total: Floats = np.add.accumulate(terms, axis=0)[-1]
    return total


def _by_path(problem: Problem, values: Floats, claimed: Floats) -> Floats:
    """Return, by path, excess and overstated cost, $ of the first stage, and the worst overstated share of a value."""
    to_first = problem.cost_scale * problem.discount_to_first_stage[1:, None]
    excess = values - claimed
    above = np.where(-excess > ROUNDING * np.maximum(np.abs(values), 1.0 / problem.cost_scale), -excess, 0.0)
    shares = above / np.maximum(np.abs(values), 1.0 / problem.cost_scale)
    columns = [np.add.accumulate(to_first * part, axis=0)[-1] for part in (excess, above)]
    return np.column_stack([*columns, shares.max(axis=0, initial=0.0)])
