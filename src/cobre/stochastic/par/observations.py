"""History as a grid: one mean inflow per year, season and hydro."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import NamedTuple

import numpy as np

from cobre.core.arrays import Flags, Floats, Indices, runs
from cobre.core.case import Case
from cobre.core.file_names import HISTORY_FILE
from cobre.records import dataclass
from cobre.stochastic import NoiseModelError
from cobre.stochastic.par.seasons import SeasonCycle

# Observed inflows: windows of days by hydro, in columns, because a deck has hundreds of thousands of them.

Days = Indices
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
        """Return the windows of observations that end after a day."""
        later = np.flatnonzero(self.end > day.toordinal())
        columns = (self.start[later].tolist(), self.end[later].tolist(), self.value_m3s[later].tolist())
        return [
            InflowWindow(date.fromordinal(start), date.fromordinal(end), value)
            for start, end, value in zip(*columns, strict=True)
        ]


NO_WINDOWS = InflowWindows(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))


def history_windows(case: Case) -> Mapping[int, InflowWindows]:
    """Return the windows of each hydro that has any; overlaps are refused."""
    table = case.scenarios.inflow_history
    if table is None:
        return {}
    ids = table["hydro_id"].astype(np.int64)
    start, end = (table[name].astype("datetime64[D]").astype(np.int64) + _EPOCH for name in ("start_date", "end_date"))
    hydro_ids = np.array([hydro.id for hydro in case.system.hydros], np.int64)
    problem = "needs the id of a hydro and an end_date after its start_date"
    _refuse(~np.isin(ids, hydro_ids) | (end <= start), ids, start, problem)
    value = table["value_m3s"]
    is_next = (ids[1:] > ids[:-1]) | ((ids[1:] == ids[:-1]) & (start[1:] >= start[:-1]))
    if not is_next.all():  # tables of files are in order
        order = np.lexsort((start, ids))  # windows that start on the same day overlap anyway
        ids, start, end, value = ids[order], start[order], end[order], value[order]
    overlaps = np.append(False, (ids[1:] == ids[:-1]) & (start[1:] < end[:-1]))
    _refuse(overlaps, ids, start, "the window overlaps the one that starts on {before}")
    firsts = np.flatnonzero(np.append(True, ids[1:] != ids[:-1])).tolist() if len(ids) else []
    parts = (runs(column, firsts) for column in (start, end, value))
    return {int(ids[at]): InflowWindows(*columns) for at, *columns in zip(firsts, *parts, strict=True)}


def _refuse(is_wrong: Flags, ids: Days, start: Days, problem: str) -> None:
    """Raise for the first row that is wrong; the row before it can be named."""
    for row in np.flatnonzero(is_wrong)[:1]:
        day, before = (date.fromordinal(int(start[at])) for at in (row, max(row - 1, 0)))
        where = f"hydro_id {ids[row]}, start_date {day}"
        raise NoiseModelError(HISTORY_FILE, where, problem.format(before=before))


@dataclass(frozen=True, slots=True)
class Observations:
    """`values` (year, season, hydro) in m3/s, NaN if history does not cover every day of the season."""

    first_year: int
    values: Floats

    @property
    def years(self) -> range:
        """The years that the observations cover."""
        return range(self.first_year, self.first_year + len(self.values))

    def at(self, year: int, position: int) -> Floats:
        """Return one season of one year, per hydro; NaN outside the grid."""
        if year not in self.years:
            return np.full(self.values.shape[2], np.nan)
        season_values: Floats = self.values[year - self.first_year, position]
        return season_values


def observations(case: Case, cycle: SeasonCycle) -> Observations:
    """Return the grid of a case's history; a season belongs to the year in which it starts."""
    windows = history_windows(case)
    if not windows:
        return Observations(0, np.empty((0, cycle.length, len(case.system.hydros))))
    first = date.fromordinal(min(int(window.start.min()) for window in windows.values()))
    last = date.fromordinal(max(int(window.end.max()) for window in windows.values()))
    years = range(min(cycle.year_of(first, members) for members in cycle.cycles), last.year + 1)
    grids = [_grid(case, _Occurrences(cycle, members, years), windows) for members in cycle.cycles]
    return Observations(
        years.start, np.concatenate([grid.reshape(len(years), -1, grid.shape[1]) for grid in grids], axis=1)
    )


def _grid(case: Case, occurrences: "_Occurrences", windows: Mapping[int, InflowWindows]) -> Floats:
    """Return mean inflows by season occurrence and hydro, m3/s."""
    return occurrences.means([windows.get(hydro.id, NO_WINDOWS) for hydro in case.system.hydros])


