"""What the entries of a state vector are called, in policies, tables and messages.

storage:3         the volume of hydro 3 at the end of a stage, hm3
inflow_lag2:3     its inflow two stages before the next one, m3/s
commitment2:5     power of thermal plant 5 that is delivered two stages later, MW
"""

from collections.abc import Sequence
from dataclasses import dataclass

from cobre.core.stage_data import StateLayout, StateSlot

STORAGE, LAG, COMMITMENT = "storage", "inflow_lag", "commitment"


@dataclass(frozen=True, slots=True)
class StateOwners:
    """Ids in canonical order."""

    hydros: Sequence[int]
    thermals: Sequence[int]


def state_names(owners: StateOwners, layout: StateLayout, order: int) -> tuple[str, ...]:
    """One name for each entry, in the order of the vector."""
    return (
        *(f"{STORAGE}:{id_}" for id_ in owners.hydros),
        *_ahead(COMMITMENT, owners.thermals, layout.commitments),
        *(f"{LAG}{lag}:{id_}" for lag in range(1, order + 1) for id_ in owners.hydros),
        *_ahead(COMMITMENT, owners.thermals, layout.passed_commitments),
    )


def _ahead(word: str, ids: Sequence[int], slots: Sequence[StateSlot]) -> tuple[str, ...]:
    return tuple(f"{word}{slot.distance}:{ids[slot.entity]}" for slot in slots)
