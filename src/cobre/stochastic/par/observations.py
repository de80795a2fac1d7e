"""History as a grid: one mean inflow per year, season and hydro."""

from collections.abc import Mapping
from datetime import date

import numpy as np

from cobre.core.arrays import Floats
from cobre.core.case import Case
from cobre.records import dataclass
from cobre.stochastic.par.history import NOTHING, InflowWindows, history_windows
from cobre.stochastic.par.seasons import SeasonCycle


@dataclass(frozen=True, slots=True)
class Observations:
    """`values` (year, season, hydro) in m3/s, NaN where history does not cover every day of the season."""

    first_year: int
    values: Floats

    @property
    def years(self) -> range:
        """The years that the observations cover."""
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
    if not windows:
        return Observations(0, np.empty((0, cycle.length, len(case.system.hydros))))
    first = date.fromordinal(min(int(found.start.min()) for found in windows.values()))
    last = date.fromordinal(max(int(found.end.max()) for found in windows.values()))
    years = range(min(cycle.year_of(first, members) for members in cycle.cycles), last.year + 1)
    grids = [_grid(case, _Occurrences(cycle, members, years), windows) for members in cycle.cycles]
    return Observations(
        years.start, np.concatenate([grid.reshape(len(years), -1, grid.shape[1]) for grid in grids], axis=1)
    )


def _grid(case: Case, occurrences: "_Occurrences", windows: Mapping[int, InflowWindows]) -> Floats:
    """Mean inflows by season occurrence and hydro, m3/s."""
    return np.stack([occurrences.means(windows.get(hydro.id, NOTHING)) for hydro in case.system.hydros], axis=1)


class _Occurrences:
    """The seasons of a cycle over some years one after another, by the numbers of their days."""

    def __init__(self, cycle: SeasonCycle, members: range, years: range) -> None:
        periods = [cycle.occurrence(position, year) for year in years for position in members]
        bounds = sorted({day.toordinal() for period in periods for day in period})
        self._bounds = np.array(bounds, dtype=np.int64)
        self._seasons = np.searchsorted(self._bounds, [start.toordinal() for start, _ in periods])  # without gaps

    def means(self, windows: InflowWindows) -> Floats:
        """The mean of each season; days are shared out, and NaN is left where some are missing."""
        total = np.zeros(len(self._bounds))
        covered = np.zeros(len(total), dtype=np.int64)
        begin, end, value = windows.start, windows.end, windows.value_m3s
        inside = (begin < self._bounds[-1]) & (end > self._bounds[0])
        begin, end, value = np.maximum(begin[inside], self._bounds[0]), end[inside], value[inside]
        while len(begin):
            at = np.searchsorted(self._bounds, begin, side="right") - 1
            stop = np.minimum(end, self._bounds[at + 1])
            np.add.at(total, at, value * (stop - begin))
            np.add.at(covered, at, stop - begin)
            rest = (stop < end) & (stop < self._bounds[-1])
            begin, end, value = stop[rest], end[rest], value[rest]
        at = self._seasons
        length = self._bounds[at + 1] - self._bounds[at]
        return np.where(covered[at] == length, total[at] / length, np.nan)
