"""The digest of a training run: equal digests mean equal bits."""

import hashlib
import struct
from collections.abc import Sequence

from cobre.sddp.cuts.pool import CutPool
from cobre.sddp.records.iteration_record import IterationRecord


def training_digest(history: Sequence[IterationRecord], pool: CutPool) -> str:
    """SHA-256 over both bounds of every iteration and over all cuts, stage by stage and slot by slot."""
    digest = hashlib.sha256()
    for record in history:
        digest.update(struct.pack("<idd", record.iteration, record.lower_bound, record.upper_bound))
    for stage in range(pool.num_stages):
        digest.update(pool.active[stage].tobytes())
        digest.update(pool.intercepts(stage).astype("<f8").tobytes())
        for block in pool.blocks(stage, pool.count):
            digest.update(block.coefficients.astype("<f8", copy=False).data)
    return digest.hexdigest()
