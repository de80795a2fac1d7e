"""Rules that end a training run, each with its reason in words."""

from collections.abc import Sequence
from dataclasses import dataclass

from cobre.core.config import BoundStalling, IterationLimit, StoppingRuleConfig, TimeLimit, TrainingConfig
from cobre.sddp.events import IterationRecord
from cobre.sddp.plugins.interfaces import StoppingRule


@dataclass(frozen=True, slots=True)
class StopAfterIterations(StoppingRule):
    """A number of iterations."""

    limit: int

    def reason_to_stop(self, history: Sequence[IterationRecord]) -> str | None:
        """When the last allowed iteration is done."""
        return f"iteration limit of {self.limit} reached" if len(history) >= self.limit else None


@dataclass(frozen=True, slots=True)
class StopAfterTime(StoppingRule):
    """A time, looked at between iterations."""

    seconds: float

    def reason_to_stop(self, history: Sequence[IterationRecord]) -> str | None:
        """When the time is up."""
        elapsed = history[-1].elapsed_s
        return f"time limit of {self.seconds:g} s reached" if elapsed >= self.seconds else None


@dataclass(frozen=True, slots=True)
class StopWhenStalled(StoppingRule):
    """The lower bound hardly moves any more."""

    iterations: int
    tolerance: float

    def reason_to_stop(self, history: Sequence[IterationRecord]) -> str | None:
        """When it grew by less than the tolerance, relative to itself, over so many iterations."""
        if len(history) <= self.iterations:
            return None
        now, then = history[-1].lower_bound, history[-1 - self.iterations].lower_bound
        if now - then > self.tolerance * max(1.0, abs(now)):
            return None
        return f"lower bound grew by less than {self.tolerance:g} (relative) over {self.iterations} iterations"


@dataclass(frozen=True, slots=True)
class StopWhenAll(StoppingRule):
    """All of several rules at the same iteration."""

    rules: tuple[StoppingRule, ...]

    def reason_to_stop(self, history: Sequence[IterationRecord]) -> str | None:
        """All reasons, or none."""
        reasons = [rule.reason_to_stop(history) for rule in self.rules]
        return None if None in reasons else "; ".join(reason for reason in reasons if reason)


def stopping_rules(config: TrainingConfig) -> list[StoppingRule]:
    """The rules of a configuration; in mode `all` the largest iteration limit still caps the run."""
    if config.stopping_mode == "any":
        return [_rule(rule) for rule in config.stopping_rules]
    limits = [rule.limit for rule in config.stopping_rules if isinstance(rule, IterationLimit)]
    others = tuple(_rule(rule) for rule in config.stopping_rules if not isinstance(rule, IterationLimit))
    cap = StopAfterIterations(max(limits))
    return [cap, StopWhenAll(others)] if others else [cap]


def _rule(config: StoppingRuleConfig) -> StoppingRule:
    match config:
        case IterationLimit(limit):
            return StopAfterIterations(limit)
        case TimeLimit(seconds):
            return StopAfterTime(seconds)
        case BoundStalling(iterations, tolerance):
            return StopWhenStalled(iterations, tolerance)
    raise ValueError(f"no stopping rule for {config}")
