"""Commitments of anticipated thermal plants: where they stand in the state, and what each stage decides."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from cobre.core.anticipation import BEFORE_STUDY, Anticipation, Deliveries, PostStudyBound, anticipations
from cobre.core.arrays import Floats
from cobre.core.case import Case
from cobre.core.stage_data import COMMITMENT, CommitmentNumbers, StateSlot, ThermalNumbers
from cobre.core.units import HOURS_PER_DAY
from cobre.sddp.resolved.declared import positions_by_id
from cobre.sddp.resolved.discounting import DAYS_PER_YEAR, discount_factor


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
        self.decided = tuple(slot for _, slot in self._slots(is_decided=True))
        self.passed = tuple(slot for _, slot in self._slots(is_decided=False))

    def initial(self, slots: Sequence[StateSlot]) -> Floats:
        """What was ordered before the study, MW."""
        by_position = {self._positions[plant.thermal.id]: plant for plant in self._plants}
        return np.array([self._committed(by_position[slot.entity], slot.distance - 1) for slot in slots], np.float64)

    def of(self, stage: int) -> CommitmentNumbers:
        """What a stage (from 0) delivers and decides."""
        count = len(self.decided)
        is_committed = np.zeros(len(self._positions), bool)
        for plant in self._plants:
            is_committed[self._positions[plant.thermal.id]] = plant.deciders[stage] < stage
        is_decided, is_carried = np.zeros(count, bool), np.zeros(count, bool)
        least, most, cost = np.zeros(count), np.zeros(count), np.zeros(count)
        is_after, days = np.zeros(count, bool), np.full(count, "NaT", "datetime64[D]")
        for number, (plant, slot) in enumerate(self._slots(is_decided=True)):
            delivery = stage + slot.distance
            is_decided[number] = delivery in plant.decided_in(stage)
            is_carried[number] = plant.is_known_after(stage, delivery) and not is_decided[number]
            if is_decided[number]:
                least[number], most[number], price = self._at_delivery(plant, delivery)
                cost[number] = price * self._discount(stage, delivery)
                is_after[number] = delivery >= self._deliveries.num_stages
                days[number] = self._deliveries.starts[delivery]
        return CommitmentNumbers(is_committed, is_decided, is_carried, least, most, cost, is_after, days)

    def _slots(self, *, is_decided: bool) -> Iterator[tuple[Anticipation, StateSlot]]:
        for plant in self._plants:
            chosen = plant.decided_distances
            for distance in range(1, plant.distances + 1):
                if (distance in chosen) == is_decided:
                    yield plant, StateSlot(COMMITMENT, self._positions[plant.thermal.id], distance)

    def _committed(self, plant: Anticipation, delivery: int) -> float:
        if not plant.is_known_after(BEFORE_STUDY, delivery):
            return 0.0
        windows = [row for row in self._case.initial_conditions.past_commitments if row.thermal_id == plant.thermal.id]
        return self._deliveries.committed_mw(delivery, windows)

    def _at_delivery(self, plant: Anticipation, delivery: int) -> tuple[float, float, float]:
        """Least and most MW, and $ of one MW over all hours."""
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
    """Discount factors of the transitions after each stage, of the study and after it."""
    rate = 1.0 + case.horizon.policy_graph.annual_discount_rate
    days = [stage.duration_hours / HOURS_PER_DAY for stage in case.post_study.stages]
    inside = [discount_factor(case.horizon, stage) for stage in case.horizon.stages]
    return inside + [float(rate ** -(part / DAYS_PER_YEAR)) for part in days]
