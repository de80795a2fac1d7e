"""The verdict on convergence, from the bounds, for terminal, report, notebook and assistant server. Money is $."""

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from cobre.core.bounds import BOUND_NAMES, DEFAULT_CONFIDENCE, BoundMethod, gap_scale, relative_gap
from cobre.core.stopping import StopKind
from cobre.records import dataclass
from cobre.text import gap_percent

RECENT = 10
"""Maximum number of recent iterations used to measure the rise of the lower bound."""
FEWEST_RECENT = 4
"""Minimum of them. Of a short run the later half is used: first iterations rise steeply in every study, and single ones
are flat by chance."""
FLAT = 1e-4
"""Relative to the lower bound: a smaller rise per iteration counts as flat."""
CLOSED = 1e-4
"""Relative to the lower bound: a smaller exact gap counts as closed."""
CLOSED_SAMPLED = 1e-2
"""Relative to the lower bound: a policy whose cost is sampled has converged when its interval ends below this."""
MIN_SAMPLES = 3
"""Iterations whose confidence bands must all be below the lower bound before it is reported as possibly too high."""
TOO_HIGH = (
    "it is above the 95 % band of the sampled cost in all of these iterations, so it may be too high: "
    "cuts of another problem are a usual reason"
)
ABOVE_COST = "the {name} is {share} below it, so it is too high: cuts of another problem are a usual reason"
LOWER_BOUND_IS_ESTIMATE = (
    "the lower bound is not a bound of the cost, because inflows truncated at zero depend on their past: along the "
    "paths of the last iteration cuts were {share} of it above the cost-to-go"
)
NO_UPPER_BOUND = (
    "under a risk measure the mean of sampled paths is not an upper bound of the objective (`cobre bound` computes one)"
)


class VerdictKind(StrEnum):
    """The verdict as a fixed name, for programs: summary.json, the assistant server."""

    CONVERGED = "converged"
    LEVELLED_OFF = "levelled_off"  # the lower bound is flat, but no upper bound confirms convergence
    RISING = "rising"
    STOPPED_EARLY = "stopped_early"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class ConvergenceVerdict:
    """Whether training has converged, judged from the bounds.

    sentence: for people. rise: mean rise of the lower bound over the recent iterations, $ per iteration; None
    after a single iteration.
    """

    kind: VerdictKind
    sentence: str
    rise: float | None


