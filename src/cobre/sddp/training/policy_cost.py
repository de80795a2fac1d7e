"""The cost of the current policy by the trial points of an iteration.

Their values from the backward pass are compared with those of the cuts that the forward pass followed.

The value of a trial point is the risk-adjusted cost of all later stages there, with the new cuts of
this iteration. The new cut has this value at its own trial point, so nothing more has to be solved or stored.

The forward pass left the stage with a future cost: the highest of the older cuts. Its *excess* is the
value less that cost. Cuts of a convex cost-to-go are below it, and later ones only raise it: an excess is only negative
by rounding. If inflows that are truncated at zero depend on their past the cost-to-go is not convex in the
lags. Then cuts may be above the value, and the lower bound above the cost of the policy (docs/adr/0045).

What the policy of the forward pass costs follows from the same numbers (docs/explanation/policy-cost.md). The backward
pass has solved the opening that a path drew, and knows the mean over all of them: the difference is the effect of
chance at this stage, and its mean is 0. A path's cost less these effects has the same mean, and hardly any variance
once cuts agree with the cost of the policy.
"""

from collections.abc import Sequence

import numpy as np

from cobre.core.arrays import Floats
from cobre.core.confidence import mean_and_std
from cobre.core.policy_cost import CostSample
from cobre.records import dataclass
from cobre.sddp.cut_pool import CutPool
from cobre.sddp.iteration_records import TrialPoints
from cobre.sddp.problem.problem import Problem
from cobre.sddp.training.context import TrainingContext
from cobre.sddp.training.passes import Paths

ROUNDING = 1e-7  # relative to the value of a trial point: tolerance of the LPs that gave it

# Columns of the exchanged table, one row for each path; where paths are drawn by weights, those of openings follow.
EXCESS, OVERSTATED, WORST_SHARE, POLICY_COST, FIRST_WEIGHT = range(5)


@dataclass(frozen=True, slots=True)
class BackwardCosts:
    """Costs of the backward pass, scaled. slots: those of the new cuts.

    first: by opening of the first stage. drawn: by later stage and own path, the cost of the opening that the path
    drew; None if paths are not a cost sample.
    """

    iteration: int
    slots: range
    first: Floats
    drawn: Sequence[Floats | None]


def measure_trial_points(
    context: TrainingContext, paths: Paths, backward: BackwardCosts
) -> tuple[TrialPoints | None, CostSample | None]:
    """Compare the values of all trial points with those of the older cuts; None for a study of one stage.

    The cost sample is None if paths are drawn neither from the openings nor by their weights.
    """
    problem, own, draws = context.problem, context.own_rows, context.state.risk_draws
    if problem.num_stages == 1:
        return None, None
    first = backward.slots.start + context.split.block(context.comm.rank).start
    values = np.stack(
        [_values(context.pool, stage, first, paths.states[stage + 1, own]) for stage in range(problem.num_stages - 1)]
    )
    columns = [_by_path(problem, values, paths.future_cost[:-1, own]), _policy_costs(context, paths, backward, values)]
    if draws is not None:
        columns.append(draws.weight_rows())
    table = context.gather(context.split, np.concatenate(columns, axis=1), "trial points")
    if draws is not None:
        draws.update(backward.iteration, table[:, FIRST_WEIGHT:], problem.risk[0].weights(backward.first[None])[0])
    return _trial_points(problem, table), _cost_sample(context, table)


def _trial_points(problem: Problem, table: Floats) -> TrialPoints:
    mean, std = mean_and_std(table[:, EXCESS].tolist())
    if problem.is_convex:
        return TrialPoints(mean, std)
    overstated, _ = mean_and_std(table[:, OVERSTATED].tolist())
    return TrialPoints(mean, std, overstated, float(table[:, WORST_SHARE].max()))


def _cost_sample(context: TrainingContext, table: Floats) -> CostSample | None:
    """Sample the policy's cost from the paths drawn by weight, or from all where openings count alike."""
    if not context.samples_policy_cost:
        return None
    draws = context.state.risk_draws
    is_plain = context.problem.is_risk_neutral and context.sampler.is_representative
    sample = table if draws is None or is_plain else table[: draws.paths]
    return CostSample.of(sample[:, POLICY_COST].tolist())


