"""Observed inflows: windows of days by hydro, in columns, because a deck has hundreds of thousands of them."""

from collections.abc import Mapping
from datetime import date
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cobre.core.arrays import Flags, Floats, Indices
from cobre.core.case import Case
from cobre.records import dataclass
from cobre.stochastic.errors import NoiseModelError

Days = Indices
HISTORY_FILE = "scenarios/inflow_history.parquet"
_EPOCH = date(1970, 1, 1).toordinal()


class InflowWindow(NamedTuple):
    """A mean inflow over some days; `end_date` is the first day after them."""

    start_date: date
    end_date: date
    value_m3s: float


@dataclass(frozen=True, slots=True)
class InflowWindows:
    """The windows of one hydro in order of time; days are ordinals, as those of `date`."""

    start: Days
    end: Days
    value_m3s: Floats

    def since(self, day: date) -> list[InflowWindow]:
        """The windows of observations that end after a day."""
        later = np.flatnonzero(self.end > day.toordinal())
        columns = (self.start[later].tolist(), self.end[later].tolist(), self.value_m3s[later].tolist())
        return [
            InflowWindow(date.fromordinal(start), date.fromordinal(end), value)
            for start, end, value in zip(*columns, strict=True)
        ]


NOTHING = InflowWindows(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))


def history_windows(case: Case) -> Mapping[int, InflowWindows]:
    """The windows of each hydro that has any; overlaps are refused."""
    table = case.scenarios.inflow_history
    if table is None:
        return {}
    ids = table["hydro_id"].astype(np.int64)
    start, end = (_ordinals(table[name]) for name in ("start_date", "end_date"))
    known = np.array([hydro.id for hydro in case.system.hydros], np.int64)
    problem = "needs the id of a hydro and an end_date after its start_date"
    _refuse(~np.isin(ids, known) | (end <= start), ids, start, problem)
    order = np.lexsort((table["value_m3s"], end, start, ids))
    ids, start, end, value = ids[order], start[order], end[order], table["value_m3s"][order]
    overlaps = np.append(False, (ids[1:] == ids[:-1]) & (start[1:] < end[:-1]))
    _refuse(overlaps, ids, start, "the window overlaps the one that starts on {before}")
    firsts = np.flatnonzero(np.append(True, ids[1:] != ids[:-1])) if len(ids) else np.zeros(0, np.int64)
    parts = (np.split(column, firsts[1:]) for column in (start, end, value))
    return {int(ids[at]): InflowWindows(*columns) for at, *columns in zip(firsts, *parts, strict=True)}


def _ordinals(days: NDArray[np.datetime64]) -> Days:
    return days.astype("datetime64[D]").astype(np.int64) + _EPOCH


def _refuse(is_wrong: Flags, ids: Days, start: Days, problem: str) -> None:
    """Raise for the first row that is wrong; the row before it can be named."""
    for row in np.flatnonzero(is_wrong)[:1]:
        day, before = (date.fromordinal(int(start[at])) for at in (row, max(row - 1, 0)))
        where = f"hydro_id {ids[row]}, start_date {day}"
        raise NoiseModelError(HISTORY_FILE, where, problem.format(before=before))
