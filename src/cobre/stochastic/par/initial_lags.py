"""Initial inflow lags: means over the seasons just before the study, from dated windows."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date

import numpy as np

from cobre.core.arrays import Flags, Floats, Ints, sum_in_order
from cobre.core.case import Case
from cobre.core.file_names import CONDITIONS_FILE, HISTORY_FILE, STAGES_FILE
from cobre.records import dataclass
from cobre.stochastic import NoiseModelError, NoiseNote
from cobre.stochastic.par.observations import NO_WINDOWS, InflowWindow, history_windows
from cobre.stochastic.par.seasons import Occurrence, SeasonCycle, StagePeriods


@dataclass(frozen=True, slots=True)
class InitialLags:
    """Lags (lag, hydro) in m3/s, the latest first, and notes on lags without observations."""

    values: Floats
    notes: tuple[NoiseNote, ...] = ()


def initial_lags(case: Case, psi: Floats, cycle: SeasonCycle | None, *, may_miss: bool = False) -> InitialLags:
    """Return initial lags; unknown ones are 0 if no stage reads them, or with a note where `may_miss`.

    Given coefficients come with the lags they need; an estimated model may ask for more than history has.
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
    """Yield one note for all plants that miss the same lags."""
    plants: dict[tuple[int, ...], list[str]] = {}
    for index, hydro in enumerate(case.system.hydros):
        lags = tuple(int(lag) + 1 for lag in np.flatnonzero(missing[:, index]))
        if lags:
            plants.setdefault(lags, []).append(f"{hydro.id} ({hydro.name})")
    for lags, names in plants.items():
        yield NoiseNote(
            "lags-taken-as-zero",
            f"{CONDITIONS_FILE}, recent_observations (or {HISTORY_FILE})",
            f"hydro_id {', '.join(names)}",
            f"the estimated model reads lag {', '.join(map(str, lags))}, which windows do not cover: taken as 0",
        )


def _is_read(psi: Floats) -> Flags:
    """Return whether some stage's inflow depends on a lag from before the study: stage t reads it at lag l + t."""
    stages, order, hydros = psi.shape
    is_read = np.zeros((order, hydros), dtype=np.bool_)
    for stage in range(min(stages, order)):
        is_read[: order - stage] |= psi[stage, stage:] != 0.0
    return is_read


def _windows_by_hydro(case: Case, since: date) -> dict[int, list[Sequence[InflowWindow]]]:
    """Return by hydro recent observations, which take precedence, then the history since a day."""
    windows: dict[int, list[Sequence[InflowWindow]]] = {}
    recent = case.initial_conditions.recent_observations
    history = history_windows(case)
    own: dict[int, list[InflowWindow]] = {}
    for item in recent:
        own.setdefault(item.hydro_id, []).append(InflowWindow(item.start_date, item.end_date, item.value_m3s))
    for hydro in case.system.hydros:
        windows[hydro.id] = [sorted(own.get(hydro.id, [])), history.get(hydro.id, NO_WINDOWS).since(since)]
    return windows


@dataclass(frozen=True, slots=True)
class _Days:
    """Layers of windows; on each day the first layer that covers it counts."""

    layers: Sequence[Sequence[InflowWindow]]

    def mean(self, start: date, end: date) -> float | None:
        """Return the mean over days; None when a day is not covered."""
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
    """Return value-days inside a period, and the parts of it that no window covers. windows: in order of start."""
    total, gaps, reached = 0.0, [], start
    for window in windows:
        if window.start_date >= end:
            break
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
        f"{CONDITIONS_FILE}, recent_observations (or {HISTORY_FILE})",
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
        """Return observed days of a period before the study.

        For a period that continues in the study, only if all plants have them.
        """
        start, end = period[0], min(period[1], self._start)
        is_known = all(days.mean(start, end) is not None for days in self._days) if start < end < period[1] else True
        return max(0, (end - start).days) if is_known else 0

    def means(self, period: tuple[date, date], lag: int, is_read: Flags) -> Floats:
        """Return the mean inflow of every hydro over the days before the study; 0 if it is unknown and not read."""
        start, end = period[0], min(period[1], self._start)
        means = np.zeros(len(self._days))
        for index, (hydro, days) in enumerate(zip(self._hydros, self._days, strict=True)):
            value = days.mean(start, end)
            if value is None and is_read[index]:
                error = _uncovered(hydro.id, hydro.name, lag, start, end)
                if not self._may_miss:
                    raise error
                text = f"{error.problem}; taken as 0"
                self.notes.append(NoiseNote("lags-taken-as-zero", error.file, error.where, text))
            means[index] = 0.0 if value is None else value
        return means


# The memory of inflows as a state: one slot for each season that some later stage still reads.
#
# A slot holds what is known so far of a season's mean: the share of days that were observed before the study, and of
# each stage that is over. At each stage every slot takes over another slot of the stage before, or begins empty, and
# adds its share of the stage's inflow. So the state stays a linear function of inflows, and cuts know all of it.
#
# Slots come in the order of the next stage's lags: the first holds lag 1, and so on; seasons that are read later
# follow.

NO_SLOT = -1


