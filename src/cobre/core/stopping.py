"""Stopping rules: when training ends, one class for each rule of config.json.

The class of a rule is its setting, its check and its reason in words: config.json is decoded into it, and schemas, the
reference page and the completion of `--set` are generated from it. To add a rule, define a class with a `type` of its
own here, decorated as the others are, a member of `StopKind` of the same name (without one, results call it
`other_rule`), and a test; `tests/unit/core/test_stopping.py` has one as an example.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Literal, Protocol, TypeVar

from cobre.core.arrays import Floats
from cobre.core.bounds import (
    DEFAULT_CONFIDENCE,
    DEFAULT_PATHS,
    BoundMethod,
    BoundMethodName,
    BoundPlan,
    UpperBound,
    gap_scale,
    relative_gap,
)
from cobre.core.confidence import mean_with_half_width
from cobre.core.policy_cost import CostSample, PolicyCost, latest_cost
from cobre.core.setting_types import Confidence, Count, NonNegative, Positive, SampleSize, extension
from cobre.records import dataclass
from cobre.text import counted, money

# Why a training run ended: a kind for programs, words for people.


class StopKind(StrEnum):
    """Cause of the end of a run.

    Those up to `UPPER_BOUND` are rules of config.json; `OTHER_RULE` is a stopping rule from outside the package.
    """

    ITERATION_LIMIT = "iteration_limit"
    TIME_LIMIT = "time_limit"
    BOUND_STALLING = "bound_stalling"
    SIMULATION = "simulation"
    GAP = "gap"
    UPPER_BOUND = "upper_bound"
    OTHER_RULE = "other_rule"
    REQUESTED = "requested"
    RUN_TIME_LIMIT = "run_time_limit"
    TERMINATED = "terminated"
    INTERRUPTED = "interrupted"

    @property
    def has_converged(self) -> bool:
        """Whether a rule that judges the bounds was satisfied; a rule from outside the package counts as one."""
        judging = (StopKind.BOUND_STALLING, StopKind.SIMULATION, StopKind.GAP, StopKind.UPPER_BOUND)
        return self in (*judging, StopKind.OTHER_RULE)

    @property
    def is_interruption(self) -> bool:
        """Whether the run was ended from outside, before a rule of the case or its caller ended it."""
        return self in (StopKind.RUN_TIME_LIMIT, StopKind.TERMINATED, StopKind.INTERRUPTED)


@dataclass(frozen=True, slots=True)
class Stop:
    """End of a run: `kind` for programs, `reason` for people."""

    kind: StopKind
    reason: str


class Iteration(Protocol):
    """Record of an iteration, as stopping rules read it; costs and bounds in $ (`cobre.sddp.iteration_records`).

    The upper bound is the mean of the sampled paths, or exact. elapsed_s: wall time since training began, those of
    earlier runs of a resumed study included; it differs between ranks.
    """

    @property
    def iteration(self) -> int:
        """Number of the iteration, from 1."""

    @property
    def lower_bound(self) -> float:
        """Lower bound after the iteration."""

    @property
    def upper_bound(self) -> float:
        """Mean cost of the sampled paths, or the exact cost."""

    @property
    def is_exact(self) -> bool:
        """Whether the upper bound is exact."""

    @property
    def elapsed_s(self) -> float:
        """Seconds since training began, on this rank."""

    @property
    def cost_sample(self) -> CostSample | None:
        """Costs of the paths, where they estimate the cost of the policy."""

    @property
    def policy_cost(self) -> PolicyCost | None:
        """Cost of the policies of the latest iterations."""

    @property
    def first_stage_end(self) -> tuple[float, ...] | None:
        """State at the end of the first stage, mean over its openings, in the order of `Policy.state_names`.

        In the units of states, such as hm3. Available on rank 0 if a rule has `reads_first_stage`; None over trees.
        """


class StoppingRule(ABC):
    """Decides, at the end of every iteration, whether training ends.

    You must define `reason_to_stop`. You may define `kind`, `reads_first_stage`, and ask for a simulation or an
    upper bound by `needs_simulation` and `needs_bound`, which `reason_to_stop` then gets.

    You may rely on: `history` has at least one record and grows by one in each iteration, also when a run is resumed;
    bounds and costs are the same on all ranks. Times are those of the calling rank, and rank 0's answer counts.

    >>> import cobre
    >>> class StopAtBound(cobre.StoppingRule):
    ...     def __init__(self, value):
    ...         self.value = value
    ...
    ...     def reason_to_stop(self, history, simulated=None, bound=None):
    ...         is_reached = history[-1].lower_bound >= self.value
    ...         return f"lower bound of {self.value:,.0f} $ reached" if is_reached else None
    """

    @property
    def kind(self) -> StopKind:
        """The `stop_kind` in results when this rule ends the run: its `type`, or `other_rule`."""
        name = getattr(self, "type", None)
        return StopKind(name) if name in STOPPING_RULES and name in set(StopKind) else StopKind.OTHER_RULE

    @property
    def reads_first_stage(self) -> bool:
        """Whether the rule reads `first_stage_end` of the history: False by default."""
        return False

    def needs_simulation(self, history: Sequence[Iteration]) -> int:
        """Return the number of simulated paths that the rule needs now.

        All ranks must return the same number, so it may depend on iterations and bounds, but not on times.
        """
        return 0

    def needs_bound(self, history: Sequence[Iteration]) -> BoundPlan | None:
        """Return the upper bound to compute now, or None. It must not depend on times either."""
        return None

    def resumed(self, spent_s: float) -> "StoppingRule":
        """Return the rule for a run that continues another one, whose iterations took `spent_s`; itself by default."""
        return self

    @abstractmethod
    def reason_to_stop(
        self, history: Sequence[Iteration], simulated: Floats | None = None, bound: UpperBound | None = None
    ) -> str | None:
        """Return a reason for people, such as "iteration limit of 50 reached", or None to continue.

        simulated: costs in $ of at least as many paths as `needs_simulation` asked for, in order; None if it asked
        for none. bound: what `needs_bound` asked for. Also called before the first iteration of a resumed run, with
        neither.
        """


Rule = TypeVar("Rule", bound=type[StoppingRule])
STOPPING_RULES: dict[str, type[StoppingRule]] = {}
"""The rules of config.json by their `type`."""


def stopping_rule(cls: Rule) -> Rule:
    """Add a class to the rules of config.json, by the default of its field `type`."""
    STOPPING_RULES[cls.__dataclass_fields__["type"].default] = cls  # type: ignore[attr-defined]
    return cls


@stopping_rule
@dataclass(frozen=True, slots=True)
class IterationLimit(StoppingRule):
    """Stop after a number of iterations, those of earlier runs of a resumed study included.

    limit: number of iterations.
    """

    limit: Count
    type: Literal["iteration_limit"] = "iteration_limit"

    def reason_to_stop(
        self, history: Sequence[Iteration], simulated: Floats | None = None, bound: UpperBound | None = None
    ) -> str | None:
        """Return a reason when the last allowed iteration is done."""
        return f"iteration limit of {self.limit} reached" if len(history) >= self.limit else None


@stopping_rule
@dataclass(frozen=True, slots=True)
class TimeLimit(StoppingRule):
    """Stop at the end of the iteration in which the time is up; earlier runs of a resumed study do not count.

    seconds: wall time of the iterations.
    """

    seconds: Positive
    type: Literal["time_limit"] = "time_limit"

    def reason_to_stop(
        self, history: Sequence[Iteration], simulated: Floats | None = None, bound: UpperBound | None = None
    ) -> str | None:
        """Return a reason when the iterations took at least `seconds`."""
        return _TimeLimitOfRun(self.seconds, 0.0).reason_to_stop(history)

    def resumed(self, spent_s: float) -> StoppingRule:
        """Return a rule that counts the time of this run only."""
        return _TimeLimitOfRun(self.seconds, spent_s)


@dataclass(frozen=True, slots=True)
class _TimeLimitOfRun(StoppingRule):
    """Time limit of a resumed run. spent_s: the time of earlier runs."""

    seconds: float
    spent_s: float

    @property
    def kind(self) -> StopKind:
        """`StopKind.TIME_LIMIT`."""
        return StopKind.TIME_LIMIT

    def reason_to_stop(
        self, history: Sequence[Iteration], simulated: Floats | None = None, bound: UpperBound | None = None
    ) -> str | None:
        """Return a reason when the iterations of this run took at least `seconds`."""
        elapsed_s = history[-1].elapsed_s - self.spent_s
        return f"time limit of {self.seconds:g} s reached" if elapsed_s >= self.seconds else None


@stopping_rule
@dataclass(frozen=True, slots=True)
class BoundStalling(StoppingRule):
    """Stop when the lower bound grew by less than `tolerance` (relative) over `iterations` iterations.

    iterations: number of latest iterations, at least two of which are compared.
    tolerance: rise of the lower bound over these iterations, relative to it.
    """

    iterations: Count
    tolerance: NonNegative
    type: Literal["bound_stalling"] = "bound_stalling"

    def reason_to_stop(
        self, history: Sequence[Iteration], simulated: Floats | None = None, bound: UpperBound | None = None
    ) -> str | None:
        """Return a reason when the first and the last bound of the window differ by less than the tolerance."""
        window = max(2, self.iterations)
        if len(history) < window:
            return None
        now, then = history[-1].lower_bound, history[-window].lower_bound
        if abs(now - then) >= self.tolerance * gap_scale(now):
            return None
        return f"lower bound grew by less than {self.tolerance:g} (relative) over {self.iterations} iterations"


@stopping_rule
@dataclass(frozen=True, slots=True)
class Gap(StoppingRule):
    """Stop when the policy costs at most `tolerance` $ or `relative_tolerance` percent more than the lower bound.

    The cost is exact with enumerated selection. With sampled selection, an extension of the published format, the
    upper end of its confidence interval counts, in `patience` iterations in a row: an interval that is checked after
    every iteration is too low at some time. A study with a risk measure needs
    training.selection.risk_weighted_share for it.

    tolerance: in $.
    relative_tolerance: in percent of the lower bound.
    confidence: confidence level of the interval; sampled selection only, an extension of the published format.
    patience: number of iterations in a row in which a tolerance must be met; sampled selection only, an extension of
    the published format.
    """

    tolerance: NonNegative | None = None
    relative_tolerance: NonNegative | None = None
    confidence: Confidence = extension(DEFAULT_CONFIDENCE)
    patience: Count = extension(3)
    type: Literal["gap"] = "gap"

    def reason_to_stop(
        self, history: Sequence[Iteration], simulated: Floats | None = None, bound: UpperBound | None = None
    ) -> str | None:
        """Return a reason when one of the two tolerances is met."""
        if history[-1].is_exact:
            return self._met("the exact upper bound is", history[-1].upper_bound, history[-1].lower_bound)
        patience = min(self.patience, len(history))
        reasons = [self._reason(history[: len(history) - back]) for back in range(patience)]
        if patience < self.patience or None in reasons:
            return None
        return f"{reasons[0]}, in {counted(self.patience, 'iteration')} in a row"

    def _reason(self, history: Sequence[Iteration]) -> str | None:
        """Return why the last iteration of a history meets a tolerance; None if it does not."""
        last = history[-1]
        if last.policy_cost is None:
            return None
        samples, is_estimate = [record.cost_sample for record in history], last.policy_cost.is_estimate
        cost = latest_cost(samples, is_estimate=is_estimate, confidence=self.confidence)
        if cost is None or cost.half_width is None:
            return None
        kind = "estimated cost of the policy" if is_estimate else "cost of the policy"
        name = f"the upper end of the {100 * self.confidence:g} % interval of the {kind} is"
        return self._met(name, cost.largest, last.lower_bound)

    def _met(self, name: str, upper: float, lower: float) -> str | None:
        gap = upper - lower
        percent = 100.0 * gap / gap_scale(lower)
        where = "above" if gap >= 0.0 else "below"
        if self.tolerance is not None and gap <= self.tolerance:
            return f"{name} {money(abs(gap))} $ {where} the lower bound, at most {money(self.tolerance)} $ above it"
        if self.relative_tolerance is not None and percent <= self.relative_tolerance:
            allowed = f"at most {self.relative_tolerance:g} % above it"
            return f"{name} {abs(percent):.3g} % {where} the lower bound, {allowed}"
        return None


@stopping_rule
@dataclass(frozen=True, slots=True)
class SimulationBased(StoppingRule):
    """Stop when a simulation of the policy costs at most the lower bound plus a tolerance, at a confidence level.

    The policy is simulated every few iterations. The rule holds when the confidence interval of the mean (two-sided,
    Student's t) reaches down to the lower bound plus the tolerance. The reason also tells how much more than the bound
    the policy may cost: with few paths that may be a lot. An extension of the published format.

    replications: scenarios of each simulation.
    period: iterations between two simulations.
    confidence: confidence level of the test.
    relative_tolerance: maximum distance from the lower bound to the cost of the policy, relative to the bound.
    """

    replications: SampleSize
    period: Count
    confidence: Confidence = 0.95
    relative_tolerance: NonNegative = 0.0
    type: Literal["simulation"] = "simulation"

    def needs_simulation(self, history: Sequence[Iteration]) -> int:
        """Return `replications` in every iteration that is a multiple of `period`, else 0."""
        return self.replications if history[-1].iteration % self.period == 0 else 0

    def reason_to_stop(
        self, history: Sequence[Iteration], simulated: Floats | None = None, bound: UpperBound | None = None
    ) -> str | None:
        """Return a reason when the interval of the simulated mean reaches down to the lower bound plus tolerance."""
        if simulated is None or not self.needs_simulation(history):
            return None
        mean, half_width = mean_with_half_width(simulated[: self.replications].tolist(), self.confidence)
        lower = history[-1].lower_bound
        unit = gap_scale(lower)
        if mean - half_width > lower + self.relative_tolerance * unit:
            return None
        where = "is inside" if mean - half_width <= lower else f"is within {100 * self.relative_tolerance:g} % of it"
        maximum = max(0.0, 100 * (mean + half_width - lower) / unit)
        return (
            f"a simulation of {self.replications} paths costs {money(mean)} ± {money(half_width)} $ at "
            f"{100 * self.confidence:g} % confidence: the lower bound, {money(lower)} $, {where}; "
            f"the policy costs at most {maximum:.3g} % more than the bound"
        )


@stopping_rule
@dataclass(frozen=True, slots=True)
class UpperBoundGap(StoppingRule):
    """Stop when an upper bound that is valid under risk measures is within `gap_percent` of the lower bound.

    Of a sampled bound the upper end of the confidence interval counts. Under a risk measure a sample is an estimate
    from below, which the reason mentions. An extension of the published format.

    gap_percent: maximum distance from the lower to the upper bound, in percent of the lower bound.
    period: iterations between two upper bounds.
    method: as in `cobre bound`.
    paths: sampled paths of each bound.
    confidence: confidence level of a sampled estimate.
    """

    gap_percent: NonNegative
    period: Count = 10
    method: BoundMethodName = "auto"
    paths: SampleSize = DEFAULT_PATHS
    confidence: Confidence = DEFAULT_CONFIDENCE
    type: Literal["upper_bound"] = "upper_bound"

    def needs_bound(self, history: Sequence[Iteration]) -> BoundPlan | None:
        """Return a plan in every iteration that is a multiple of `period`, else None."""
        if history[-1].iteration % self.period:
            return None
        return BoundPlan(BoundMethod(self.method), self.paths, self.confidence)

    def reason_to_stop(
        self, history: Sequence[Iteration], simulated: Floats | None = None, bound: UpperBound | None = None
    ) -> str | None:
        """Return a reason when the gap to the upper bound is at most `gap_percent` of the lower bound."""
        if bound is None:
            return None
        percent = 100.0 * relative_gap(bound.lower_bound, bound.largest)
        if not percent <= self.gap_percent:
            return None
        prefix, kind = ("up to ", ", estimated from below") if bound.is_estimate else ("at most ", "")
        where = f"{prefix}{percent:.3g} % above" if percent >= 0.0 else f"{-percent:.3g} % below"
        return f"the {bound.name} is {where} the lower bound{kind}, as requested ({self.gap_percent:g} %)"


# Several rules in one run.


@dataclass(frozen=True, slots=True)
class AllRules(StoppingRule):
    """Stop when all of several rules hold in the same iteration."""

    rules: tuple[StoppingRule, ...]

    @property
    def kind(self) -> StopKind:
        """The kind of the first rule that judges bounds, else of the first rule."""
        kinds = [one.kind for one in self.rules]
        return next((kind for kind in kinds if kind.has_converged), kinds[0])

    @property
    def reads_first_stage(self) -> bool:
        """Whether one of the rules does."""
        return any(one.reads_first_stage for one in self.rules)

    def needs_simulation(self, history: Sequence[Iteration]) -> int:
        """Return the largest number of paths that any of the rules needs."""
        return max(one.needs_simulation(history) for one in self.rules)

    def needs_bound(self, history: Sequence[Iteration]) -> BoundPlan | None:
        """Return the plan of the first rule that needs a bound."""
        return next((plan for one in self.rules if (plan := one.needs_bound(history))), None)

    def resumed(self, spent_s: float) -> StoppingRule:
        """Return this combination of the rules as they continue a run."""
        return AllRules(tuple(one.resumed(spent_s) for one in self.rules))

    def reason_to_stop(
        self, history: Sequence[Iteration], simulated: Floats | None = None, bound: UpperBound | None = None
    ) -> str | None:
        """Return the reasons of all rules, joined; None as long as one of them has none."""
        reasons = [one.reason_to_stop(history, simulated, bound) for one in self.rules]
        return None if None in reasons else "; ".join(reason for reason in reasons if reason)


StoppingMode = Literal["any", "all"]


def rules_in_force(rules: Sequence[StoppingRule], mode: StoppingMode) -> list[StoppingRule]:
    """Return rules any of which ends a run. In mode `all`, the largest iteration limit still ends it."""
    if mode == "any":
        return list(rules)
    others = tuple(one for one in rules if not isinstance(one, IterationLimit))
    limit = iteration_limit((one.limit for one in rules if isinstance(one, IterationLimit)), mode)
    limits: list[StoppingRule] = [] if limit is None else [IterationLimit(limit)]
    return [*limits, AllRules(others)] if others else limits


def iteration_limit(limits: Iterable[int], mode: str) -> int | None:
    """Return the lowest limit in mode `any`, the highest in mode `all`; None without limits."""
    return (min if mode == "any" else max)(limits, default=None)
