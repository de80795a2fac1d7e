"""Names of the entries of a state vector, in policies, tables and messages.

storage:3         the volume of hydro 3 at the end of a stage, hm3
inflow_lag2:3     its inflow two stages before the next one, m3/s
commitment2:5     power of thermal plant 5 that is delivered two stages later, MW
in_transit2:3     water that arrives at hydro 3 two stages later, hm3
"""

import re
from collections.abc import Iterable, Sequence

from cobre.core.stage_data import COMMITMENT, IN_TRANSIT, StateLayout, StateSlot
from cobre.records import dataclass

STORAGE, INFLOW_LAG = "storage", "inflow_lag"
_PATTERN = re.compile(rf"(?:({STORAGE})|({INFLOW_LAG}|{COMMITMENT}|{IN_TRANSIT})(\d+)):(-?\d+)")


@dataclass(frozen=True, slots=True)
class StateName:
    """A parsed name. distance: stages, as in the number of `inflow_lag2:3`; 0 for storages.

    >>> StateName.parse("inflow_lag2:3")
    StateName(kind='inflow_lag', entity_id=3, distance=2)
    >>> str(StateName(STORAGE, 3))
    'storage:3'
    """

    kind: str
    entity_id: int
    distance: int = 0

    @classmethod
    def parse(cls, name: str) -> "StateName":
        """Parse a name, the inverse of `str`. Raises ValueError if the text is not the name of a state."""
        match = _PATTERN.fullmatch(name)
        if match is None:
            raise ValueError(f"{name!r} is not the name of a state, such as 'storage:3' or 'inflow_lag1:3'")
        storage, ahead, distance, entity_id = match.groups()
        return cls(storage or ahead, int(entity_id), int(distance or 0))

    def __str__(self) -> str:
        return f"{self.kind}{'' if self.kind == STORAGE else self.distance}:{self.entity_id}"


def kind_of(name: str) -> str:
    """Return `inflow_lag` of `inflow_lag2:3`; unlike `StateName.parse` take any text, as a policy file may hold."""
    return prefix_of(name).rstrip("0123456789")


def prefix_of(name: str) -> str:
    """Return kind and distance: `inflow_lag2` of `inflow_lag2:3`; takes any text."""
    return name.partition(":")[0]


def owner_of(name: str) -> str:
    """Return the id of the entity, as text: `3` of `inflow_lag2:3`; takes any text."""
    return name.partition(":")[2]


def entity_ids(names: Iterable[str], kind: str) -> tuple[int, ...]:
    """Return the entity ids of all states of a kind, in the order of the names: hydro ids for `STORAGE`."""
    parsed = map(StateName.parse, names)
    return tuple(name.entity_id for name in parsed if name.kind == kind)


@dataclass(frozen=True, slots=True)
class StateOwners:
    """Ids of the entities that states belong to, in canonical order."""

    hydros: Sequence[int]
    thermals: Sequence[int]

    def name_of(self, slot: StateSlot) -> str:
        """Return the name of a slot, such as `commitment2:5`."""
        ids = self.thermals if slot.kind == COMMITMENT else self.hydros
        return str(StateName(slot.kind, ids[slot.entity], slot.distance))


def state_names(owners: StateOwners, layout: StateLayout, order: int) -> tuple[str, ...]:
    """Return one name for each entry, in the order of the vector."""
    return (
        *(str(StateName(STORAGE, id_)) for id_ in owners.hydros),
        *(owners.name_of(slot) for slot in layout.decided),
        *(str(StateName(INFLOW_LAG, id_, lag)) for lag in range(1, order + 1) for id_ in owners.hydros),
        *(owners.name_of(slot) for slot in layout.passed),
    )
