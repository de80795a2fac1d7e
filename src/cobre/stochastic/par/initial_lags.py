"""Where the inflows stand when the study starts: means over the seasons just before it, from dated windows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

from cobre.core.case import Case
from cobre.stochastic.errors import NoiseModelError
from cobre.stochastic.par.history import HISTORY_FILE, Window, history_windows
from cobre.stochastic.par.seasons import SeasonCycle

Floats = NDArray[np.float64]


def initial_lags(case: Case, psi: Floats, cycle: SeasonCycle | None) -> Floats:
    """Lags (lag, hydro), the latest first. Those that no stage reads may be unknown, and are 0 then."""
    order = psi.shape[1]
    lags = np.zeros((order, len(case.system.hydros)))
    if cycle is None or order == 0:
        return lags
    periods = cycle.past_periods(case.horizon.stages[0].start_date, order)
    is_read = _is_read(psi)
    observed = _windows_by_hydro(case, since=periods[-1][0])
    for hydro_index, hydro in enumerate(case.system.hydros):
        days = _Days(observed[hydro.id])
        for lag, (start, end) in enumerate(periods):
            value = days.mean(start, end)
            if value is None and is_read[lag, hydro_index]:
                raise _uncovered(hydro.id, hydro.name, lag + 1, start, end)
            lags[lag, hydro_index] = 0.0 if value is None else value
    return lags


def _is_read(psi: Floats) -> NDArray[np.bool_]:
    """Whether some stage's inflow depends on a lag from before the study: stage t reads it at lag l + t."""
    stages, order, hydros = psi.shape
    read = np.zeros((order, hydros), dtype=np.bool_)
    for stage in range(min(stages, order)):
        read[: order - stage] |= psi[stage, stage:] != 0.0
    return read


def _windows_by_hydro(case: Case, since: date) -> dict[int, list[Sequence[Window]]]:
    """Recent observations, which have the last word, then what history says of the days since."""
    found: dict[int, list[Sequence[Window]]] = {}
    recent = case.initial_conditions.recent_observations
    history = history_windows(case)
    for hydro in case.system.hydros:
        own = [Window(item.start_date, item.end_date, item.value_m3s) for item in recent if item.hydro_id == hydro.id]
        later = [window for window in history.get(hydro.id, []) if window.end_date > since]
        found[hydro.id] = [sorted(own), later]
    return found


@dataclass(frozen=True, slots=True)
class _Days:
    """Layers of windows; on each day the first layer that covers it counts."""

    layers: Sequence[Sequence[Window]]

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


def _covered(windows: Iterable[Window], start: date, end: date) -> tuple[float, list[tuple[date, date]]]:
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
