"""What is asked of an upper bound, and what comes back."""

from dataclasses import dataclass
from typing import Any

from cobre.core.bound_methods import BOUND_NAMES, DEFAULT_CONFIDENCE, DEFAULT_MAX_NODES, DEFAULT_PATHS, BoundMethod
from cobre.core.verdict import relative_gap


@dataclass(frozen=True, slots=True)
class BoundPlan:
    """How to find a bound.

    paths: sampled ones, which an inner approximation takes its vertices from. max_nodes: of a tree that is enumerated.
    """

    method: BoundMethod = BoundMethod.AUTO
    paths: int = DEFAULT_PATHS
    confidence: float = DEFAULT_CONFIDENCE
    max_nodes: int = DEFAULT_MAX_NODES


@dataclass(frozen=True, slots=True)
class UpperBound:
    """In $. half_width: of the confidence interval, 0 where the bound is deterministic.

    size: nodes of the tree, vertices of the inner approximation, or sampled paths.
    """

    method: BoundMethod
    value: float
    lower_bound: float
    half_width: float
    confidence: float | None
    size: int

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
        """From the lower bound to `largest`, relative to the lower bound."""
        return relative_gap(self.lower_bound, self.largest)

    def as_dict(self) -> dict[str, Any]:
        """The bound with plain keys, as `cobre bound --json` prints it and bound.json holds it."""
        return {
            "method": str(self.method),
            "upper_bound": self.value,
            "half_width": self.half_width,
            "confidence": self.confidence,
            "lower_bound": self.lower_bound,
            "gap": self.gap,
            "is_deterministic": self.is_deterministic,
            "size": self.size,
        }
