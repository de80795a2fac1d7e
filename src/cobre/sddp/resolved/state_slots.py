"""State slots besides storages and lags: commitments of anticipated thermal plants, and water in transit.

What the state holds when the study begins, and what each stage adds, carries on and delivers.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from cobre.core.arrays import HM3_PER_M3S_HOUR, HOURS_PER_DAY, Floats
from cobre.core.case import Case
from cobre.core.delays import (
    BEFORE_STUDY,
    Anticipation,
    Deliveries,
    PastRelease,
    PostStudyBound,
    TravelArc,
    TravelAxis,
    anticipations,
    travel_arcs,
)
from cobre.core.stage_data import COMMITMENT, IN_TRANSIT, CommitmentNumbers, StateSlot, ThermalNumbers, TransitNumbers
from cobre.core.temporal import DAYS_PER_YEAR
from cobre.sddp.resolved.declared import positions_by_id


class CommitmentResolver:
    """Limits and costs of a decision are those of its delivery; `thermals` are the numbers of the study's stages."""

    def __init__(self, case: Case, thermals: Sequence[ThermalNumbers]) -> None:
        self._case = case
        self._deliveries = Deliveries.of(case.horizon, case.post_study)
        self._positions = positions_by_id(plant.id for plant in case.system.thermals)
        self._plants = anticipations(case.system.thermals, self._deliveries)
        self._thermals = thermals
        self._discounts = _discounts(case)
        self._after: Mapping[tuple[int, int], PostStudyBound] = {
            (row.thermal_id, row.post_study_stage_index): row for row in case.post_study.thermal_bounds
        }
        self._decided = tuple(self._slots(is_decided=True))
        self.decided = tuple(slot for _, slot in self._decided)
        self.passed = tuple(slot for _, slot in self._slots(is_decided=False))

    def initial(self, slots: Sequence[StateSlot]) -> Floats:
        """Return the power ordered before the study, MW."""
        by_position = {self._positions[plant.thermal.id]: plant for plant in self._plants}
        return np.array([self._committed(by_position[slot.entity], slot.distance - 1) for slot in slots], np.float64)

    def resolve(self, stage: int) -> CommitmentNumbers:
        """Return the deliveries and decisions of a stage (from 0)."""
        count = len(self.decided)
        is_committed = np.zeros(len(self._positions), bool)
        for plant in self._plants:
            is_committed[self._positions[plant.thermal.id]] = plant.deciders[stage] < stage
        is_decided, is_carried = np.zeros(count, bool), np.zeros(count, bool)
        minimum, maximum, cost = np.zeros(count), np.zeros(count), np.zeros(count)
        is_after, days = np.zeros(count, bool), np.full(count, "NaT", "datetime64[D]")
        for number, (plant, slot) in enumerate(self._decided):
            delivery = stage + slot.distance
            is_decided[number] = plant.decides(stage, delivery)
            is_carried[number] = plant.is_known_after(stage, delivery) and not is_decided[number]
            if is_decided[number]:
                minimum[number], maximum[number], price = self._at_delivery(plant, delivery)
                cost[number] = price * self._discount(stage, delivery)
                is_after[number] = delivery >= self._deliveries.num_stages
                days[number] = self._deliveries.starts[delivery]
        return CommitmentNumbers(is_committed, is_decided, is_carried, minimum, maximum, cost, is_after, days)

    def _slots(self, *, is_decided: bool) -> Iterator[tuple[Anticipation, StateSlot]]:
        for plant in self._plants:
            distances = plant.decided_distances
            for distance in range(1, plant.distances + 1):
                if (distance in distances) == is_decided:
                    yield plant, StateSlot(COMMITMENT, self._positions[plant.thermal.id], distance)

    def _committed(self, plant: Anticipation, delivery: int) -> float:
        if not plant.is_known_after(BEFORE_STUDY, delivery):
            return 0.0
        windows = [row for row in self._case.initial_conditions.past_commitments if row.thermal_id == plant.thermal.id]
        return self._deliveries.committed_mw(delivery, windows)

    def _at_delivery(self, plant: Anticipation, delivery: int) -> tuple[float, float, float]:
        """Return least and most MW, and $ of one MW over all hours."""
        hours, num_stages = self._deliveries.hours[delivery], self._deliveries.num_stages
        if delivery >= num_stages:
            row = self._after[plant.thermal.id, delivery - num_stages]
            return row.min_mw, row.max_mw, row.cost_per_mwh * hours
        position, numbers = self._positions[plant.thermal.id], self._thermals[delivery]
        return (
            float(numbers.min_mw[position, 0]),
            float(numbers.max_mw[position, 0]),
            float(numbers.cost[position, 0]) * hours,
        )

    def _discount(self, stage: int, delivery: int) -> float:
        factor = 1.0
        for step in self._discounts[stage:delivery]:
            factor *= step
        return factor


def _discounts(case: Case) -> list[float]:
    """Return discount factors of the transitions after each stage, of the study and after it."""
    rate = 1.0 + case.horizon.policy_graph.annual_discount_rate
    days = [stage.duration_hours / HOURS_PER_DAY for stage in case.post_study.stages]
    inside = [case.horizon.discount_factor(stage) for stage in case.horizon.stages]
    return inside + [float(rate ** -(part / DAYS_PER_YEAR)) for part in days]


# Water in transit: its slots in the state, and when the releases of a stage arrive.


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
        """Return water released before the study that arrives in its stages or the periods after them, hm3."""
        volumes = np.zeros((len(self._positions), self._axis.num_periods))
        for arc in self._arcs:
            for release in self._past(arc):
                hm3 = HM3_PER_M3S_HOUR * release.value_m3s * self._axis.past_hours(release, arc.hours)
                volumes[self._positions[arc.downstream_id]] += hm3
        return np.array([volumes[slot.entity, slot.distance - 1] for slot in slots], np.float64)

    def resolve(self, stage: int) -> TransitNumbers:
        """Return the releases and arrivals of a stage (from 0)."""
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
            distances = decided | {distance for arc in arcs for distance in self._past_distances(arc)}
            for distance in range(1, max(distances, default=0) + 1):
                if (distance in decided) == is_decided:
                    yield StateSlot(IN_TRANSIT, target, distance)

    def _distances_of(self, arc: TravelArc) -> set[int]:
        """Return the delays, in stages, after which water released in some stage arrives."""
        distances = set()
        for stage in range(len(self._axis.blocks)):
            arrives = np.flatnonzero(self._axis.shares(stage, arc.hours).any(axis=0)) - stage
            distances |= {int(distance) for distance in arrives if distance > 0}
        return distances

    def _past_distances(self, arc: TravelArc) -> set[int]:
        hits = [np.flatnonzero(self._axis.past_hours(release, arc.hours)) for release in self._past(arc)]
        return {int(stage) + 1 for stages in hits for stage in stages}

    def _past(self, arc: TravelArc) -> list[PastRelease]:
        return [row for row in self._case.initial_conditions.past_releases if row.hydro_id == arc.hydro_id]
