"""Rules that end a training run, each with its reason in words."""

from collections.abc import Sequence

from cobre.core.arrays import Floats
from cobre.core.bound_methods import DEFAULT_CONFIDENCE, BoundMethod
from cobre.core.confidence import mean_with_half_width
from cobre.core.config import (
    BoundStalling,
    Gap,
    IterationLimit,
    SimulationBased,
    StoppingRuleConfig,
    TimeLimit,
    TrainingConfig,
    UpperBoundGap,
)
from cobre.core.verdict import gap_scale
from cobre.records import dataclass
from cobre.sddp.plugins.interfaces import StoppingRule
from cobre.sddp.records import BoundPlan, IterationRecord, StopKind, UpperBound, latest_cost
from cobre.wording import counted, money


@dataclass(frozen=True, slots=True)
class StopAfterIterations(StoppingRule):
    """Stop when `limit` iterations are done, those of earlier runs of a resumed study included."""

    limit: int

    @property
    def kind(self) -> StopKind:
        """`StopKind.ITERATION_LIMIT`."""
        return StopKind.ITERATION_LIMIT

    def reason_to_stop(
        self, history: Sequence[IterationRecord], simulated: Floats | None = None, bound: UpperBound | None = None
    ) -> str | None:
        """When the last allowed iteration is done."""
        return f"iteration limit of {self.limit} reached" if len(history) >= self.limit else None


@dataclass(frozen=True, slots=True)
class StopAfterTime(StoppingRule):
    """Stop when a time (s) is up, looked at between iterations; earlier runs of a resumed study do not count."""

    seconds: float
    spent_s: float = 0.0

    @property
    def kind(self) -> StopKind:
        """`StopKind.TIME_LIMIT`."""
        return StopKind.TIME_LIMIT

    def reason_to_stop(
        self, history: Sequence[IterationRecord], simulated: Floats | None = None, bound: UpperBound | None = None
    ) -> str | None:
        """When the iterations of this run took at least `seconds`."""
        elapsed = history[-1].elapsed_s - self.spent_s
        return f"time limit of {self.seconds:g} s reached" if elapsed >= self.seconds else None


@dataclass(frozen=True, slots=True)
class StopWhenStalled(StoppingRule):
    """The lower bound hardly moves any more."""

    iterations: int
    tolerance: float

    @property
    def kind(self) -> StopKind:
        """`StopKind.BOUND_STALLING`."""
        return StopKind.BOUND_STALLING

    def reason_to_stop(
        self, history: Sequence[IterationRecord], simulated: Floats | None = None, bound: UpperBound | None = None
    ) -> str | None:
        """When the latest bounds (two or more) differ by less than the tolerance, relative to the newest."""
        window = max(2, self.iterations)
        if len(history) < window:
            return None
        now, then = history[-1].lower_bound, history[-window].lower_bound
        if abs(now - then) >= self.tolerance * gap_scale(now):
            return None
        return f"lower bound grew by less than {self.tolerance:g} (relative) over {self.iterations} iterations"


@dataclass(frozen=True, slots=True)
class StopWhenSimulationAgrees(StoppingRule):
    """The policy is simulated every few iterations, until its mean cost cannot be distinguished from the lower bound.

    The confidence interval of the mean (two sides, Student's t) reaches down to the lower bound plus a tolerance, which
    is relative to the bound. The reason also says how much more than the bound the policy may cost: with few paths that
    may be a lot.
    """

    replications: int
    period: int
    confidence: float
    relative_tolerance: float

    @property
    def kind(self) -> StopKind:
        """`StopKind.SIMULATION`."""
        return StopKind.SIMULATION

    def needs_simulation(self, history: Sequence[IterationRecord]) -> int:
        """All paths when it is time, none otherwise."""
        return self.replications if history[-1].iteration % self.period == 0 else 0

    def reason_to_stop(
        self, history: Sequence[IterationRecord], simulated: Floats | None = None, bound: UpperBound | None = None
    ) -> str | None:
        """When the confidence interval of the simulated mean reaches down to the lower bound plus tolerance."""
        if simulated is None or not self.needs_simulation(history):
            return None
        mean, half_width = mean_with_half_width(simulated[: self.replications].tolist(), self.confidence)
        lower = history[-1].lower_bound
        unit = gap_scale(lower)
        if mean - half_width > lower + self.relative_tolerance * unit:
            return None
        where = "lies inside" if mean - half_width <= lower else f"is within {100 * self.relative_tolerance:g} % of it"
        most = max(0.0, 100 * (mean + half_width - lower) / unit)
        return (
            f"a simulation of {self.replications} paths costs {money(mean)} ± {money(half_width)} $ at "
            f"{100 * self.confidence:g} % confidence: the lower bound, {money(lower)} $, {where}; "
            f"the policy costs at most {most:.3g} % more than the bound"
        )


