"""The bounds of a training result in memory."""

from dataclasses import replace

from cobre.io.storage.arrow_columns import numbers_of
from cobre.report.bounds import Bounds, bounds_of_table
from cobre.report.result_protocols import TrainingLike


def bounds_of_result(result: TrainingLike) -> Bounds:
    """The bounds of each iteration, and the kind of the upper bound."""
    table = result.bounds
    bounds = bounds_of_table({name: numbers_of(table[name]) for name in Bounds.COLUMNS})
    is_exact = bool(result.history) and result.history[-1].is_exact
    points = result.history[-1].trial_points if result.history else None
    overstated = None if points is None else points.overstated
    return replace(
        bounds,
        is_exact=is_exact,
        is_risk_averse=result.is_risk_averse,
        computed=result.computed_bound,
        cost_alone=None if is_exact or result.is_risk_averse else result.policy_cost,
        overstated=overstated,
    )
