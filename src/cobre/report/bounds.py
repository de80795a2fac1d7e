"""Bounds by iteration, from the table of a finished training or from the events of a running one. Money is $."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cobre.core.arrays import Floats
from cobre.core.verdict import BoundHistory, ComputedBound, ConvergenceVerdict, gap_scale, relative_gap, verdict
from cobre.records import dataclass
from cobre.runs.events import Event, number_of


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of each iteration; the upper bound is exact or the mean of sampled paths, with its 95 % half width."""

    iteration: NDArray[np.int64]
    lower: Floats
    upper: Floats
    half_width: Floats
    is_exact: bool = False
    is_risk_averse: bool = False
    computed: ComputedBound | None = None
    cost_alone: float | None = None  # $, of the policy, from a single path: without a confidence interval
    overstated: float | None = None  # $, by which cuts lay above the cost-to-go; None: the lower bound is a bound

    COLUMNS: ClassVar[tuple[str, ...]] = ("iteration", "lower_bound", "upper_bound", "upper_bound_half_width")

    @property
    def gap(self) -> float | None:
        """Relative to the lower bound: of the computed bound, else of the last iteration.

        None before the first iteration, and under a risk measure without a computed bound.
        """
        if self.computed is None and self.cost_alone is not None and len(self):
            return relative_gap(self.lower[-1], self.cost_alone)
        return self._history.gap

    @property
    def gap_error(self) -> float | None:
        """Half width of the gap's 95 % confidence interval, relative to the lower bound; None if not sampled."""
        if (
            self.gap is None
            or self.is_exact
            or self.computed is not None
            or self.cost_alone is not None
            or not self.half_width[-1] > 0.0
        ):
            return None
        return float(self.half_width[-1] / gap_scale(self.lower[-1]))

    @property
    def upper_name(self) -> str:
        """The name of the upper bound in legends: exact, sampled, or a mean under a risk measure."""
        return self._history.path_costs.long_name

    def verdict(self, *, is_interrupted: bool = False) -> ConvergenceVerdict | None:
        """The verdict on convergence; None before the first iteration."""
        return verdict(self._history, is_interrupted=is_interrupted)

    @property
    def _history(self) -> BoundHistory:
        lower, upper, half_width = (values.tolist() for values in (self.lower, self.upper, self.half_width))
        kind = (self.is_exact, self.is_risk_averse, self.computed, self.overstated)
        return BoundHistory(lower, upper, half_width, *kind)

    def __len__(self) -> int:
        return len(self.iteration)


def bounds_of_table(columns: Mapping[str, NDArray[Any]]) -> Bounds:
    """The bounds of each iteration, from the columns of training/convergence.parquet."""
    iteration, *numbers = (columns[name] for name in Bounds.COLUMNS)
    lower, upper, half_width = (values.astype(np.float64) for values in numbers)
    return Bounds(iteration.astype(np.int64), lower, upper, half_width)


def bounds_of_events(iterations: Sequence[Event]) -> Bounds:
    """The bounds of each iteration, from its event; a number that is missing is NaN."""
    names = ("lower_bound", "upper_bound", "half_width")
    numbers = np.array([[_number(event.get(name)) for name in names] for event in iterations]).reshape(-1, 3)
    lower, upper, half_width = numbers.T
    return Bounds(np.array([event["iteration"] for event in iterations], np.int64), lower, upper, half_width)


def _number(value: object) -> float:
    return float("nan") if (number := number_of(value)) is None else number