def _policy_costs(context: TrainingContext, paths: Paths, backward: BackwardCosts, values: Floats) -> Floats:
    """Return, by own path, its cost without the effect of chance, $ of the first stage; 0 if not a cost sample."""
    problem, own, draws = context.problem, context.own_rows, context.state.risk_draws
    if paths.drawn is None:
        return np.zeros((values.shape[1], 1))
    weights = problem.risk[0].weights(backward.first[None])[0]
    mean = np.add.accumulate(weights * backward.first)[-1]  # the lower bound
    drawn = [backward.first[paths.drawn[0][own]], *(costs for costs in backward.drawn if costs is not None)]
    counts = [opening.count for opening in problem.openings]
    future = np.array([problem.future_weight(stage) for stage in range(problem.num_stages)])
    stage_costs = paths.objective[:, own] - future[:, None] * paths.future_cost[:, own]
    residual = stage_costs - np.stack(drawn)
    expected = np.concatenate([np.full((1, values.shape[1]), mean), values])
    # The bias that a path's own cuts give to the opening that it drew is not chance: without them all are alike.
    own_bias = _own_cut_bias(context, paths, backward, values, paths.objective[:, own], np.stack(drawn))
    drawn_openings = [openings[own] for openings in paths.drawn]
    shares = np.stack(
        [np.full(len(opening), 1.0 / count) for opening, count in zip(drawn_openings, counts, strict=True)]
    )
    if draws is not None:
        shares = draws.weights_of(drawn_openings, weights)
        ratios = draws.ratios(context.team_paths[own], shares, drawn_openings)
        before = np.concatenate([np.ones_like(ratios[:1]), ratios[:-1]])
        residual, expected = ratios * (residual + own_bias), before * (expected - shares * own_bias)
    else:
        residual, expected = residual + own_bias, expected - shares * own_bias
    to_first = problem.cost_scale * problem.discount_to_first_stage[:, None]
    total: Floats = np.add.accumulate(to_first * (expected + residual), axis=0)[-1]
    return total[:, None]


def _own_cut_bias(
    context: TrainingContext, paths: Paths, backward: BackwardCosts, values: Floats, objective: Floats, drawn: Floats
) -> Floats:
    """Return, by stage and own path, what the path's own new cut adds to the cost of its opening, scaled.

    The path only continues from the drawn opening, so its own cut raises the cost of this one more than that of others.
    It is the value of the state in which the path left the stage, minus the highest of all other cuts there, new cuts
    of other paths included; at most what all new cuts together added.
    """
    problem, own, pool, slots = context.problem, context.own_rows, context.pool, backward.slots
    is_own = np.arange(len(slots))[:, None] == context.team_paths[own]
    bias = np.zeros_like(objective)
    for stage in range(problem.num_stages - 1):
        others = _at_states(pool, stage, slots, paths.states[stage + 1, own])
        others = np.where(is_own, -np.inf, others).max(axis=0)
        without_own = np.maximum(paths.future_cost[stage, own], others)
        bias[stage] = problem.future_weight(stage) * (values[stage] - without_own)
    return np.clip(bias, 0.0, np.maximum(drawn - objective, 0.0))


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


def _by_path(problem: Problem, values: Floats, cut_values: Floats) -> Floats:
    """Return, by path, excess and overstated cost, $ of the first stage, and the worst overstated share of a value."""
    to_first = problem.cost_scale * problem.discount_to_first_stage[1:, None]
    excess = values - cut_values
    overstated = np.where(-excess > ROUNDING * np.maximum(np.abs(values), 1.0 / problem.cost_scale), -excess, 0.0)
    shares = overstated / np.maximum(np.abs(values), 1.0 / problem.cost_scale)
    columns = [np.add.accumulate(to_first * part, axis=0)[-1] for part in (excess, overstated)]
    return np.column_stack([*columns, shares.max(axis=0, initial=0.0)])