@dataclass(frozen=True, slots=True)
class LagSteps:
    """How slots change at each stage (stage, slot): which they take over (-1: none), and their share of its inflow."""

    taken_from: Ints
    inflow_share: Floats


def next_lags(steps: LagSteps | None, stage: int, slots: Floats, inflow: Floats) -> Floats:
    """Return the content of slots (slot, ..., hydro) after a stage with some inflows (..., hydro).

    steps: None if slots are lags, which move on by one lag.
    """
    if steps is None:
        return np.concatenate([inflow[None], slots[:-1]]) if len(slots) else slots
    by_slot = (-1, *[1] * inflow.ndim)
    source, share = steps.taken_from[stage], steps.inflow_share[stage]
    following: Floats = slots[source] * (source >= 0).reshape(by_slot) + share.reshape(by_slot) * inflow
    return following


@dataclass(frozen=True, slots=True)
class LagSlots:
    """Coefficients (stage, slot, hydro) in place of (stage, lag, hydro), how slots change, and what they start from.

    `first`: the content of each slot before the first stage, and the share of its mean that is known; None if empty.
    """

    psi: Floats
    steps: LagSteps
    first: tuple[tuple[Occurrence, float] | None, ...]


def lag_slots(
    periods: StagePeriods, psi: Floats, days_observed: Callable[[Occurrence], int], end_depth: int = 0
) -> LagSlots:
    """Return slots for a model with coefficients `psi` (stage, lag, hydro).

    days_observed: number of days of an occurrence observed before the study. end_depth: lags that are read at the
    end of the study.
    """
    return _Slots(periods, psi, days_observed, end_depth).build()


class _Slots:
    """Assigns the occurrences of seasons that stages read to slots."""

    def __init__(
        self, periods: StagePeriods, psi: Floats, days_observed: Callable[[Occurrence], int], end_depth: int
    ) -> None:
        self.periods, self.psi, self.days_observed = periods, psi, days_observed
        self.stages = len(psi)
        self.reads = [self._read_by(periods.of_stages[t], _depth(psi[t])) for t in range(self.stages)]
        self.reads.append(self._read_by(periods.end, end_depth))
        self.last_reader = {occurrence: t for t, read in enumerate(self.reads) for occurrence in read}
        self.shares = {occurrence: self._shares(occurrence) for occurrence in self.last_reader}

    def _read_by(self, occurrence: Occurrence, depth: int) -> list[Occurrence]:
        return [self.periods.earlier(occurrence, lag) for lag in range(1, depth + 1)]

    def _shares(self, occurrence: Occurrence) -> dict[int, float]:
        """Return by stage (-1: before the study) the share of an occurrence's mean; whole when it is first read."""
        occurrences = [*self.periods.of_stages, self.periods.end]
        whole = next(
            t for t, own in enumerate(occurrences) if own.cycle == occurrence.cycle and own.days > occurrence.days
        )
        days = {NO_SLOT: self.days_observed(occurrence)} | {
            t: self.periods.days_of(t, occurrence) for t in range(whole)
        }
        total = sum_in_order(days.values())
        if not total:
            raise NoiseModelError(
                STAGES_FILE,
                f"stage {self.periods.horizon.stages[min(whole, self.stages - 1)].id}",
                f"its inflow depends on the season from {occurrence.days[0]} to {occurrence.days[1]} (exclusive), "
                "of which no earlier stage and no observation has a day",
            )
        return {t: count / total for t, count in days.items() if count}

    def build(self) -> LagSlots:
        """Compute coefficients by slot, how slots change from stage to stage, and their initial content."""
        held = [self._held(start) for start in range(self.stages + 1)]
        width = max(map(len, held))
        psi = np.zeros((self.stages, width, self.psi.shape[2]))
        taken = np.full((self.stages, width), NO_SLOT, np.int32)
        share = np.zeros((self.stages, width))
        for t in range(self.stages):
            psi[t, : len(self.reads[t])] = self.psi[t, : len(self.reads[t])]
            for slot, occurrence in enumerate(held[t + 1]):
                taken[t, slot] = held[t].index(occurrence) if occurrence in held[t] else NO_SLOT
                share[t, slot] = self.shares[occurrence].get(t, 0.0)
        initial = [(occurrence, self.shares[occurrence].get(NO_SLOT, 0.0)) for occurrence in held[0]]
        return LagSlots(psi, LagSteps(taken, share), (*initial, *[None] * (width - len(initial))))

    def _held(self, start: int) -> list[Occurrence]:
        """Return the occurrences in the slots before a stage: its lags in order, then those that later stages read."""
        needed_later = [
            occurrence
            for occurrence, last in self.last_reader.items()
            if last >= start and any(t < start for t in self.shares[occurrence])
        ]
        own = self.reads[start]
        return [*own, *sorted((occurrence for occurrence in needed_later if occurrence not in own), reverse=True)]


def _depth(psi: Floats) -> int:
    """Return the deepest lag that some plant reads."""
    lags = np.flatnonzero((psi != 0.0).any(axis=1))
    return int(lags[-1]) + 1 if len(lags) else 0
