"""Bounds by iteration, from the table of a finished training or from the events of a running one. Money is $."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from cobre.core.arrays import Floats
from cobre.core.verdict import BoundHistory, ComputedBound, ConvergenceVerdict, verdict
from cobre.io.storage.arrow_columns import numbers_of
from cobre.records import dataclass
from cobre.runs.events import Event, number_of
from cobre.sddp.iteration_records import IterationRecord

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of each iteration; the upper bound is exact or the mean of sampled paths, with its 95 % half width.

    policy_cost, policy_half_width: estimated cost of the policy after each iteration, with its 95 % half width; NaN in
    iterations without an estimate, None if no iteration has one.
    """

    iteration: NDArray[np.int64]
    lower: Floats
    upper: Floats
    half_width: Floats
    is_exact: bool = False
    is_risk_averse: bool = False
    computed: ComputedBound | None = None
    single_path_cost: float | None = None  # $, of the policy: without a confidence interval
    overstated: float | None = None  # $, by which cuts were above the cost-to-go; None: the lower bound is a bound
    policy_cost: Floats | None = None
    policy_half_width: Floats | None = None

    COLUMNS: ClassVar[tuple[str, ...]] = ("iteration", "lower_bound", "upper_bound", "upper_bound_half_width")
    COST_COLUMNS: ClassVar[tuple[str, ...]] = ("policy_cost", "policy_cost_half_width")

    @property
    def policy_costs(self) -> tuple[Floats, Floats] | None:
        """Cost of the policy and half width by iteration; None if unknown, or if it is the exact upper bound."""
        costs, half_widths = self.policy_cost, self.policy_half_width
        if costs is None or half_widths is None or self.is_exact or not np.isfinite(costs).any():
            return None
        return costs, half_widths

    def since(self, start: int) -> "Bounds":
        """Return the bounds from the iteration at an index on."""
        names = ("iteration", "lower", "upper", "half_width", "policy_cost", "policy_half_width")
        columns = {name: getattr(self, name) for name in names}
        return replace(self, **{name: values[start:] for name, values in columns.items() if values is not None})

    @property
    def gap(self) -> float | None:
        """The gap after the last iteration, that of `BoundHistory.gap`; None before the first."""
        return self._history.gap

    @property
    def gap_error(self) -> float | None:
        """Half width of the gap's 95 % confidence interval, relative to the lower bound; None if not sampled."""
        return self._history.gap_error

    @property
    def upper_name(self) -> str:
        """The name of the upper bound in legends: exact, sampled, or a mean under a risk measure."""
        return self._history.path_costs.long_name

    def verdict(self, *, is_interrupted: bool = False) -> ConvergenceVerdict | None:
        """Return the verdict on convergence; None before the first iteration."""
        return verdict(self._history, is_interrupted=is_interrupted)

    @property
    def _history(self) -> BoundHistory:
        lower, upper, half_width = (values.tolist() for values in (self.lower, self.upper, self.half_width))
        kind = (self.is_exact, self.is_risk_averse, self.computed, self.overstated, self.single_path_cost)
        return BoundHistory(lower, upper, half_width, *kind)

    def __len__(self) -> int:
        return len(self.iteration)


def bounds_of_table(columns: Mapping[str, NDArray[Any]]) -> Bounds:
    """Return the bounds of each iteration, from the columns of training/convergence.parquet."""
    iteration, *numbers = (columns[name] for name in Bounds.COLUMNS)
    lower, upper, half_width = (values.astype(np.float64) for values in numbers)
    bounds = Bounds(iteration.astype(np.int64), lower, upper, half_width)
    if not all(name in columns for name in Bounds.COST_COLUMNS):
        return bounds
    cost, cost_half_width = (columns[name].astype(np.float64) for name in Bounds.COST_COLUMNS)
    return replace(bounds, policy_cost=cost, policy_half_width=cost_half_width)


def bounds_of_events(iterations: Sequence[Event]) -> Bounds:
    """Return the bounds of each iteration, from its event; missing numbers are NaN."""
    names = ("lower_bound", "upper_bound", "half_width", *Bounds.COST_COLUMNS)
    numbers = np.array([[_number(event.get(name)) for name in names] for event in iterations]).reshape(-1, len(names))
    lower, upper, half_width, cost, cost_half_width = numbers.T
    iteration = np.array([event["iteration"] for event in iterations], np.int64)
    return Bounds(iteration, lower, upper, half_width, policy_cost=cost, policy_half_width=cost_half_width)


def _number(value: object) -> float:
    return float("nan") if (number := number_of(value)) is None else number


# Results in memory, for notebooks. The classes of `cobre.study.results`, which is on a higher layer, fulfil these
# protocols.


class TrainingLike(Protocol):
    """The result of a training; times are in seconds."""

    @property
    def history(self) -> Sequence[IterationRecord]: ...
    @property
    def bounds(self) -> "pa.Table": ...
    @property
    def iterations(self) -> int: ...
    @property
    def stop_reason(self) -> str: ...
    @property
    def stop_kind(self) -> str: ...
    @property
    def computed_bound(self) -> ComputedBound | None: ...
    @property
    def training_seconds(self) -> float: ...
    @property
    def digest(self) -> str: ...
    @property
    def verdict(self) -> ConvergenceVerdict | None: ...
    @property
    def is_risk_averse(self) -> bool: ...
    @property
    def policy_cost(self) -> float | None: ...


class SimulationLike(Protocol):
    """The result of a simulation; money is in $, `facts` has the dates and names of study.json."""

    @property
    def tables(self) -> Mapping[str, "pa.Table"]: ...
    @property
    def scenario_costs(self) -> Sequence[float]: ...
    @property
    def mean_cost(self) -> float: ...
    @property
    def std_cost(self) -> float: ...
    @property
    def half_width(self) -> float: ...
    @property
    def controlled_mean_cost(self) -> float | None: ...
    @property
    def controlled_half_width(self) -> float | None: ...
    @property
    def digest(self) -> str: ...
    @property
    def cost_note(self) -> str | None: ...
    @property
    def facts(self) -> Mapping[str, Any]: ...
    def table(self, name: str) -> "pa.Table": ...


def bounds_of_result(result: TrainingLike) -> Bounds:
    """Return the bounds of each iteration, and the kind of the upper bound."""
    table = result.bounds
    bounds = bounds_of_table({name: numbers_of(table[name]) for name in (*Bounds.COLUMNS, *Bounds.COST_COLUMNS)})
    is_exact = bool(result.history) and result.history[-1].is_exact
    points = result.history[-1].trial_points if result.history else None
    overstated = None if points is None else points.overstated
    return replace(
        bounds,
        is_exact=is_exact,
        is_risk_averse=result.is_risk_averse,
        computed=result.computed_bound,
        single_path_cost=None if is_exact or result.is_risk_averse else result.policy_cost,
        overstated=overstated,
    )
