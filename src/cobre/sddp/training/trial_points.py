"""What the backward pass finds at the trial points, beside what the cuts had said of them in the forward pass.

The value of a trial point is the risk-adjusted cost of all later stages there, with the cuts that these have got in
this iteration. The new cut takes this value at its own trial point, so that nothing has to be solved or kept for it.

The forward pass left the stage with a future cost: the highest of the cuts that there were. Its *excess* is the value
less that cost. Cuts of a convex cost-to-go lie below it, and later ones only raise it: an excess is negative by
rounding alone. Where inflows that are truncated at zero depend on their past the cost-to-go is not convex in the lags.
Then cuts may lie above the value, and so may the lower bound above the cost of the policy (docs/adr/0045).
"""

import numpy as np

from cobre.core.arrays import Floats
from cobre.core.confidence import mean_and_std
from cobre.sddp.cuts.pool import CutPool
from cobre.sddp.problem.problem import Problem
from cobre.sddp.records.iteration_record import TrialPoints
from cobre.sddp.training.context import TrainingContext
from cobre.sddp.training.forward import Paths

ROUNDING = 1e-7  # relative to the value of a trial point: tolerance of the LPs that gave it
EXCESS, OVERSTATED, WORST_SHARE = range(3)  # columns of the exchanged table, one row for each path


def measure_trial_points(context: TrainingContext, paths: Paths, slots: range) -> TrialPoints | None:
    """Compare the values of all trial points with what the cuts had said; None for a study of one stage."""
    problem, own = context.problem, context.own
    if problem.num_stages == 1:
        return None
    first = slots.start + context.split.block(context.comm.rank).start
    values = np.stack(
        [_values(context.pool, stage, first, paths.states[stage + 1, own]) for stage in range(problem.num_stages - 1)]
    )
    table = _by_path(problem, values, paths.future_cost[:-1, own])
    found = context.gather(context.split, table, "trial points")
    mean, std = mean_and_std(found[:, EXCESS].tolist())
    if problem.is_convex:
        return TrialPoints(mean, std)
    overstated, _ = mean_and_std(found[:, OVERSTATED].tolist())
    return TrialPoints(mean, std, overstated, float(found[:, WORST_SHARE].max()))


def _values(pool: CutPool, stage: int, first: int, states: Floats) -> Floats:
    """The cuts of a stage from slot `first` on, each at the trial point of its own row; the bits of any split."""
    table = pool.stored_rows(stage, first, len(states))
    terms = np.empty((table.shape[1], len(states)))
    terms[0] = table[:, 0]
    np.multiply(table[:, 1:].T, states[:, pool.components(stage)].T, out=terms[1:])
    total: Floats = np.add.accumulate(terms, axis=0)[-1]
    return total


def _by_path(problem: Problem, values: Floats, claimed: Floats) -> Floats:
    """By path: excess and overstated cost along it, $ of the first stage, and the worst overstatement of a value."""
    to_first = problem.cost_scale * problem.discount_to_first_stage[1:, None]
    excess = values - claimed
    above = np.where(-excess > ROUNDING * np.maximum(np.abs(values), 1.0 / problem.cost_scale), -excess, 0.0)
    shares = above / np.maximum(np.abs(values), 1.0 / problem.cost_scale)
    columns = [np.add.accumulate(to_first * part, axis=0)[-1] for part in (excess, above)]
    return np.column_stack([*columns, shares.max(axis=0, initial=0.0)])
