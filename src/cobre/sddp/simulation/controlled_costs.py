"""Costs of simulated scenarios with a control variate for the openings that they drew (docs/adr/0063).

A scenario that draws dry openings costs more than the policy does on average. The effect of opening w at stage t,
relative to the mean of all openings there, is predicted from the other scenarios: from the residuals of those that drew
this opening, which are their costs at that stage beyond the value that the cuts gave their state. A prediction g(w, x)
whose mean over the openings is 0 at every state x has the mean 0 along a scenario too, however bad it is: costs less
the predictions have the same mean, and a spread that is the smaller, the better the predictions are. Nothing is solved
for it.

Scenarios are dealt into groups, and each group is predicted from the others. A prediction is a constant for each
opening plus a slope in the value of the state (dry openings cost more where water is scarce), both shrunk towards zero
by how much of their spread is noise.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cobre.core.arrays import Floats, Indices
from cobre.core.bounds import DEFAULT_CONFIDENCE
from cobre.core.confidence import half_width_95, mean_and_std
from cobre.core.policy_cost import LEAST_HALF_WIDTH, CostSample
from cobre.records import dataclass

MIN_SCENARIOS = 30
"""Smallest number of scenarios from which effects of a stage's openings are estimated."""
GROUPS = 10
"""Groups of scenarios: each is corrected by estimates from the others, nine tenths of all."""
MAX_VALUES = 40_000_000
"""Scenarios times stages: beyond that the plain mean is sharp, and tables of that size would not fit in memory."""
MAX_ABS_Z = 3.0
"""Standard deviations: beyond, slopes are not extrapolated."""
CONSTANT_TOLERANCE = 1e-9
"""Relative spread below which values are equal up to rounding."""
MARGIN = 1.3
"""Factor of the interval: few scenarios cause most of the spread. Without it, and without counting the largest
deviation twice, 78 to 92 % of the intervals held the mean, with them 90 to 97 % (docs/adr/0063)."""
DROP_PENALTY = 1e12
"""Penalty that drops constants or slopes whose spread is all noise."""


def controlled_costs(
    costs: Floats, total: Floats, future: Floats, drawn: Sequence[Indices], counts: Sequence[int]
) -> Floats | None:
    """Return, by scenario, its cost less the estimated effect of the openings it drew, $; None for few scenarios.

    costs: by scenario. total, future: by stage and scenario, $ of the first stage's money: cost of the stage with its
    future, and this future. drawn: by stage, the opening of each scenario; counts: how many openings there are.
    """
    scenarios = len(costs)
    if scenarios < MIN_SCENARIOS:
        return None
    group = np.arange(scenarios) % GROUPS
    predicted = np.zeros(scenarios)
    for stage, count in enumerate(counts):
        value = future[stage - 1] if stage else np.zeros(scenarios)
        if count > 1:
            predicted += _predicted_effects(total[stage] - value, _z_scores(value), drawn[stage], group, count)
    spread = predicted - _sum(predicted) / scenarios
    power = _sum(spread * spread)
    if power <= 0.0:
        return None
    # 1 for good predictions of an expected cost. Under a risk measure values are not expectations.
    share = _sum(spread * costs) / power
    return costs - share * predicted


def is_sharper(controlled: Floats, costs: Floats) -> bool:
    """Return whether the mean of controlled costs has a narrower interval than the plain mean.

    It does not if effects of openings explain too little of the spread to make up for the margins of
    `controlled_mean`, as in few scenarios under a risk measure.
    """
    return controlled_mean(controlled)[1] < half_width_95(mean_and_std(costs.tolist())[1], len(costs))


def controlled_mean(values: Floats) -> tuple[float, float]:
    """Return the mean of controlled costs, and half of its 95 % confidence interval, $.

    The largest deviation is counted twice, for equally rare scenarios that the sample has missed, and the interval is
    wider by `MARGIN`.
    """
    sample = CostSample.of(values.tolist())
    largest = float(np.abs(values - sample.mean).max())
    conservative = replace(sample, squares=sample.squares + largest * largest)
    half_width = MARGIN * conservative.half_width(DEFAULT_CONFIDENCE)
    return sample.mean, max(half_width, LEAST_HALF_WIDTH * abs(sample.mean))


