"""History as a grid: one mean inflow per year, season and hydro."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

from cobre.core.case import Case
from cobre.stochastic.par.history import Window, history_windows
from cobre.stochastic.par.seasons import SeasonCycle

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Observations:
    """`values` (year, season, hydro) in m3/s, NaN where history does not cover every day of the season."""

    first_year: int
    values: Floats

    @property
    def years(self) -> range:
        """The years of the grid."""
        return range(self.first_year, self.first_year + len(self.values))

    def at(self, year: int, position: int) -> Floats:
        """One season of one year, per hydro; NaN outside the grid."""
        if year not in self.years:
            return np.full(self.values.shape[2], np.nan)
        found: Floats = self.values[year - self.first_year, position]
        return found


def observations(case: Case, cycle: SeasonCycle) -> Observations:
    """The grid of a case's history; a season belongs to the year in which it starts."""
    windows = history_windows(case)
    days = [window for found in windows.values() for window in found]
    if not days:
        return Observations(0, np.empty((0, cycle.length, len(case.system.hydros))))
    first = cycle.period_start(min(window.start_date for window in days)).year
    last = max(window.end_date for window in days).year
    occurrences = _Occurrences(cycle, first, last)
    values = [occurrences.means(windows.get(hydro.id, [])) for hydro in case.system.hydros]
    return Observations(first, np.stack(values, axis=1).reshape(last - first + 1, cycle.length, -1))


class _Occurrences:
    """The seasons of some years one after another, by the numbers of their days."""

    def __init__(self, cycle: SeasonCycle, first_year: int, last_year: int) -> None:
        starts = [
            date(year, season.month_start, 1).toordinal()
            for year in range(first_year, last_year + 1)
            for season in cycle.seasons
        ]
        end = date(last_year + 1, cycle.seasons[0].month_start, 1).toordinal()
        self._bounds = np.array([*starts, end], dtype=np.int64)

    def means(self, windows: Sequence[Window]) -> Floats:
        """The mean of each season; days are shared out, and NaN is left where some are missing."""
        total = np.zeros(len(self._bounds) - 1)
        covered = np.zeros(len(total), dtype=np.int64)
        begin = np.array([window.start_date.toordinal() for window in windows], dtype=np.int64)
        end = np.array([window.end_date.toordinal() for window in windows], dtype=np.int64)
        value = np.array([window.value_m3s for window in windows], dtype=np.float64)
        while len(begin):
            at = np.searchsorted(self._bounds, begin, side="right") - 1
            stop = np.minimum(end, self._bounds[at + 1])
            np.add.at(total, at, value * (stop - begin))
            np.add.at(covered, at, stop - begin)
            rest = stop < end
            begin, end, value = stop[rest], end[rest], value[rest]
        length = np.diff(self._bounds)
        return np.where(covered == length, total / length, np.nan)
