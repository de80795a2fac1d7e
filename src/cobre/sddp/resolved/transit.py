"""Water in transit: its slots in the state, and when the releases of a stage arrive."""

from collections.abc import Iterator, Sequence

import numpy as np

from cobre.core.arrays import Floats
from cobre.core.case import Case
from cobre.core.stage_data import IN_TRANSIT, StateSlot, TransitNumbers
from cobre.core.travel_time import PastRelease, TravelArc, TravelAxis, travel_arcs
from cobre.core.units import HM3_PER_M3S_HOUR
from cobre.sddp.resolved.declared import positions_by_id


class TransitResolver:
    """Arcs are plants with a travel time to the plant below; water in transit belongs to the receiving plant.

    later_hours: of the periods after the study for which a boundary policy values what arrives.
    """

    def __init__(self, case: Case, later_hours: Sequence[float] = ()) -> None:
        self._case = case
        self._axis = TravelAxis.of(case.horizon, later_hours)
        self._positions = positions_by_id(hydro.id for hydro in case.system.hydros)
        self._arcs = travel_arcs(case.system.hydros)
        self._distances = {arc: self._distances_of(arc) for arc in self._arcs}
        self.decided = tuple(self._slots(is_decided=True))
        self.passed = tuple(self._slots(is_decided=False))

    def initial(self, slots: Sequence[StateSlot]) -> Floats:
        """What was released before the study and arrives in its stages or the periods after them, hm3."""
        volumes = np.zeros((len(self._positions), self._axis.num_periods))
        for arc in self._arcs:
            for release in self._past(arc):
                hm3 = HM3_PER_M3S_HOUR * release.value_m3s * self._axis.past_hours(release, arc.hours)
                volumes[self._positions[arc.downstream_id]] += hm3
        return np.array([volumes[slot.entity, slot.distance - 1] for slot in slots], np.float64)

    def of(self, stage: int) -> TransitNumbers:
        """What a stage (from 0) releases and gets."""
        periods = len(self._axis.blocks[stage].lengths)
        at_once = np.zeros((len(self._arcs), periods, periods))
        later = np.zeros((len(self._arcs), periods, len(self.decided)))
        arriving = np.zeros((len(self._positions), periods))
        for number, arc in enumerate(self._arcs):
            target = self._positions[arc.downstream_id]
            at_once[number] = self._axis.arrival_shares_within(stage, arc.hours)
            arriving[target] = self._axis.arrival_shares(stage, arc.hours)
            shares = self._axis.shares(stage, arc.hours)
            for position, slot in enumerate(self.decided):
                if slot.entity == target and stage + slot.distance < self._axis.num_periods:
                    later[number, :, position] = shares[:, stage + slot.distance]
        return TransitNumbers(
            hydro=np.array([self._positions[arc.hydro_id] for arc in self._arcs], np.int64),
            target=np.array([self._positions[arc.downstream_id] for arc in self._arcs], np.int64),
            arrival_share=at_once,
            carried_share=later,
            carried_arrival=arriving,
            arrives_after_study=np.array(
                [self._axis.arrives_after_study(stage, arc.hours) for arc in self._arcs], bool
            ),
            is_carried=np.array([stage + slot.distance < self._axis.num_periods for slot in self.decided], bool),
        )

    def _slots(self, *, is_decided: bool) -> Iterator[StateSlot]:
        for hydro_id, target in self._positions.items():
            arcs = [arc for arc in self._arcs if arc.downstream_id == hydro_id]
            decided = {distance for arc in arcs for distance in self._distances[arc]}
            known = decided | {distance for arc in arcs for distance in self._past_distances(arc)}
            for distance in range(1, max(known, default=0) + 1):
                if (distance in decided) == is_decided:
                    yield StateSlot(IN_TRANSIT, target, distance)

    def _distances_of(self, arc: TravelArc) -> set[int]:
        """How many stages later water arrives that some stage releases."""
        found = set()
        for stage in range(len(self._axis.blocks)):
            arrives = np.flatnonzero(self._axis.shares(stage, arc.hours).any(axis=0)) - stage
            found |= {int(distance) for distance in arrives if distance > 0}
        return found

    def _past_distances(self, arc: TravelArc) -> set[int]:
        hits = [np.flatnonzero(self._axis.past_hours(release, arc.hours)) for release in self._past(arc)]
        return {int(stage) + 1 for stages in hits for stage in stages}

    def _past(self, arc: TravelArc) -> list[PastRelease]:
        return [row for row in self._case.initial_conditions.past_releases if row.hydro_id == arc.hydro_id]