class _Occurrences:
    """The seasons of a cycle over some years one after another, by the numbers of their days."""

    def __init__(self, cycle: SeasonCycle, members: range, years: range) -> None:
        periods = [cycle.occurrence(position, year) for year in years for position in members]
        bounds = sorted({day.toordinal() for period in periods for day in period})
        self._bounds = np.array(bounds, dtype=np.int64)
        self._seasons = np.searchsorted(self._bounds, [start.toordinal() for start, _ in periods])  # without gaps

    def means(self, windows: Sequence[InflowWindows]) -> Floats:
        """Return means (season, hydro) of the windows of each hydro.

        Days are shared out, and NaN is left where some are missing.
        """
        begin = np.concatenate([window.start for window in windows])
        end = np.concatenate([window.end for window in windows])
        value = np.concatenate([window.value_m3s for window in windows])
        hydro = np.repeat(np.arange(len(windows)), [len(window.start) for window in windows])
        total = np.zeros((len(windows), len(self._bounds)))
        covered = np.zeros(total.shape, dtype=np.int64)
        inside = (begin < self._bounds[-1]) & (end > self._bounds[0])
        begin, end, value, hydro = np.maximum(begin[inside], self._bounds[0]), end[inside], value[inside], hydro[inside]
        while len(begin):
            at = np.searchsorted(self._bounds, begin, side="right") - 1
            stop = np.minimum(end, self._bounds[at + 1])
            place = hydro * len(self._bounds) + at
            np.add.at(total.reshape(-1), place, value * (stop - begin))
            np.add.at(covered.reshape(-1), place, stop - begin)
            rest = (stop < end) & (stop < self._bounds[-1])
            begin, end, value, hydro = stop[rest], end[rest], value[rest], hydro[rest]
        at = self._seasons
        length = self._bounds[at + 1] - self._bounds[at]
        return np.ascontiguousarray(np.where(covered[:, at] == length, total[:, at] / length, np.nan).T)


# Observations of one hydro and season by kind, which decides how their mean and deviation are taken.
#
# The kinds are tried in this order:
#
# 1. constant: all are within 1e-6 of the first. The mean is the first one, the deviation 0. 2. negative: more than a
# tenth are below zero. Taken like ordinary ones, with a note for the user. 3. saturated: rounded to whole numbers,
# more than half are equal. The mean is that number, the deviation 0. 4. ordinary.
#
# A season with deviation 0 is white noise of order 0: it remembers nothing, and nothing remembers it.

_SAME_M3S = 1e-6
_ROUNDING = 1e-10
_NEGATIVE_SHARE = 0.1
_SATURATED_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class ObservationKinds:
    """By season and hydro. `level_m3s` is the mean of constant and saturated seasons, 0 elsewhere."""

    is_constant: Flags
    is_negative: Flags
    is_saturated: Flags
    level_m3s: Floats

    @property
    def is_level(self) -> Flags:
        """Whether the deviation counts as 0."""
        return self.is_constant | self.is_saturated


def ordinary(values: Floats) -> ObservationKinds:
    """Return kinds for means over many observations, which may be nearly equal: constant only if nothing varies."""
    first = _first_known(values)
    is_constant = ~np.isnan(first) & ~(np.abs(values - first) > _ROUNDING * np.abs(first)).any(axis=0)
    none = np.zeros(is_constant.shape, dtype=np.bool_)
    return ObservationKinds(is_constant, none, none, np.where(is_constant, first, 0.0))


def observation_kinds(values: Floats) -> ObservationKinds:
    """Classify a grid (year, season, hydro) of observations; NaN is none. Seasons without any are ordinary."""
    count = (~np.isnan(values)).sum(axis=0)
    first = _first_known(values)
    is_constant = (count > 0) & ~(np.abs(values - first) > _SAME_M3S).any(axis=0)
    is_negative = ~is_constant & ((values < 0.0).sum(axis=0) > _NEGATIVE_SHARE * count)
    mode, frequency = _most_frequent(rounded(values))
    is_saturated = ~is_constant & ~is_negative & (frequency > _SATURATED_SHARE * count)
    level = np.where(is_constant, first, np.where(is_saturated, mode, 0.0))
    return ObservationKinds(is_constant, is_negative, is_saturated, level)


def rounded(values: Floats) -> Floats:
    """Return the nearest whole numbers; halves go away from zero."""
    truncated = np.trunc(values)
    result: Floats = np.where(np.abs(values - truncated) >= 0.5, truncated + np.copysign(1.0, values), truncated)
    return result


def _first_known(values: Floats) -> Floats:
    first = np.full(values.shape[1:], np.nan)
    for value in values:
        first = np.where(np.isnan(first), value, first)
    return first


def _most_frequent(values: Floats) -> tuple[Floats, Indices]:
    """Return the most frequent number over the first axis, and how often it occurs; the smallest of several."""
    mode = np.full(values.shape[1:], np.nan)
    max_count = np.zeros(values.shape[1:], dtype=np.int64)
    run, before = max_count, mode
    for value in np.sort(values, axis=0):
        run = np.where(value == before, run + 1, np.where(np.isnan(value), 0, 1))
        mode, max_count, before = np.where(run > max_count, value, mode), np.maximum(run, max_count), value
    return mode, max_count
