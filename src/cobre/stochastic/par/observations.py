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
    values = np.full((last - first + 1, cycle.length, len(case.system.hydros)), np.nan)
    for index, hydro in enumerate(case.system.hydros):
        _fill(values[:, :, index], first, cycle, windows.get(hydro.id, []))
    return Observations(first, values)


def _fill(grid: Floats, first_year: int, cycle: SeasonCycle, windows: Sequence[Window]) -> None:
    """Means of whole seasons: days are shared out, and seasons that end up complete are kept."""
    total, covered = np.zeros(grid.shape), np.zeros(grid.shape, dtype=np.int64)
    for window in windows:
        day = window.start_date
        while day < window.end_date:
            start, end = cycle.period_start(day), cycle.period_end(day)
            stop = min(end, window.end_date)
            place = (start.year - first_year, cycle.position_of(day))
            total[place] += window.value_m3s * (stop - day).days
            covered[place] += (stop - day).days
            day = stop
    for year, position in np.argwhere(covered > 0):
        start = date(first_year + int(year), cycle.seasons[position].month_start, 1)
        length = (cycle.period_end(start) - start).days
        if covered[year, position] == length:
            grid[year, position] = total[year, position] / length
