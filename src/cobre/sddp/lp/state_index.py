"""Positions of states beyond storages, among the inputs of a stage LP and in the state vector.

Inputs are the incoming decided states (storages first), the inflows, and the incoming states that are passed on. The
vector has the decided states, the lagged inflows lag by lag, and what is passed on.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cobre.core.arrays import Indices, Ints
from cobre.core.stage_data import StateLayout, StateSlot
from cobre.records import dataclass
from cobre.sddp.lp.lp_builder import ABSENT


@dataclass(frozen=True, slots=True)
class StateIndex:
    """Indices for `num_hydros` plants with `num_lags` lags each."""

    layout: StateLayout
    num_hydros: int
    num_lags: int

    @property
    def num_decided(self) -> int:
        """How many states have a column: storages, and what is decided ahead."""
        return self.num_hydros + len(self.layout.decided)

    @property
    def num_inputs(self) -> int:
        """How many inputs move right-hand sides of a stage's LP."""
        return self.num_decided + self.num_hydros + len(self.layout.passed)

    def input_of(self, slot: StateSlot) -> int:
        """The input of a slot; ABSENT where the state has no such slot."""
        if slot in self.layout.decided:
            return self.num_hydros + self.layout.decided.index(slot)
        if slot in self.layout.passed:
            return self.num_decided + self.num_hydros + self.layout.passed.index(slot)
        return ABSENT

    def previous_inputs(self, slots: Sequence[StateSlot]) -> Indices:
        """For each slot the input that held it when the stage began: the slot one stage farther."""
        return np.array([self.input_of(replace(slot, distance=slot.distance + 1)) for slot in slots], np.int64)

    def passed_from(self) -> Ints:
        """For each state passed on, the entry of the incoming vector that it takes over; ABSENT: none, and 0."""
        return np.array(
            [self._component(index) for index in self.previous_inputs(self.layout.passed).tolist()], np.int32
        )

    def component_of(self, slot: StateSlot) -> int:
        """The entry of the state vector for a slot; ABSENT where it has none."""
        return self._component(self.input_of(slot))

    def _component(self, index: int) -> int:
        """From an input to an entry of the vector, where lagged inflows stand instead of the inflows."""
        return index if index < self.num_decided else index + (self.num_lags - 1) * self.num_hydros