def _z_scores(values: Floats) -> Floats:
    """Standardise the values of states: deviations from the mean over their spread; zeros if all are equal."""
    deviation = values - _sum(values) / len(values)
    spread = float(np.sqrt(_sum(deviation * deviation) / len(values)))
    if spread <= CONSTANT_TOLERANCE * max(1.0, float(np.abs(values).max())):
        return np.zeros_like(values)
    return np.clip(deviation / spread, -MAX_ABS_Z, MAX_ABS_Z)


def _sum(values: Floats) -> float:
    """Sum in order: the same bits on every machine."""
    return float(np.add.accumulate(values)[-1])


def _predicted_effects(residual: Floats, z: Floats, opening: Indices, group: Indices, count: int) -> Floats:
    """Predict, by scenario, the effect of its opening from scenarios of other groups.

    z: score of the value of the entering state.
    """
    cell = group * count + opening

    def others(numbers: Floats | None) -> Floats:
        """Sum over the scenarios of all other groups, by group and opening."""
        own = np.bincount(cell, numbers, GROUPS * count).reshape(GROUPS, count)
        return np.asarray(own.sum(axis=0) - own, np.float64)

    sums = _Sums(others(None), others(z), others(z**2), others(residual), others(residual * z), others(residual**2))
    constant, slope = sums.without_trend().shrunk_lines()
    # All openings of a stage are equally likely: their predictions add up to zero at every state.
    constant -= constant.mean(axis=1, keepdims=True)
    slope -= slope.mean(axis=1, keepdims=True)
    effects: Floats = constant[group, opening] + slope[group, opening] * z
    return effects


@dataclass(frozen=True, slots=True)
class _Sums:
    """Sums over scenarios by opening (columns), without those of each group (rows). x: z-score, y: residual."""

    n: Floats
    x: Floats
    xx: Floats
    y: Floats
    xy: Floats
    yy: Floats

    def without_trend(self) -> "_Sums":
        """Remove the common line of all openings: errors of the cuts at a state are not effects of openings."""
        n, x, xx, y, xy = (part.sum(axis=1, keepdims=True) for part in (self.n, self.x, self.xx, self.y, self.xy))
        b = _ratio(xy - x * y / n, xx - x * x / n)
        a = (y - b * x) / n
        return _Sums(
            self.n,
            self.x,
            self.xx,
            self.y - a * self.n - b * self.x,
            self.xy - a * self.x - b * self.xx,
            self.yy - 2.0 * (a * self.y + b * self.xy) + a * a * self.n + 2.0 * a * b * self.x + b * b * self.xx,
        )

    def shrunk_lines(self) -> tuple[Floats, Floats]:
        """Return constant and slope of each opening, shrunk to their expected values given the data.

        Spreads are those of the scenarios beyond their noise, as in an analysis of variance.
        """
        xx, xy = self.xx - _ratio(self.x**2, self.n), self.xy - _ratio(self.x * self.y, self.n)
        openings, scenarios = (self.n > 0).sum(axis=1, keepdims=True), self.n.sum(axis=1, keepdims=True)
        by_constants = _ratio(self.y**2, self.n).sum(axis=1, keepdims=True)
        by_slopes = _ratio(xy**2, xx).sum(axis=1, keepdims=True)
        remaining = self.yy.sum(axis=1, keepdims=True) - by_constants - by_slopes
        noise = np.maximum(remaining, 0.0) / np.maximum(1.0, scenarios - 2.0 * openings)
        constants = (by_constants / np.maximum(1, openings - 1) - noise) / (scenarios / openings)
        slopes = _ratio(by_slopes / openings - noise, xx.sum(axis=1, keepdims=True) / openings)
        a = self.n + _ratio(noise, np.maximum(constants, 0.0), DROP_PENALTY)
        d = self.xx + _ratio(noise, np.maximum(slopes, 0.0), DROP_PENALTY)
        determinant = a * d - self.x**2
        return _ratio(d * self.y - self.x * self.xy, determinant), _ratio(a * self.xy - self.x * self.y, determinant)


def _ratio(numerator: Floats, denominator: Floats, default: float = 0.0) -> Floats:
    """Divide; `default` where the denominator is not positive."""
    is_positive = denominator > 0.0
    return np.where(is_positive, numerator / np.where(is_positive, denominator, 1.0), default)
