"""Past inflows in the state: coefficients of lag slots, how slots change, and their initial content."""

from datetime import date

import numpy as np

from cobre.core.arrays import Flags, Floats
from cobre.core.case import Case
from cobre.records import dataclass
from cobre.stochastic.notes import NoiseNote
from cobre.stochastic.par.initial_lags import KnownPast, initial_lags
from cobre.stochastic.par.lag_slots import LagSlots, LagSteps, lag_slots, next_lags
from cobre.stochastic.par.stage_periods import StagePeriods


@dataclass(frozen=True, slots=True)
class InflowMemory:
    """`psi` (stage, slot, hydro), `first` (slot, hydro). `steps` None: slots are lags, which move on by one lag."""

    psi: Floats
    steps: LagSteps | None
    first: Floats
    notes: tuple[NoiseNote, ...] = ()

    def after(self, stage: int, slots: Floats, inflow: Floats) -> Floats:
        """What slots (slot, draw, hydro) hold after a stage with some inflows (draw, hydro)."""
        return next_lags(self.steps, stage, slots, inflow)


def inflow_memory(
    case: Case, psi: Floats, periods: StagePeriods | None, end_reads: Floats | None = None, *, may_miss: bool = False
) -> InflowMemory:
    """The memory of a model with coefficients `psi` (stage, lag, hydro).

    end_reads (lag, hydro): not zero where the lags at the end of the study are read, by the cuts of another study.
    may_miss: what is read and was not observed counts as 0, with a note.
    """
    depth = 0 if end_reads is None else len(end_reads)
    stages, order, hydros = psi.shape
    own = np.zeros((stages, max(order, depth), hydros))
    own[:, :order] = psi
    if periods is None or periods.is_plain or (not own.any() and not depth):
        reading = np.concatenate([own, np.zeros((1, *own.shape[1:]))])
        if end_reads is not None:
            # The end is one more stage; what the study itself reads is known to be there.
            reading[:] = 0.0
            reading[stages, :depth] = end_reads
        lags = initial_lags(case, reading, None if periods is None else periods.cycle, may_miss=may_miss)
        return InflowMemory(own, None, lags.values, lags.notes)
    past = KnownPast(case, _earliest(periods, own.shape[1]), may_miss=may_miss)
    slots = lag_slots(periods, own, lambda found: past.days_of(found.days), depth)
    first = _first(past, slots, end_reads)
    return InflowMemory(slots.psi, slots.steps, first, tuple(past.notes))


def _earliest(periods: StagePeriods, depth: int) -> date:
    """The first day that some stage may remember."""
    return min(periods.earlier(found, depth).days[0] for found in periods.of_stages)


def _first(past: KnownPast, slots: LagSlots, end_reads: Floats | None) -> Floats:
    """What slots hold before the first stage; slots that no stage reads may be unknown."""
    is_read = _is_read(slots, end_reads)
    values = np.zeros((len(slots.first), slots.psi.shape[2]))
    for slot, held in enumerate(slots.first):
        if held is not None and held[1] > 0.0:
            values[slot] = held[1] * past.means(held[0].days, slot + 1, is_read[slot])
    return values


def _is_read(slots: LagSlots, end_reads: Floats | None) -> Flags:
    """Whether some stage, or the end, depends on what a slot (slot, hydro) holds at first."""
    stages, width, hydros = slots.psi.shape
    read = np.zeros((width, hydros), bool)
    if end_reads is not None:
        read[: len(end_reads)] = end_reads != 0.0
    for stage in reversed(range(stages)):
        earlier = slots.psi[stage] != 0.0
        for slot, taken in enumerate(slots.steps.taken_from[stage].tolist()):
            if taken >= 0:
                earlier[taken] |= read[slot]
        read = earlier
    return read
