"""How an upper bound of a policy is computed: methods by name, and their defaults. Light to import."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal


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
