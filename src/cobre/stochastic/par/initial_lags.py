"""Initial inflow lags: means over the seasons just before the study, from dated windows."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date

import numpy as np

from cobre.core.arrays import Flags, Floats
from cobre.core.case import Case
from cobre.records import dataclass
from cobre.stochastic.errors import NoiseModelError
from cobre.stochastic.notes import NoiseNote
from cobre.stochastic.par.history import HISTORY_FILE, NOTHING, InflowWindow, history_windows
from cobre.stochastic.par.seasons import SeasonCycle


@dataclass(frozen=True, slots=True)
class InitialLags:
    """Lags (lag, hydro) in m3/s, the latest first, and notes on lags without observations."""

    values: Floats
    notes: tuple[NoiseNote, ...] = ()


def initial_lags(case: Case, psi: Floats, cycle: SeasonCycle | None, *, may_miss: bool = False) -> InitialLags:
    """Lags that no stage reads may be unknown, and are 0 then; so is a lag that is read where `may_miss`, with a note.

    Whoever gives coefficients knows what they need; an estimated model may ask for more than history has.
    """
    order = psi.shape[1]
    lags = np.zeros((order, len(case.system.hydros)))
    if cycle is None or order == 0:
        return InitialLags(lags)
    periods = cycle.past_periods(case.horizon.stages[0].start_date, order)
    observed = _windows_by_hydro(case, since=periods[-1][0])
    for hydro_index, hydro in enumerate(case.system.hydros):
        days = _Days(observed[hydro.id])
        lags[:, hydro_index] = [np.nan if value is None else value for value in (days.mean(*at) for at in periods)]
    missing = np.isnan(lags) & _is_read(psi)
    if missing.any() and not may_miss:
        lag, hydro_index = np.argwhere(missing)[0]
        hydro = case.system.hydros[hydro_index]
        raise _uncovered(hydro.id, hydro.name, int(lag) + 1, *periods[lag])
    return InitialLags(np.where(np.isnan(lags), 0.0, lags), tuple(_notes(case, missing)))


def _notes(case: Case, missing: Flags) -> Iterator[NoiseNote]:
    """One note for all plants that miss the same lags."""
    plants: dict[tuple[int, ...], list[str]] = {}
    for index, hydro in enumerate(case.system.hydros):
        lags = tuple(int(lag) + 1 for lag in np.flatnonzero(missing[:, index]))
        if lags:
            plants.setdefault(lags, []).append(f"{hydro.id} ({hydro.name})")
    for lags, names in plants.items():
        yield NoiseNote(
            f"initial_conditions.json, recent_observations (or {HISTORY_FILE})",
            f"hydro_id {', '.join(names)}",
            f"the estimated model reads lag {', '.join(map(str, lags))}, which windows do not cover: taken as 0",
        )


def _is_read(psi: Floats) -> Flags:
    """Whether some stage's inflow depends on a lag from before the study: stage t reads it at lag l + t."""
    stages, order, hydros = psi.shape
    read = np.zeros((order, hydros), dtype=np.bool_)
    for stage in range(min(stages, order)):
        read[: order - stage] |= psi[stage, stage:] != 0.0
    return read


def _windows_by_hydro(case: Case, since: date) -> dict[int, list[Sequence[InflowWindow]]]:
    """By hydro: recent observations, which take precedence, then the history since a day."""
    found: dict[int, list[Sequence[InflowWindow]]] = {}
    recent = case.initial_conditions.recent_observations
    history = history_windows(case)
    own: dict[int, list[InflowWindow]] = {}
    for item in recent:
        own.setdefault(item.hydro_id, []).append(InflowWindow(item.start_date, item.end_date, item.value_m3s))
    for hydro in case.system.hydros:
        found[hydro.id] = [sorted(own.get(hydro.id, [])), history.get(hydro.id, NOTHING).since(since)]
    return found


@dataclass(frozen=True, slots=True)
class _Days:
    """Layers of windows; on each day the first layer that covers it counts."""

    layers: Sequence[Sequence[InflowWindow]]

    def mean(self, start: date, end: date) -> float | None:
        """The mean over days; None when a day is not covered."""
        total, missing = 0.0, [(start, end)]
        for windows in self.layers:
            uncovered: list[tuple[date, date]] = []
            for gap in missing:
                part, rest = _covered(windows, *gap)
                total = total + part
                uncovered.extend(rest)
            missing = uncovered
        return None if missing else total / (end - start).days


def _covered(windows: Iterable[InflowWindow], start: date, end: date) -> tuple[float, list[tuple[date, date]]]:
    """Value-days inside a period, and the parts of it that no window covers."""
    total, gaps, reached = 0.0, [], start
    for window in windows:
        first, last = max(window.start_date, reached), min(window.end_date, end)
        if first >= last:
            continue
        if first > reached:
            gaps.append((reached, first))
        total = total + window.value_m3s * (last - first).days
        reached = last
    if reached < end:
        gaps.append((reached, end))
    return total, gaps


def _uncovered(hydro_id: int, name: str, lag: int, start: date, end: date) -> NoiseModelError:
    return NoiseModelError(
        f"initial_conditions.json, recent_observations (or {HISTORY_FILE})",
        f"hydro_id {hydro_id} ({name})",
        f"lag {lag} is needed but not every day from {start} to {end} (exclusive) is covered; add windows for them",
    )


class KnownPast:
    """Observed inflows of the days before a study."""

    def __init__(self, case: Case, since: date, *, may_miss: bool) -> None:
        self._may_miss = may_miss
        self.notes: list[NoiseNote] = []
        self._start = case.horizon.stages[0].start_date
        self._hydros = case.system.hydros
        windows = _windows_by_hydro(case, since)
        self._days = [_Days(windows[hydro.id]) for hydro in self._hydros]

    def days_of(self, period: tuple[date, date]) -> int:
        """Observed days of a period before the study.

        For a period that continues in the study, only if all plants have them.
        """
        start, end = period[0], min(period[1], self._start)
        is_known = all(days.mean(start, end) is not None for days in self._days) if start < end < period[1] else True
        return max(0, (end - start).days) if is_known else 0

    def means(self, period: tuple[date, date], lag: int, is_read: Flags) -> Floats:
        """Mean inflow of every hydro over the days before the study; 0 where it is unknown and not read."""
        start, end = period[0], min(period[1], self._start)
        found = np.zeros(len(self._days))
        for index, (hydro, days) in enumerate(zip(self._hydros, self._days, strict=True)):
            value = days.mean(start, end)
            if value is None and is_read[index]:
                error = _uncovered(hydro.id, hydro.name, lag, start, end)
                if not self._may_miss:
                    raise error
                self.notes.append(NoiseNote(error.file, error.where, f"{error.problem}; taken as 0"))
            found[index] = 0.0 if value is None else value
        return found
