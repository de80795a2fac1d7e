"""Costs of simulated scenarios, controlled for the openings that they drew (docs/adr/0063).

A scenario that draws dry openings costs more than the policy does on average. What opening w does at stage t, beside
the mean of all openings there, is guessed from the other scenarios: from what they cost at that stage with that opening
beyond the value that the cuts gave their state. A guess g(w, x) whose mean over the openings is 0 at every state x has
the mean 0 along a scenario too, however bad it is: costs less the guesses have the same mean, and a smaller spread as
far as the guesses are good. Nothing is solved for it.

Guesses use other scenarios alone: scenarios are dealt into groups, and each group uses those of the others. A
guess is a constant for each opening plus a slope in the value of the state (dry openings do more harm where water is
dear), both shrunk towards zero by how much of their spread is noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cobre.core.arrays import Floats, Indices
from cobre.core.bounds import DEFAULT_CONFIDENCE
from cobre.core.confidence import half_width_95, mean_and_std
from cobre.core.policy_cost import LEAST_HALF_WIDTH, CostSample

MIN_SCENARIOS = 30
"""Smallest number of scenarios from which effects of a stage's openings are estimated."""
GROUPS = 10
"""Groups of scenarios: each is corrected by estimates from the others, nine tenths of all."""
MAX_VALUES = 40_000_000
"""Scenarios times stages: beyond that the plain mean is sharp, and tables of that size would not fit in memory."""
FARTHEST = 3.0
"""Standard deviations: slopes are not followed to states beyond."""
ALIKE = 1e-9
"""Relative spread of values that are one and the same up to rounding."""
MARGIN = 1.3
"""Of the interval: few scenarios bear most of the spread. Without it, and without counting the largest deviation twice,
78 to 92 % of the intervals held the mean, with them 90 to 97 % (docs/adr/0063)."""
MUCH = 1e12
"""Penalty of constants or slopes whose spread is all noise."""


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
    guessed = np.zeros(scenarios)
    for stage, count in enumerate(counts):
        value = future[stage - 1] if stage else np.zeros(scenarios)
        if count > 1:
            guessed += _guesses(total[stage] - value, _place(value), drawn[stage], group, count)
    spread = guessed - _sum(guessed) / scenarios
    power = _sum(spread * spread)
    if power <= 0.0:
        return None
    # 1 for good guesses of an expected cost. Under a risk measure the values are no expectations.
    share = _sum(spread * costs) / power
    return costs - share * guessed


def is_sharper(controlled: Floats, costs: Floats) -> bool:
    """Return whether the mean of controlled costs has a narrower interval than the plain mean.

    It has not where effects of openings explain too little of the spread to make up for the margins of
    `controlled_mean`, as in few scenarios under a risk measure.
    """
    return controlled_mean(controlled)[1] < half_width_95(mean_and_std(costs.tolist())[1], len(costs))


def controlled_mean(values: Floats) -> tuple[float, float]:
    """Return the mean of controlled costs, and half of its 95 % confidence interval, $.

    The largest deviation counts twice, for scenarios as rare as it that the sample has missed, and the interval is
    wider by `MARGIN`.
    """
    sample = CostSample.of(values.tolist())
    largest = float(np.abs(values - sample.mean).max())
    wary = replace(sample, squares=sample.squares + largest * largest)
    half_width = MARGIN * wary.half_width(DEFAULT_CONFIDENCE)
    return sample.mean, max(half_width, LEAST_HALF_WIDTH * abs(sample.mean))


def _place(values: Floats) -> Floats:
    """Standardise the values of states: deviations from the mean over their spread; zeros where all are alike."""
    deviation = values - _sum(values) / len(values)
    spread = float(np.sqrt(_sum(deviation * deviation) / len(values)))
    if spread <= ALIKE * max(1.0, float(np.abs(values).max())):
        return np.zeros_like(values)
    return np.clip(deviation / spread, -FARTHEST, FARTHEST)


def _sum(values: Floats) -> float:
    """Sum in order: the same bits on every machine."""
    return float(np.add.accumulate(values)[-1])


def _guesses(chance: Floats, place: Floats, opening: Indices, group: Indices, count: int) -> Floats:
    """Estimate, by scenario, the effect of its opening from scenarios of other groups.

    place: of the state that the stage was entered in, between -`FARTHEST` and `FARTHEST`.
    """
    cell = group * count + opening

    def others(numbers: Floats | None) -> Floats:
        """Sum over the scenarios of all other groups, by group and opening."""
        own = np.bincount(cell, numbers, GROUPS * count).reshape(GROUPS, count)
        return np.asarray(own.sum(axis=0) - own, np.float64)

    told = _Sums(
        others(None), others(place), others(place**2), others(chance), others(chance * place), others(chance**2)
    ).without_trend()
    constant, slope = told.shrunk_lines()
    # All openings of a stage are equally likely: their guesses add up to zero at every state.
    constant -= constant.mean(axis=1, keepdims=True)
    slope -= slope.mean(axis=1, keepdims=True)
    found: Floats = constant[group, opening] + slope[group, opening] * place
    return found


@dataclass(frozen=True, slots=True)
class _Sums:
    """Of each opening (columns) without the scenarios of each group (rows). x: the place, y: what the opening did."""

    n: Floats
    x: Floats
    xx: Floats
    y: Floats
    xy: Floats
    yy: Floats

    def without_trend(self) -> "_Sums":
        """Remove a line through all openings together: what cuts miss at a state is not the effect of an opening."""
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
        """Return constant and slope of each opening, shrunk as expected values given the data are.

        Spreads are those that the scenarios show beyond their noise, as in an analysis of variance.
        """
        xx, xy = self.xx - _ratio(self.x**2, self.n), self.xy - _ratio(self.x * self.y, self.n)
        openings, scenarios = (self.n > 0).sum(axis=1, keepdims=True), self.n.sum(axis=1, keepdims=True)
        by_constants = _ratio(self.y**2, self.n).sum(axis=1, keepdims=True)
        by_slopes = _ratio(xy**2, xx).sum(axis=1, keepdims=True)
        left = self.yy.sum(axis=1, keepdims=True) - by_constants - by_slopes
        noise = np.maximum(left, 0.0) / np.maximum(1.0, scenarios - 2.0 * openings)
        constants = (by_constants / np.maximum(1, openings - 1) - noise) / (scenarios / openings)
        slopes = _ratio(by_slopes / openings - noise, xx.sum(axis=1, keepdims=True) / openings)
        a = self.n + _ratio(noise, np.maximum(constants, 0.0), MUCH)
        d = self.xx + _ratio(noise, np.maximum(slopes, 0.0), MUCH)
        determinant = a * d - self.x**2
        return _ratio(d * self.y - self.x * self.xy, determinant), _ratio(a * self.xy - self.x * self.y, determinant)


def _ratio(above: Floats, below: Floats, otherwise: float = 0.0) -> Floats:
    """Divide; `otherwise` where the divisor is not positive."""
    is_some = below > 0.0
    return np.where(is_some, above / np.where(is_some, below, 1.0), otherwise)
