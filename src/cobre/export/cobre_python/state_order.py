"""The entries of the state in the order of cobre-python: storages, lagged inflows, water under way, commitments.

Its commitments are a ring: the one of a delivery stage stands at the stage's number modulo the longest lead, all plants
side by side. Ours go by distance from the present stage.
"""

from typing import Any

from cobre.io.policy_file import PolicyMetadata
from cobre.study.plain_policy import ANTICIPATED, IN_TRANSIT, INFLOW_LAG, NO_DATE, STORAGE, entity_manifest

NOTHING = -1
Entity = dict[str, Any]


def their_states(metadata: PolicyMetadata, stage: int) -> tuple[list[Entity], list[int]]:
    """Their entries after a stage (by position), and where each stands in ours; NOTHING: its coefficient is 0."""
    ours = list(enumerate(entity_manifest(metadata, stage)))
    plain = [(entity, at) for kind in (STORAGE, INFLOW_LAG) for at, entity in ours if entity["entity_type"] == kind]
    water = sorted(
        ((entity, at) for at, entity in ours if entity["entity_type"] == IN_TRANSIT),
        key=lambda pair: (_place(metadata, pair[0]), pair[0]["subindex"]),
    )
    ring = _ring([(entity, at) for at, entity in ours if entity["entity_type"] == ANTICIPATED], stage)
    states = [*plain, *water, *ring]
    return [entity for entity, _ in states], [at for _, at in states]


def _place(metadata: PolicyMetadata, entity: Entity) -> int:
    return metadata.state_names.index(f"storage:{entity['entity_id']}")


def _ring(commitments: list[tuple[Entity, int]], stage: int) -> list[tuple[Entity, int]]:
    known = {(entity["entity_id"], entity["subindex"]): (entity, at) for entity, at in commitments}
    plants = list(dict.fromkeys(plant for plant, _ in sorted(known)))
    size = max((distance for _, distance in known), default=0)
    ring = []
    for residue in range(size):
        distance = (residue - stage - 1) % size + 1
        for plant in plants:
            entity, at = known.get((plant, distance), ({"entity_type": ANTICIPATED, "entity_id": plant}, NOTHING))
            empty = {"was_active": True, "reference_date": NO_DATE, "interval_start": NO_DATE, "interval_end": NO_DATE}
            ring.append((empty | entity | {"subindex": residue}, at))
    return ring
