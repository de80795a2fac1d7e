"""Arguments of scripts, checked and normalised before anything is started.

NumPy integers are converted to int.
"""

import math
import operator
from numbers import Real
from pathlib import Path
from typing import overload

from cobre.core.case import Case, changed
from cobre.core.stopping import IterationLimit
from cobre.policy.object import Policy
from cobre.study.requests import Overrides, TrainingRequest, with_iterations


def as_python_int(value: object) -> object:
    """Convert another library's integer to int; anything else is returned unchanged."""
    if isinstance(value, bool):
        return value
    try:
        return operator.index(value)  # type: ignore[arg-type]  # raises TypeError for others
    except TypeError:
        return value


@overload
def checked_count(name: str, value: int, maximum: int | None = None) -> int: ...


@overload
def checked_count(name: str, value: int | None, maximum: int | None = None) -> int | None: ...


def checked_count(name: str, value: int | None, maximum: int | None = None) -> int | None:
    """Return an integer from 1 on, or None if the caller allows it; raise TypeError or ValueError otherwise."""
    if value is None:
        return None
    number = as_python_int(value)
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError(f"{name}: expected a whole number, got {value!r}")
    if number < 1 or (maximum is not None and number > maximum):
        raise ValueError(f"{name}: expected 1{f' to {maximum}' if maximum else ' or more'}, got {number}")
    return number


@overload
def checked_seconds(name: str, value: float) -> float: ...


@overload
def checked_seconds(name: str, value: float | None) -> float | None: ...


def checked_seconds(name: str, value: float | None) -> float | None:
    """Return seconds, or None if the caller allows it; raise TypeError or ValueError otherwise."""
    if value is None:
        return None
    argument: object = value
    if isinstance(argument, bool) or not isinstance(argument, Real):
        raise TypeError(f"{name}: expected a number of seconds, got {value!r}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not 0 <= number < math.inf:
        raise ValueError(f"{name}: expected a number of seconds, 0 or more, got {number}")
    return number


def check_policy(name: str, value: object) -> None:
    """Raise TypeError unless an argument is a policy or the path of one."""
    if not isinstance(value, (Policy, str, Path)):
        raise TypeError(f"{name}: expected a policy or the path of one, got {value!r}")


def training_request(
    *,
    warm_start: Policy | str | Path | None,
    checkpoints: str | Path | None,
    checkpoint_every: int,
    resume: bool,
    time_limit_s: float | None,
) -> TrainingRequest:
    """Build a training request from the arguments of `cobre.train` and `cobre.dask.train`."""
    if checkpoint_every is None:
        raise TypeError("checkpoint_every: expected a whole number, got None; without `checkpoints` none are kept")
    every = checked_count("checkpoint_every", checkpoint_every)
    if warm_start is not None:
        check_policy("warm_start", warm_start)
    if resume and checkpoints is None:
        raise ValueError("resume=True needs the folder of the checkpoints: checkpoints=...")
    return TrainingRequest(
        checkpoints=None if checkpoints is None else Path(checkpoints),
        checkpoint_every=every,
        checkpoint_seconds=math.inf,  # by the number of iterations only
        resume=resume,
        warm_start=Path(warm_start) if isinstance(warm_start, str) else warm_start,
        time_limit_s=checked_seconds("time_limit_s", time_limit_s),
    )


def refuse_overrides(overrides: Overrides | None) -> None:
    """Raise ValueError for overrides of a case in memory: they apply when a case is read."""
    if overrides:
        raise ValueError(
            "config_overrides apply when a case is read: give the case directory, or pass them to load_case"
        )


def case_and_overrides(
    case: Case | str | Path, overrides: Overrides | None, iterations: int | None = None
) -> tuple[Case | Path, Overrides | None]:
    """Return the case, as a path or in canonical order and checked, and the overrides; `iterations` replaces its limit.

    A directory is checked when it is read.
    """
    if not isinstance(case, Case):
        return Path(case), with_iterations(overrides, iterations)
    refuse_overrides(overrides)
    if iterations is not None:
        case = changed(case, {"config.training.stopping_rules": (IterationLimit(iterations),)})
    from cobre.io.saving.case_writer import canonical_case

    return canonical_case(case), None
