"""What the entries of a state vector are called, in policies, tables and messages.

storage:3         the volume of hydro 3 at the end of a stage, hm3
inflow_lag2:3     its inflow two stages before the next one, m3/s
commitment2:5     power of thermal plant 5 that is delivered two stages later, MW
in_transit2:3     water that arrives at hydro 3 two stages later, hm3
"""

from collections.abc import Sequence
from dataclasses import dataclass

from cobre.core.stage_data import COMMITMENT, StateLayout, StateSlot

STORAGE, LAG = "storage", "inflow_lag"


@dataclass(frozen=True, slots=True)
class StateOwners:
    """Ids in canonical order."""

    hydros: Sequence[int]
    thermals: Sequence[int]

    def name_of(self, slot: StateSlot) -> str:
        """Such as `commitment2:5`."""
        ids = self.thermals if slot.kind == COMMITMENT else self.hydros
        return f"{slot.kind}{slot.distance}:{ids[slot.entity]}"


def state_names(owners: StateOwners, layout: StateLayout, order: int) -> tuple[str, ...]:
    """One name for each entry, in the order of the vector."""
    return (
        *(f"{STORAGE}:{id_}" for id_ in owners.hydros),
        *(owners.name_of(slot) for slot in layout.decided),
        *(f"{LAG}{lag}:{id_}" for lag in range(1, order + 1) for id_ in owners.hydros),
        *(owners.name_of(slot) for slot in layout.passed),
    )
