"""The entries of the state in the order of cobre-python: storages, lagged inflows, water in transit, commitments.

Its commitments are stored in a ring buffer: that of a delivery stage is at the stage's number modulo the longest lead,
for all plants side by side. Ours are ordered by distance from the present stage.
"""

from typing import Any

from cobre.compat.policy_dictionaries import entity_manifest
from cobre.core.stage_data import COMMITMENT, IN_TRANSIT
from cobre.core.state_names import INFLOW_LAG, STORAGE, StateName
from cobre.io.policies.cobre_python_policy import NO_DATE, STATE_KINDS
from cobre.io.policies.policy_file import PolicyMetadata

NOTHING = -1
Entity = dict[str, Any]


def their_states(metadata: PolicyMetadata, stage: int) -> tuple[list[Entity], list[int]]:
    """The state entries of cobre-python after a stage, and the index of each in ours; NOTHING: its coefficient is 0."""
    ours = list(enumerate(entity_manifest(metadata, stage)))
    by_kind = {
        kind: [(entity, at) for at, entity in ours if entity["entity_type"] == number]
        for number, kind in enumerate(STATE_KINDS)
    }
    water = sorted(by_kind[IN_TRANSIT], key=lambda pair: (_sort_key(metadata, pair[0]), pair[0]["subindex"]))
    states = [*by_kind[STORAGE], *by_kind[INFLOW_LAG], *water, *_ring(by_kind[COMMITMENT], stage)]
    return [entity for entity, _ in states], [at for _, at in states]


def _sort_key(metadata: PolicyMetadata, entity: Entity) -> int:
    return metadata.state_names.index(str(StateName(STORAGE, entity["entity_id"])))


def _ring(commitments: list[tuple[Entity, int]], stage: int) -> list[tuple[Entity, int]]:
    known = {(entity["entity_id"], entity["subindex"]): (entity, at) for entity, at in commitments}
    plants = list(dict.fromkeys(plant for plant, _ in sorted(known)))
    size = max((distance for _, distance in known), default=0)
    empty = {"entity_type": STATE_KINDS.index(COMMITMENT), "was_active": True, "reference_date": NO_DATE}
    empty |= {"interval_start": NO_DATE, "interval_end": NO_DATE}
    ring: list[tuple[Entity, int]] = []
    for residue in range(size):
        distance = (residue - stage - 1) % size + 1
        for plant in plants:
            entity, at = known.get((plant, distance), (empty | {"entity_id": plant}, NOTHING))
            ring.append((empty | entity | {"subindex": residue}, at))
    return ring
