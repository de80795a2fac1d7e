"""Bounds of a policy: relative gaps, and methods, requests and results of upper bounds. Light to import."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal

from cobre.records import dataclass


class BoundMethod(StrEnum):
    """How an upper bound is computed."""

    AUTO = "auto"  # the tightest that the size of the study allows
    ENUMERATION = "enumeration"  # the policy on every path of the opening tree: its exact cost
    INNER = "inner"  # inner approximation: deterministic, for few state variables
    SAMPLED = "sampled"  # paths drawn by the weights of the risk measure: an estimate with a confidence interval


BoundMethodName = Literal["auto", "enumeration", "inner", "sampled"]
"""The values of BoundMethod, as a type of settings: a type checker cannot make it of the class."""

BOUND_NAMES: Mapping[str, str] = {
    BoundMethod.ENUMERATION: "exact cost of the policy",
    BoundMethod.INNER: "upper bound by inner approximation",
    BoundMethod.SAMPLED: "estimated cost of the policy",
}
"""Names of upper bounds in messages, by method."""

DEFAULT_PATHS = 200
DEFAULT_CONFIDENCE = 0.95
DEFAULT_MAX_NODES = 20_000


def gap_scale(lower: float) -> float:
    """Return the denominator of relative gaps: |lower bound|, at least 1 $."""
    return max(1.0, abs(lower))


def relative_gap(lower: float, upper: float) -> float:
    """Return (upper - lower) / max(1, |lower|): the rule of tables, events, reports and stopping rules."""
    return (upper - lower) / gap_scale(lower)


@dataclass(frozen=True, slots=True)
class BoundPlan:
    """Request for an upper bound.

    paths: sampled ones, which an inner approximation takes its vertices from. max_nodes: of a tree that is enumerated.
    seed: seed of the sampled paths.
    """

    method: BoundMethod = BoundMethod.AUTO
    paths: int = DEFAULT_PATHS
    confidence: float = DEFAULT_CONFIDENCE
    max_nodes: int = DEFAULT_MAX_NODES
    seed: int = 0


@dataclass(frozen=True, slots=True)
class UpperBound:
    """Upper bound of a policy, $. half_width: of the confidence interval; 0 if the bound is deterministic.

    size: nodes of the tree, vertices of the inner approximation, or sampled paths.
    is_estimate: value is an estimate of the policy's cost from below (sampled, under a risk measure), not a bound.
    at_most: then the upper end of the interval of a bound in expectation; None if that says nothing.
    """

    method: BoundMethod
    value: float
    lower_bound: float
    half_width: float
    confidence: float | None
    size: int
    is_estimate: bool = False
    at_most: float | None = None

    @property
    def upper_bound(self) -> float | None:
        """The bound, $: of an estimate `at_most`; of another sample the middle of its interval."""
        return self.at_most if self.is_estimate else self.value

    @property
    def policy_cost(self) -> float | None:
        """The cost of the policy, exact or estimated; None for the bound of an inner approximation."""
        return None if self.method is BoundMethod.INNER else self.value

    @property
    def is_deterministic(self) -> bool:
        """Whether no sampling error is left."""
        return self.method is not BoundMethod.SAMPLED

    @property
    def name(self) -> str:
        """The bound's name in messages, such as `exact cost of the policy`."""
        return BOUND_NAMES[self.method]

    @property
    def largest(self) -> float:
        """The upper end of the confidence interval, or the bound itself."""
        return self.value + self.half_width

    @property
    def gap(self) -> float:
        """From the lower bound to `value`, relative to the lower bound."""
        return relative_gap(self.lower_bound, self.value)

    @property
    def gap_at_most(self) -> float | None:
        """To the upper end of the confidence interval; of an estimate to `at_most`, None if that says nothing."""
        upper = self.at_most if self.is_estimate else self.largest
        return None if upper is None else relative_gap(self.lower_bound, upper)

    def as_dict(self) -> dict[str, Any]:
        """Return the bound with plain keys, as `cobre bound --json` prints it and bound.json holds it.

        Of an estimate, `upper_bound` and `gap_at_most` are those of `at_most`, and may be null; `policy_cost`,
        `half_width` and `gap` are the estimate's.
        """
        upper = self.upper_bound
        estimate = {"is_estimate": True} if self.is_estimate else {}
        return {
            "method": str(self.method),
            "upper_bound": upper,
            "policy_cost": self.policy_cost,
            "half_width": self.half_width,
            "confidence": self.confidence,
            "lower_bound": self.lower_bound,
            "gap": self.gap,
            "gap_at_most": self.gap_at_most,
            "is_deterministic": self.is_deterministic,
            "size": self.size,
        } | estimate
