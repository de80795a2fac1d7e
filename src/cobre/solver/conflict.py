"""Why a saved LP has no solution: an irreducible infeasible subsystem, or an unbounded ray.

Diagnosis after a failure, by HiGHS through highspy: the only module that imports it. Nothing here runs during a study.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cobre.errors import CobreError
from cobre.records import dataclass
from cobre.solver.program import INFEASIBLE, OPTIMAL, UNBOUNDED

_ZERO = 1e-9


class UnreadableLpError(CobreError):
    """A file that HiGHS cannot read as an LP in MPS format."""


@dataclass(frozen=True, slots=True)
class Limit:
    """One side of a row or of a column, in the units of the LP. `index`: of the row or column."""

    name: str
    index: int
    is_row: bool
    side: str  # at least, at most, exactly
    value: float


@dataclass(frozen=True, slots=True)
class Conflict:
    """Diagnosis of an LP without an optimum.

    limits: an irreducible infeasible set. violations: the smallest total violation that makes the LP feasible, by row.
    rising: columns that grow without limit along a ray of falling cost.
    """

    status: str
    limits: tuple[Limit, ...] = ()
    violations: tuple[Limit, ...] = ()
    rising: tuple[Limit, ...] = ()


def find_conflict(path: Path) -> Conflict:
    """Solve the LP of an MPS file again, and find what makes it infeasible or unbounded."""
    import highspy  # noqa: PLC0415 - not while studies run

    highs = _loaded(highspy, path)
    highs.run()
    status = highs.getModelStatus()
    known = highspy.HighsModelStatus
    if status == known.kOptimal:
        return Conflict(OPTIMAL)
    if status == known.kInfeasible:
        return Conflict(INFEASIBLE, tuple(_contradiction(highspy, highs)), tuple(_least_violations(highspy, path)))
    if status == known.kUnbounded:
        return Conflict(UNBOUNDED, rising=tuple(_rising(highs)))
    return Conflict(highs.modelStatusToString(status).lower())


def _loaded(highspy: Any, path: Path) -> Any:
    highs = highspy.Highs()
    highs.silent()
    highs.setOptionValue("presolve", "off")  # infeasible and unbounded are told apart
    if highs.readModel(str(path)) == highspy.HighsStatus.kError:
        raise UnreadableLpError(f"{path} is not an LP in MPS format")
    return highs


def _contradiction(highspy: Any, highs: Any) -> Iterator[Limit]:
    """Yield an irreducible set of limits without a solution."""
    strategy = highspy.IisStrategy
    highs.setOptionValue("iis_strategy", int(strategy.kIisStrategyFromLp) | int(strategy.kIisStrategyIrreducible))
    _, subsystem = highs.getIis()
    lp = highs.getLp()
    names, low, high = list(lp.row_names_), list(lp.row_lower_), list(lp.row_upper_)
    for index, bound in zip(subsystem.row_index_, subsystem.row_bound_, strict=True):
        yield from _sides(highspy, names, low, high, index, bound, is_row=True)
    names, low, high = list(lp.col_names_), list(lp.col_lower_), list(lp.col_upper_)
    for index, bound in zip(subsystem.col_index_, subsystem.col_bound_, strict=True):
        yield from _sides(highspy, names, low, high, index, bound, is_row=False)


def _sides(
    highspy: Any, names: list[str], low: list[float], high: list[float], index: int, bound: Any, *, is_row: bool
) -> Iterator[Limit]:
    kinds, bound = highspy.IisBoundStatus, highspy.IisBoundStatus(int(bound))
    if low[index] == high[index] and bound not in (kinds.kIisBoundStatusFree, kinds.kIisBoundStatusNull):
        yield Limit(names[index], index, is_row, "exactly", low[index])
        return
    if bound in (kinds.kIisBoundStatusLower, kinds.kIisBoundStatusBoxed):
        yield Limit(names[index], index, is_row, "at least", low[index])
    if bound in (kinds.kIisBoundStatusUpper, kinds.kIisBoundStatusBoxed):
        yield Limit(names[index], index, is_row, "at most", high[index])


def _least_violations(highspy: Any, path: Path) -> Iterator[Limit]:
    """Yield the violated rows, with the violation of each where the sum of violations is smallest."""
    highs = _loaded(highspy, path)
    if highs.feasibilityRelaxation(-1.0, -1.0, 1.0) == highspy.HighsStatus.kError:
        return
    lp, values = highs.getLp(), np.asarray(highs.getSolution().row_value)
    low, high = np.asarray(lp.row_lower_), np.asarray(lp.row_upper_)
    names = list(lp.row_names_)
    lacking = np.maximum(0.0, np.maximum(low - values[: len(low)], values[: len(low)] - high))
    for index in np.flatnonzero(lacking > _ZERO).tolist():
        side = "at least" if values[index] < low[index] else "at most"
        yield Limit(names[index], index, True, side, float(lacking[index]))


def _rising(highs: Any) -> Iterator[Limit]:
    """Yield the columns along a ray of falling cost, with their rates of change."""
    _, has_ray, ray = highs.getPrimalRay()
    names = list(highs.getLp().col_names_)
    if has_ray:
        pace = np.asarray(ray)
        for index in np.flatnonzero(np.abs(pace) > _ZERO).tolist():
            yield Limit(names[index], index, False, "at least", float(pace[index]))