@dataclass(frozen=True, slots=True)
class ComputedBound:
    """The upper bound of a policy that `cobre bound` or the stopping rule `upper_bound` computed.

    is_enough: it met a stopping rule of the case. is_estimate: value is an estimate from below, under a risk measure.
    """

    method: str
    value: float
    half_width: float
    lower_bound: float
    confidence: float | None = None
    is_enough: bool = False
    is_estimate: bool = False

    @classmethod
    def of(cls, content: object, *, is_enough: bool = False) -> "ComputedBound | None":
        """Read the bound from bound.json or an event; None if it is missing or incomplete."""
        if not isinstance(content, Mapping) or content.get("method") not in BOUND_NAMES:
            return None
        confidence: Any = content.get("confidence")
        is_sampled = content["method"] == BoundMethod.SAMPLED
        is_estimate = bool(content.get("is_estimate", is_sampled and content.get("is_risk_averse")))
        value_key = "policy_cost" if "is_estimate" in content else "upper_bound"
        numbers: list[Any] = [content.get(name) for name in (value_key, "half_width", "lower_bound")]
        needed = [*numbers, confidence] if is_sampled else numbers
        if not all(isinstance(number, int | float) for number in needed):
            return None
        value, half_width, lower = numbers
        return cls(str(content["method"]), value, half_width, lower, confidence, is_enough, is_estimate)

    @classmethod
    def of_run(
        cls, lower: float | None, content: Mapping[str, Any], *, is_exact: bool, is_risk_averse: bool
    ) -> "ComputedBound | None":
        """Return the bound of the stopping rule `upper_bound`, else the sampled policy cost; None without either.

        content: a summary, or another object with its names. is_exact: the upper bound of the iterations is exact.
        """
        kind = content.get("stop_kind")
        bound = cls.of(content.get("bound"), is_enough=kind == StopKind.UPPER_BOUND)
        if bound is not None or is_exact:
            return bound
        return cls.of_policy(lower, content, is_risk_averse=is_risk_averse, is_enough=kind == StopKind.GAP)

    @classmethod
    def of_policy(
        cls, lower: float | None, content: Mapping[str, Any], *, is_risk_averse: bool, is_enough: bool = False
    ) -> "ComputedBound | None":
        """Read the bound from `policy_cost`, `policy_cost_half_width` and `policy_cost_paths` of a run.

        None if that is missing, has no interval, or is exact: then it is the upper bound of the iterations.
        """
        names = ("policy_cost", "policy_cost_half_width", "policy_cost_paths")
        numbers = [value for name in names if isinstance(value := content.get(name), int | float)]
        if lower is None or len(numbers) < len(names) or not numbers[2]:
            return None
        cost, half_width = float(numbers[0]), float(numbers[1])
        sampled = str(BoundMethod.SAMPLED)
        return cls(sampled, cost, half_width, lower, DEFAULT_CONFIDENCE, is_enough, is_estimate=is_risk_averse)

    @property
    def gap(self) -> float:
        """From the lower bound to the bound, or to the cost of the policy, relative to the lower bound."""
        return relative_gap(self.lower_bound, self.value)

    @property
    def end_gap(self) -> float:
        """To the upper end of the confidence interval; the same as `gap` for a bound without one."""
        return relative_gap(self.lower_bound, self.value + self.half_width)

    @property
    def gap_limit(self) -> str:
        """Upper end of the gap, as text after the gap: `at most 0.30 % (95 % confidence)`; empty if deterministic.

        An interval that ends, by chance, a little below the lower bound leaves no gap.
        """
        if self.confidence is None:
            return ""
        prefix = "up to" if self.is_estimate else "at most"
        gap = max(0.0, self.end_gap) if self.end_gap > -CLOSED_SAMPLED else self.end_gap
        below = ", estimated from below" if self.is_estimate else ""
        return f"{prefix} {gap_percent(gap)} ({100 * self.confidence:g} % confidence{below})"

    @property
    def closes(self) -> bool:
        """Whether the bound proves convergence: it met a stopping rule, or its gap is closed. An estimate does not."""
        closed = CLOSED if self.confidence is None else CLOSED_SAMPLED
        return not self.is_estimate and (self.is_enough or self.end_gap <= closed)

    @property
    def clause(self) -> str:
        """A clause for the verdict, such as `the exact cost of the policy is 0.02 % above the lower bound`."""
        gap = gap_percent(max(0.0, self.end_gap))
        if self.confidence is None:
            if self.gap < -CLOSED:
                return f"the {BOUND_NAMES[self.method]} is {gap_percent(-self.gap)} below the lower bound"
            return f"the {BOUND_NAMES[self.method]} is {gap} above the lower bound"
        sure = f"({100 * self.confidence:g} % confidence)"
        if self.is_estimate:
            return f"the {BOUND_NAMES[self.method]} is up to {gap} above the lower bound {sure}, estimated from below"
        return f"the {BOUND_NAMES[self.method]} is at most {gap} above the lower bound {sure}"


@dataclass(frozen=True, slots=True)
class PathCosts:
    """Meaning of the costs of the forward passes: the upper bound of all paths of a tree, or the mean of a sample.

    is_exact: the cost is that of all paths of a tree, under the risk measure. is_risk_averse: the objective is not the
    expected cost. is_superseded: a better upper bound of the policy is known.
    """

    is_exact: bool = False
    is_risk_averse: bool = False
    is_superseded: bool = False

    @property
    def is_bound(self) -> bool:
        """Whether they bound the objective: under a risk measure a sampled mean does not."""
        return self.is_exact or not self.is_risk_averse

    @property
    def name(self) -> str:
        """Short enough for a column: `upper bound`, or `mean cost` where they bound nothing or are superseded."""
        return "upper bound" if self.is_exact or (self.is_bound and not self.is_superseded) else "mean cost"

    @property
    def label(self) -> str:
        """How they were computed, in brackets after the name: exact, sampled, or sampled and not a bound."""
        if self.is_exact:
            return "exact"
        return "sampled" if self.is_bound else "sampled, not a bound"

    @property
    def long_name(self) -> str:
        """For legends: exact upper bound, sampled upper bound, or mean of sampled paths."""
        return f"{self.label} {self.name}" if self.name == "upper bound" else "mean of sampled paths"


