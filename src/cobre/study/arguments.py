"""Arguments of scripts, checked before anything is started."""

import math
from pathlib import Path

from cobre.study.policy import Policy

MAX_THREADS = 1024


def check_count(name: str, value: object, most: int | None = None) -> None:
    """A whole number from 1 on, or None."""
    if value is None:
        return
    limit = f" to {most}" if most else " or more"
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    if value < 1 or (most is not None and value > most):
        raise ValueError(f"{name} must be 1{limit}, not {value}")


def check_seconds(name: str, value: object) -> None:
    """Seconds, or None."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number of seconds, not {value!r}")
    if not 0 <= value < math.inf:
        raise ValueError(f"{name} must be a number of seconds from 0 on, not {value}")


def check_policy(name: str, value: object) -> None:
    """A policy or where one is stored."""
    if not isinstance(value, (Policy, str, Path)):
        raise TypeError(f"{name} must be a policy or the path of one, not {value!r}")