@dataclass(frozen=True, slots=True)
class StopWhenGapCloses(StoppingRule):
    """The cost of the policy is near the lower bound: in $, or in percent of the lower bound.

    An exact cost once; of a sampled one the upper end of its confidence interval, in `patience` iterations in a row:
    who looks at an interval after every iteration sees it too low at some time.
    """

    tolerance: float | None
    relative_tolerance: float | None
    confidence: float = DEFAULT_CONFIDENCE
    patience: int = 3

    @property
    def kind(self) -> StopKind:
        """`StopKind.GAP`."""
        return StopKind.GAP

    def reason_to_stop(
        self, history: Sequence[IterationRecord], simulated: Floats | None = None, bound: UpperBound | None = None
    ) -> str | None:
        """When one of the two tolerances is met."""
        if history[-1].is_exact:
            return self._met("the exact upper bound is", history[-1].upper_bound, history[-1].lower_bound)
        patience = min(self.patience, len(history))
        reasons = [self._reason(history[: len(history) - back]) for back in range(patience)]
        if patience < self.patience or None in reasons:
            return None
        return f"{reasons[0]}, in {counted(self.patience, 'iteration')} in a row"

    def _reason(self, history: Sequence[IterationRecord]) -> str | None:
        """Why the last iteration of a history meets a tolerance; None where it does not."""
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


@dataclass(frozen=True, slots=True)
class StopWhenBoundGapCloses(StoppingRule):
    """Every few iterations an upper bound is found that is valid under a risk measure too; it is near the lower one.

    Of a sample the upper end of the confidence interval counts. Under a risk measure a sample is an estimate from
    below, which the reason says.
    """

    plan: BoundPlan
    period: int
    gap_percent: float

    @property
    def kind(self) -> StopKind:
        """`StopKind.UPPER_BOUND`."""
        return StopKind.UPPER_BOUND

    def needs_bound(self, history: Sequence[IterationRecord]) -> BoundPlan | None:
        """Its plan in every iteration that is a multiple of `period`."""
        return self.plan if history[-1].iteration % self.period == 0 else None

    def reason_to_stop(
        self, history: Sequence[IterationRecord], simulated: Floats | None = None, bound: UpperBound | None = None
    ) -> str | None:
        """When the gap to the upper bound is at most `gap_percent` of the lower bound."""
        if bound is None or not 100.0 * bound.gap <= self.gap_percent:
            return None
        most, kind = ("up to ", ", estimated from below") if bound.is_estimate else ("at most ", "")
        where = f"{most}{100.0 * bound.gap:.3g} % above" if bound.gap >= 0.0 else f"{-100.0 * bound.gap:.3g} % below"
        return f"the {bound.name} is {where} the lower bound{kind}, as asked for ({self.gap_percent:g} %)"


@dataclass(frozen=True, slots=True)
class StopWhenAll(StoppingRule):
    """All of several rules at the same iteration."""

    rules: tuple[StoppingRule, ...]

    @property
    def kind(self) -> StopKind:
        """The kind of the first rule that judges bounds, else of the first rule."""
        kinds = [rule.kind for rule in self.rules]
        return next((kind for kind in kinds if kind.has_converged), kinds[0])

    def needs_simulation(self, history: Sequence[IterationRecord]) -> int:
        """The largest number of paths that any of the rules wants."""
        return max(rule.needs_simulation(history) for rule in self.rules)

    def needs_bound(self, history: Sequence[IterationRecord]) -> BoundPlan | None:
        """What the first of them wants that wants one."""
        return next((plan for rule in self.rules if (plan := rule.needs_bound(history))), None)

    def reason_to_stop(
        self, history: Sequence[IterationRecord], simulated: Floats | None = None, bound: UpperBound | None = None
    ) -> str | None:
        """The reasons of all rules, joined; None as long as one of them has none."""
        reasons = [rule.reason_to_stop(history, simulated, bound) for rule in self.rules]
        return None if None in reasons else "; ".join(reason for reason in reasons if reason)


def stopping_rules(config: TrainingConfig, spent_s: float = 0.0) -> list[StoppingRule]:
    """The rules of a configuration; in mode `all` the largest iteration limit still caps the run.

    spent_s: what earlier runs of a study that is resumed took.
    """
    if config.stopping_mode == "any":
        return [_rule(rule, spent_s) for rule in config.stopping_rules]
    others = tuple(_rule(rule, spent_s) for rule in config.stopping_rules if not isinstance(rule, IterationLimit))
    limit = config.iteration_limit
    caps: list[StoppingRule] = [] if limit is None else [StopAfterIterations(limit)]
    return [*caps, StopWhenAll(others)] if others else caps


def _rule(config: StoppingRuleConfig, spent_s: float) -> StoppingRule:
    match config:
        case IterationLimit(limit):
            return StopAfterIterations(limit)
        case TimeLimit(seconds):
            return StopAfterTime(seconds, spent_s)
        case BoundStalling(iterations, tolerance):
            return StopWhenStalled(iterations, tolerance)
        case SimulationBased(replications, period, confidence, tolerance):
            return StopWhenSimulationAgrees(replications, period, confidence, tolerance)
        case UpperBoundGap(gap_percent, period, method, paths, confidence):
            return StopWhenBoundGapCloses(BoundPlan(BoundMethod(method), paths, confidence), period, gap_percent)
        case Gap(tolerance, relative_tolerance, confidence, patience):
            return StopWhenGapCloses(tolerance, relative_tolerance, confidence, patience)
    raise ValueError(f"no stopping rule for {config}")
