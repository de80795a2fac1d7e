"""The cost of the present policy: by values of trial points, which every iteration has, and by simulated paths.

Values of trial points from the backward pass are compared with those of the cuts that the forward pass followed.

The value of a trial point is the risk-adjusted cost of all later stages there, with the new cuts of
this iteration. The new cut takes this value at its own trial point, so nothing more has to be solved or stored.

The forward pass left the stage with a future cost: the highest of the older cuts. Its *excess* is the
value less that cost. Cuts of a convex cost-to-go are below it, and later ones only raise it: an excess is negative
by rounding alone. Where inflows that are truncated at zero depend on their past the cost-to-go is not convex in the
lags. Then cuts may be above the value, and the lower bound above the cost of the policy (docs/adr/0045).

What the policy of the forward pass costs follows from the same numbers (docs/explanation/policy-cost.md). The backward
pass has solved the opening that a path drew, and knows the mean over all of them: the difference is the effect of
chance at this stage, and its mean is 0. A path's cost less these effects has the same mean, and hardly any variance
once cuts agree with the cost of the policy.
"""

from collections.abc import Sequence
from contextlib import closing

import numpy as np

from cobre.core.arrays import Floats, Indices, Ints
from cobre.core.bounds import UpperBound
from cobre.core.confidence import mean_and_std
from cobre.core.policy_cost import CostSample
from cobre.records import dataclass
from cobre.sddp.cut_pool import CutPool
from cobre.sddp.plugins.interfaces import EVALUATION_BIT, Sampler, StoppingRule
from cobre.sddp.problem.problem import Problem
from cobre.sddp.ranks import WorkSplit
from cobre.sddp.records import IterationRecord, Phase, TrialPoints
from cobre.sddp.scenarios import StageBatch, discounted_costs, draw_noise, simulate_stages
from cobre.sddp.team import Team
from cobre.sddp.training.context import TrainingContext
from cobre.sddp.training.passes import Paths
from cobre.sddp.upper_bounds.find import find_upper_bound
from cobre.solver.batches import PathOutputs, Realisations, Step

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

    The sample is that of the policy's cost: None if paths are drawn neither from the openings nor by their weights.
    """
    problem, own, draws = context.problem, context.own_rows, context.state.risk_draws
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
    draws = context.state.risk_draws
    is_plain = context.problem.is_risk_neutral and context.sampler.is_representative
    counted = found if draws is None or is_plain else found[: draws.paths]
    return CostSample.of(counted[:, POLICY_COST].tolist())


def _policy_costs(context: TrainingContext, paths: Paths, backward: BackwardCosts, values: Floats) -> Floats:
    """Return, by own path, its cost without the effect of chance, in $ of the first stage; 0 where not wanted."""
    problem, own, draws = context.problem, context.own_rows, context.state.risk_draws
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
    problem, own, pool, slots = context.problem, context.own_rows, context.pool, backward.slots
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
    context.state.upper_bound = next((bound for bound in found if bound is not None), None)
    return found


def evaluate_policy(context: TrainingContext, iteration: int, replications: int) -> Floats:
    """Return costs, in $ of the first stage's money, of paths that training never sampled; the same on all ranks.

    Paths follow the scheme of the forward passes, all cuts count, and every evaluation draws new paths. The costs have
    the same bits for any number of ranks and threads.
    """
    split = WorkSplit(replications, context.comm.size)
    sampler = context.sampler.for_scenarios(replications)
    with closing(Team.for_scenarios(context.comm, context.pool.memory, context.problem, split)) as team:
        costs = _path_costs(context, sampler, iteration, team.items(split), team)[team.own_rows(split)]
    return context.gather(split, costs.reshape(-1, 1), "costs of simulated paths")[:, 0]


def _path_costs(context: TrainingContext, sampler: Sampler, iteration: int, paths: Indices, team: Team) -> Floats:
    problem = context.problem

    def noise(stage: int) -> tuple[Realisations, Ints]:
        return draw_noise(problem, sampler, iteration | EVALUATION_BIT, paths, stage)

    def solve(stage: int, states: Floats, realisations: Realisations, realisation_index: Ints) -> StageBatch:
        rows = context.pool.rows(stage, all_cuts=True)
        step = Step(stage, rows, realisations, realisation_index, context.state.bases[stage])
        out = PathOutputs(shared=team.scenarios(problem.stages[stage].program, len(states)))
        batch = context.solve_paths(Phase.SIMULATION, iteration, [step], states, out)
        team.wait("simulated paths")
        return StageBatch.of(batch)

    results = simulate_stages(problem, len(paths), noise, solve)
    table = np.array([(result.batch.objective.copy(), result.batch.future_cost.copy()) for result in results])
    return discounted_costs(problem, table[:, 0], table[:, 1])
