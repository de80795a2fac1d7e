"""Arguments of scripts, checked before anything is started, and as plain as what is made of them needs.

Whole numbers may be those of NumPy; what leaves here is Python's own.
"""

import math
import operator
from numbers import Real
from pathlib import Path
from typing import overload

from cobre.policy.object import Policy
from cobre.study.requests import TrainingRequest


def as_python_int(value: object) -> object:
    """Another library's whole number as an int; anything else as it is, for the caller to refuse."""
    if isinstance(value, bool):
        return value
    try:
        return operator.index(value)  # type: ignore[arg-type]  # whether it is one is the question
    except TypeError:
        return value


@overload
def checked_count(name: str, value: int, maximum: int | None = None) -> int: ...
@overload
def checked_count(name: str, value: int | None, maximum: int | None = None) -> int | None: ...
def checked_count(name: str, value: int | None, maximum: int | None = None) -> int | None:
    """A whole number from 1 on, or None where the caller allows it."""
    if value is None:
        return None
    number = as_python_int(value)
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    if number < 1 or (maximum is not None and number > maximum):
        raise ValueError(f"{name} must be 1{f' to {maximum}' if maximum else ' or more'}, not {number}")
    return number


@overload
def checked_seconds(name: str, value: float) -> float: ...
@overload
def checked_seconds(name: str, value: float | None) -> float | None: ...
def checked_seconds(name: str, value: float | None) -> float | None:
    """Seconds, or None where the caller allows it."""
    if value is None:
        return None
    given: object = value
    if isinstance(given, bool) or not isinstance(given, Real):
        raise TypeError(f"{name} must be a number of seconds, not {value!r}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not 0 <= number < math.inf:
        raise ValueError(f"{name} must be a number of seconds, 0 or more, not {number}")
    return number


def check_policy(name: str, value: object) -> None:
    """Raise TypeError unless an argument is a policy or the path of one."""
    if not isinstance(value, (Policy, str, Path)):
        raise TypeError(f"{name} must be a policy or the path of one, not {value!r}")


def training_request(
    *,
    warm_start: Policy | str | Path | None,
    checkpoints: str | Path | None,
    checkpoint_every: int,
    resume: bool,
    time_limit_s: float | None,
) -> TrainingRequest:
    """How to train, from the arguments of `cobre.train` and `cobre.dask.train`."""
    if checkpoint_every is None:
        raise TypeError("checkpoint_every must be a whole number, not None; without `checkpoints` none are kept")
    every = checked_count("checkpoint_every", checkpoint_every)
    if warm_start is not None:
        check_policy("warm_start", warm_start)
    if resume and checkpoints is None:
        raise ValueError("resume=True needs the folder of the checkpoints: checkpoints=...")
    return TrainingRequest(
        checkpoints=None if checkpoints is None else Path(checkpoints),
        checkpoint_every=every,
        checkpoint_seconds=math.inf,  # by the number of iterations alone
        resume=resume,
        warm_start=Path(warm_start) if isinstance(warm_start, str) else warm_start,
        time_limit_s=checked_seconds("time_limit_s", time_limit_s),
    )
