"""The cost of a policy, estimated from the excess of its paths' costs over the cuts (docs/explanation/policy-cost.md).

A sample keeps its size and three sums, not its paths: samples of several iterations are pooled from these.
"""

import math
from collections.abc import Sequence
from typing import Any

from cobre.core.arrays import sum_in_order
from cobre.core.bounds import DEFAULT_CONFIDENCE, relative_gap
from cobre.core.confidence import skewed_half_width
from cobre.records import dataclass

ENOUGH_PATHS = 32
"""Minimum number of paths of a mean: the newest iterations are pooled until they have as many."""

LEAST_HALF_WIDTH = 1e-4
"""Relative to the cost: no narrower interval is given, because a sample misses paths rarer than its size. A gap of this
size is treated as closed."""

FINAL_WORTH = 3
"""Weight of a path of the final policy, in paths of training: it averages all openings at every stage, and has about a
third of their variance."""

MAX_DRIFT = 2e-4
"""Relative to the lower bound: iterations with a bound that is lower by more had other policies than the final one."""

MIN_PATHS = 2
"""Minimum number of paths for a spread."""

SPREAD_PATHS = 128
"""Minimum number of paths for the spread: rare expensive ones are missing from most small samples."""


@dataclass(frozen=True, slots=True)
class CostSample:
    """Costs of some paths, $. squares, cubes: sums of powers of the deviations from the mean."""

    paths: int
    mean: float
    squares: float
    cubes: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "CostSample":
        """Summarise costs in the order of the values, so that the bits of the sums are fixed."""
        mean = sum_in_order(values) / len(values)
        deviations = [value - mean for value in values]
        squares = sum_in_order(value * value for value in deviations)
        return cls(len(values), mean, squares, sum_in_order(value**3 for value in deviations))

    def half_width(self, confidence: float, other: "CostSample | None" = None) -> float:
        """Return half of the confidence interval of the mean; infinite for a single path.

        other: a larger sample of similar costs, whose spread is used if it is wider.
        """
        spreads = [self] if other is None or other.paths < MIN_PATHS else [self, other]
        return max(self._half_width(confidence, spread) for spread in spreads)

    def _half_width(self, confidence: float, spread: "CostSample") -> float:
        scale = self.paths / spread.paths
        return skewed_half_width(self.paths, scale * spread.squares, scale * spread.cubes, confidence)


@dataclass(frozen=True, slots=True)
class PolicyCost:
    """The cost of a policy, $, with the half-width of its confidence interval; 0 if exact, None for a single path.

    paths: number of paths averaged; 0: all of them. iterations: number of iterations they are from; 0: they were drawn
    for this estimate only. is_estimate: under a risk measure, where no sample of paths is a bound.
    """

    value: float
    half_width: float | None
    paths: int = 0
    iterations: int = 0
    confidence: float = DEFAULT_CONFIDENCE
    is_estimate: bool = False

    @property
    def is_exact(self) -> bool:
        """Whether the cost is that of all paths."""
        return self.paths == 0

    @property
    def largest(self) -> float:
        """The upper end of the interval; infinite for a single path."""
        return self.value + (math.inf if self.half_width is None else self.half_width)

    def gap(self, lower_bound: float) -> float:
        """Return the distance from a lower bound to the cost, relative to the bound."""
        return relative_gap(lower_bound, self.value)

    def as_dict(self) -> dict[str, Any]:
        """Return values by the names that events, tables and summary.json have; paths 0: all of them, exact."""
        return {
            "policy_cost": self.value,
            "policy_cost_half_width": self.half_width,
            "policy_cost_paths": self.paths,
        }


NO_POLICY_COST: dict[str, Any] = dict.fromkeys(PolicyCost(0.0, 0.0).as_dict())
"""The same names for an unknown cost."""


def sampled_cost(
    sample: CostSample,
    *,
    is_estimate: bool,
    iterations: int = 0,
    confidence: float = DEFAULT_CONFIDENCE,
    spread: CostSample | None = None,
) -> PolicyCost:
    """Return the mean of a sample with its interval. spread: a larger sample of similar costs."""
    half_width = max(sample.half_width(confidence, spread), LEAST_HALF_WIDTH * abs(sample.mean))
    finite = half_width if math.isfinite(half_width) else None
    return PolicyCost(sample.mean, finite, sample.paths, iterations, confidence, is_estimate)


def final_cost(final: CostSample, recent: CostSample, drift: float) -> PolicyCost:
    """Return the cost of a final policy without a risk measure, from its own paths and those of the last iterations.

    drift: $, by how much the lower bound has risen since those iterations, on average; it is treated as an error. If
    the two samples differ by more than chance, either earlier policies have another cost, or few paths of the final
    one have missed rare events: the interval then covers both.
    """
    widths = [part.half_width(DEFAULT_CONFIDENCE) for part in (final, recent)]
    weight = FINAL_WORTH * final.paths / (FINAL_WORTH * final.paths + recent.paths)
    value = weight * final.mean + (1.0 - weight) * recent.mean
    half_width = math.hypot(weight * widths[0], (1.0 - weight) * widths[1]) + (1.0 - weight) * drift
    if abs(final.mean - recent.mean) > math.hypot(*widths):
        half_width += max(weight, 1.0 - weight) * abs(final.mean - recent.mean)
    return PolicyCost(value, max(half_width, LEAST_HALF_WIDTH * abs(value)), final.paths + recent.paths)


def latest_cost(
    samples: Sequence[CostSample | None], *, is_estimate: bool, confidence: float = DEFAULT_CONFIDENCE
) -> PolicyCost | None:
    """Return the mean cost of the latest iterations' policies, from a sample of each; None without one of the last."""
    recent = latest(samples, ENOUGH_PATHS)
    if not recent:
        return None
    spread = pooled(latest(samples, SPREAD_PATHS))
    return sampled_cost(
        pooled(recent), iterations=len(recent), confidence=confidence, is_estimate=is_estimate, spread=spread
    )


def latest(samples: Sequence[CostSample | None], paths: int, share: float = 0.5) -> list[CostSample]:
    """Return samples of the latest iterations, the oldest first, as many as together have that many paths.

    share: of all iterations that may be used; at most half, unless they are similar: the first policies cost far more.
    """
    recent: list[CostSample] = []
    for sample in reversed(samples[len(samples) - math.ceil(share * len(samples)) :]):
        if sample is None:
            break
        recent.append(sample)
        if sum(part.paths for part in recent) >= paths:
            break
    return recent[::-1]


def pooled(samples: Sequence[CostSample]) -> CostSample:
    """Join all paths of several samples as one, as if their costs were known one by one."""
    if len(samples) == 1:
        return samples[0]
    paths = sum(sample.paths for sample in samples)
    mean = sum_in_order(sample.paths * sample.mean for sample in samples) / paths
    squares = cubes = 0.0
    for sample in samples:
        shift = sample.mean - mean
        squares += sample.squares + sample.paths * shift * shift
        cubes += sample.cubes + 3.0 * shift * sample.squares + sample.paths * shift**3
    return CostSample(paths, mean, squares, cubes)