@dataclass(frozen=True, slots=True)
class BoundHistory:
    """Bounds by iteration; half widths are those of the 95 % confidence interval of a sampled upper bound.

    is_exact: the upper bound is that of all paths of a tree, under the risk measure too.
    is_risk_averse: the objective is not the expected cost.
    computed: a bound of the policy after the last iteration, which takes precedence over sampled costs.
    overstated: $, by how much cuts were above a cost-to-go that is not convex, along the paths of the last iteration;
    None if it is convex, so that the lower bound is a bound.
    single_path_cost: $, of the policy, from a single path: it has no confidence interval.
    """

    lower: Sequence[float]
    upper: Sequence[float]
    half_width: Sequence[float]
    is_exact: bool = False
    is_risk_averse: bool = False
    computed: ComputedBound | None = None
    overstated: float | None = None
    single_path_cost: float | None = None

    @property
    def path_costs(self) -> PathCosts:
        """What `upper` holds."""
        return PathCosts(self.is_exact, self.is_risk_averse, self.computed is not None)

    @property
    def gap(self) -> float | None:
        """The gap that events, tables, summaries and reports show, relative to the lower bound.

        To the computed bound or the sampled cost of the policy, else to the costs of the paths of the last iteration.
        None before the first iteration, and under a risk measure where only costs of paths are known: they bound
        nothing, and neither does a single path.
        """
        if self.computed is not None:
            return self.computed.gap
        if not len(self.lower) or not self.path_costs.is_bound:
            return None
        cost = None if self.is_exact else self.single_path_cost
        return relative_gap(self.lower[-1], self.upper[-1] if cost is None else cost)

    @property
    def gap_error(self) -> float | None:
        """Half width of the 95 % confidence interval of a gap to sampled costs of paths; None for any other gap."""
        if self.gap is None or self.computed is not None or self.is_exact or self.single_path_cost is not None:
            return None
        return self.half_width[-1] / self.scale if self.half_width[-1] > 0.0 else None

    @property
    def contradiction(self) -> str | None:
        """A clause if the policy costs less than the lower bound, beyond rounding and chance; None elsewhere.

        One interval in forty ends below the cost that it is about: it counts with twice its half width. Estimates from
        below may be below the lower bound.
        """
        if self.computed is not None:
            bound, name = self.computed, BOUND_NAMES[self.computed.method]
            cost, upper = bound.value, math.inf if bound.is_estimate else bound.value + 2.0 * bound.half_width
        elif self.is_exact:
            cost = upper = self.upper[-1]
            name = "exact cost of the policy"
        else:
            return None
        if not upper < self.lower[-1] - CLOSED * self.scale:
            return None
        return ABOVE_COST.format(share=gap_percent(-relative_gap(self.lower[-1], cost)), name=name)

    @property
    def rise(self) -> float | None:
        """Mean rise of the lower bound over the recent iterations, $ per iteration; None after one iteration."""
        steps = self.recent_steps
        return None if steps < 1 else (self.lower[-1] - self.lower[-1 - steps]) / steps

    @property
    def recent_steps(self) -> int:
        """Iterations that `rise` is measured over: those of the later half, `FEWEST_RECENT` to `RECENT` of them."""
        steps = len(self.lower) - 1
        return min(RECENT, steps, max(FEWEST_RECENT, steps // 2))

    @property
    def scale(self) -> float:
        """The denominator of relative gaps and rises: |lower bound|, at least 1 $."""
        return gap_scale(self.lower[-1])


def verdict(history: BoundHistory, *, is_interrupted: bool = False) -> ConvergenceVerdict | None:
    """Judge the bounds; None before the first iteration. is_interrupted: the run was stopped from outside."""
    if not len(history.lower):
        return None
    convergence = _judged(history)
    if not is_interrupted:
        return convergence
    return ConvergenceVerdict(
        VerdictKind.STOPPED_EARLY, f"stopped early; at that point: {convergence.sentence}", convergence.rise
    )


def _judged(history: BoundHistory) -> ConvergenceVerdict:
    rise, computed = history.rise, history.computed
    contradiction = None if history.overstated is not None else history.contradiction
    if computed is not None and computed.closes and history.overstated is None and contradiction is None:
        return ConvergenceVerdict(VerdictKind.CONVERGED, f"converged: {computed.clause}", rise)
    if rise is None or not math.isfinite(rise):
        sentence = "undecided: one iteration does not show how the bounds develop"
        return ConvergenceVerdict(VerdictKind.UNDECIDED, sentence, None)
    is_flat = rise <= FLAT * history.scale
    if contradiction is not None:
        return _open(history, rise, is_flat, contradiction)
    if history.overstated is not None:
        share = gap_percent(history.overstated / history.scale)
        clauses = [] if computed is None else [computed.clause]
        return _open(history, rise, is_flat, "; ".join([*clauses, LOWER_BOUND_IS_ESTIMATE.format(share=share)]))
    if history.is_exact and computed is None:
        return _of_exact(history, rise, is_flat)
    remark = _remark(history)
    return _of_sampled(history, rise, is_flat) if remark is None else _open(history, rise, is_flat, remark)


def _remark(history: BoundHistory) -> str | None:
    """Return a clause on the upper bound; None if sampled costs give a confidence interval."""
    if history.computed is not None:
        return history.computed.clause
    if history.is_risk_averse:
        return NO_UPPER_BOUND
    return None if history.half_width[-1] > 0.0 else "a single sampled path gives no confidence interval"


def _of_exact(history: BoundHistory, rise: float, is_flat: bool) -> ConvergenceVerdict:
    gap = relative_gap(history.lower[-1], history.upper[-1])
    if gap <= CLOSED:
        sentence = f"converged: the exact upper bound is {gap_percent(max(0.0, gap))} above the lower bound"
        return ConvergenceVerdict(VerdictKind.CONVERGED, sentence, rise)
    return _open(history, rise, is_flat, f"the exact upper bound is {gap_percent(gap)} above it")


def _of_sampled(history: BoundHistory, rise: float, is_flat: bool) -> ConvergenceVerdict:
    """Judge sampled costs: converged if the lower bound is flat, in a narrow band or above it."""
    lower, upper, half = history.lower[-1], history.upper[-1], history.half_width[-1]
    band = f"± {gap_percent(half / history.scale)}"
    if upper - half > lower:
        lower_gap = gap_percent((upper - half - lower) / history.scale)
        return _open(history, rise, is_flat, f"sampled costs are at least {lower_gap} above it (95 % confidence)")
    if is_flat and _is_above_every_sample(history):
        return _open(history, rise, is_flat, TOO_HIGH)
    where = "inside" if lower <= upper + half else "above"
    if not is_flat:
        return _open(history, rise, is_flat, f"it is {where} the 95 % band of the sampled cost ({band})")
    if upper + half - lower > CLOSED_SAMPLED * history.scale:
        return _open(history, rise, is_flat, f"it is {where} the 95 % band of the sampled cost ({band})")
    reason = f"the lower bound is {where} the 95 % band of the sampled cost ({band}) and {_rising(history, rise)}"
    return ConvergenceVerdict(VerdictKind.CONVERGED, f"converged within the sampling error: {reason}", rise)


def _is_above_every_sample(history: BoundHistory) -> bool:
    """Return whether the lower bound was above the band in each recent iteration, which chance does not explain."""
    recent = slice(-1 - min(RECENT, len(history.lower) - 1), None)
    bounds = list(zip(history.lower[recent], history.upper[recent], history.half_width[recent], strict=True))
    return len(bounds) >= MIN_SAMPLES and all(lower > upper + half for lower, upper, half in bounds)


def _open(history: BoundHistory, rise: float, is_flat: bool, remark: str) -> ConvergenceVerdict:
    """Judge a run if no bound proves convergence: levelled off if the lower bound is flat, else still rising."""
    kind = VerdictKind.LEVELLED_OFF if is_flat else VerdictKind.RISING
    title = "levelled off" if is_flat else "still rising"
    return ConvergenceVerdict(kind, f"{title}: the lower bound {_rising(history, rise)}; {remark}", rise)


def _rising(history: BoundHistory, rise: float) -> str:
    share = rise / history.scale
    steps = history.recent_steps
    over = f"over the last {steps}" if steps > 1 else "in the last one"
    if share <= FLAT:
        return f"rises by less than {gap_percent(FLAT)} per iteration {over}"
    return f"rises by {gap_percent(share)} per iteration {over}"
