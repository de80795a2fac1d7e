"""A case as scripts give it: a directory, or an object that may have been changed since it was read."""

from pathlib import Path

from cobre.core.case import Case
from cobre.core.config import IterationLimit
from cobre.core.editing import changed
from cobre.study.preparation.ready_study import as_case
from cobre.study.requests import Overrides, with_iterations


def case_and_overrides(
    case: Case | str | Path, overrides: Overrides | None, iterations: int | None = None
) -> tuple[Case | Path, Overrides | None]:
    """The case with another iteration limit. One that is an object is put in canonical order and checked.

    A directory is checked by whoever reads it.
    """
    if not isinstance(case, Case):
        return Path(case), with_iterations(overrides, iterations)
    as_case(case, overrides)  # refuses overrides
    if iterations is not None:
        case = changed(case, {"config.training.stopping_rules": (IterationLimit(iterations),)})
    from cobre.io.saving.checking import canonical_case

    return canonical_case(case), None
