"""The memory of inflows as a state: one slot for each season that some later stage still reads.

A slot holds what is known so far of a season's mean: the share of days that were observed before the study, and of each
stage that is over. At each stage every slot takes over another slot of the stage before, or begins empty, and adds its
share of the stage's inflow. So the state stays a linear function of inflows, and cuts know all of it.

Slots come in the order of the next stage's lags: the first holds lag 1, and so on; seasons that are read later follow.
"""

from collections.abc import Callable

import numpy as np

from cobre.core.arrays import Floats, Ints, sum_in_order
from cobre.core.case_file_names import STAGES_FILE
from cobre.records import dataclass
from cobre.stochastic.errors import NoiseModelError
from cobre.stochastic.par.stage_periods import Occurrence, StagePeriods

NOTHING = -1


@dataclass(frozen=True, slots=True)
class LagSteps:
    """How slots change at each stage (stage, slot): which they take over (-1: none), and their share of its inflow."""

    taken_from: Ints
    inflow_share: Floats


def next_lags(steps: LagSteps | None, stage: int, slots: Floats, inflow: Floats) -> Floats:
    """What slots (slot, ..., hydro) hold after a stage with some inflows (..., hydro).

    steps: None where slots are lags, which move on by one lag.
    """
    if steps is None:
        return np.concatenate([inflow[None], slots[:-1]]) if len(slots) else slots
    by_slot = (-1, *[1] * inflow.ndim)
    taken, share = steps.taken_from[stage], steps.inflow_share[stage]
    following: Floats = slots[taken] * (taken >= 0).reshape(by_slot) + share.reshape(by_slot) * inflow
    return following


@dataclass(frozen=True, slots=True)
class LagSlots:
    """Coefficients (stage, slot, hydro) in place of (stage, lag, hydro), how slots change, and what they start from.

    `first`: what each slot holds before the first stage, and the share of its mean that is known there; None: nothing.
    """

    psi: Floats
    steps: LagSteps
    first: tuple[tuple[Occurrence, float] | None, ...]


def lag_slots(
    periods: StagePeriods, psi: Floats, days_observed: Callable[[Occurrence], int], end_depth: int = 0
) -> LagSlots:
    """Slots for a model with coefficients `psi` (stage, lag, hydro).

    days_observed: how many days of an occurrence are known from before the study. end_depth: lags that are read at the
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
        self.last_reader = {found: t for t, read in enumerate(self.reads) for found in read}
        self.shares = {found: self._shares(found) for found in self.last_reader}

    def _read_by(self, occurrence: Occurrence, depth: int) -> list[Occurrence]:
        return [self.periods.earlier(occurrence, lag) for lag in range(1, depth + 1)]

    def _shares(self, found: Occurrence) -> dict[int, float]:
        """By stage (-1: before the study): the share of an occurrence's mean, which is whole when it is first read."""
        occurrences = [*self.periods.of_stages, self.periods.end]
        whole = next(t for t, own in enumerate(occurrences) if own.cycle == found.cycle and own.days > found.days)
        days = {NOTHING: self.days_observed(found)} | {t: self.periods.days_of(t, found) for t in range(whole)}
        total = sum_in_order(days.values())
        if not total:
            raise NoiseModelError(
                STAGES_FILE,
                f"stage {self.periods.horizon.stages[min(whole, self.stages - 1)].id}",
                f"its inflow depends on the season from {found.days[0]} to {found.days[1]} (exclusive), of which no "
                "earlier stage and no observation has a day",
            )
        return {t: count / total for t, count in days.items() if count}

    def build(self) -> LagSlots:
        """Compute coefficients by slot, how slots change from stage to stage, and their initial content."""
        held = [self._held(start) for start in range(self.stages + 1)]
        width = max(map(len, held))
        psi = np.zeros((self.stages, width, self.psi.shape[2]))
        taken = np.full((self.stages, width), NOTHING, np.int32)
        share = np.zeros((self.stages, width))
        for t in range(self.stages):
            psi[t, : len(self.reads[t])] = self.psi[t, : len(self.reads[t])]
            for slot, found in enumerate(held[t + 1]):
                taken[t, slot] = held[t].index(found) if found in held[t] else NOTHING
                share[t, slot] = self.shares[found].get(t, 0.0)
        known = [(found, self.shares[found].get(NOTHING, 0.0)) for found in held[0]]
        return LagSlots(psi, LagSteps(taken, share), (*known, *[None] * (width - len(known))))

    def _held(self, start: int) -> list[Occurrence]:
        """What slots hold before a stage: its own lags first, in order, then what later stages read."""
        known = [
            found
            for found, last in self.last_reader.items()
            if last >= start and any(t < start for t in self.shares[found])
        ]
        own = self.reads[start]
        return [*own, *sorted((found for found in known if found not in own), reverse=True)]


def _depth(psi: Floats) -> int:
    """The deepest lag that some plant reads."""
    read = np.flatnonzero((psi != 0.0).any(axis=1))
    return int(read[-1]) + 1 if len(read) else 0
