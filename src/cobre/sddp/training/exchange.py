"""Exchanges between ranks in an iteration; with a single rank nothing is copied."""

import numpy as np

from cobre.comm import Communicator
from cobre.core.arrays import Floats
from cobre.sddp.cuts.pool import CutPool
from cobre.sddp.ranks.work_split import WorkSplit
from cobre.sddp.training.team import Team
from cobre.solver.batches import Bases


def gather_rows(comm: Communicator, split: WorkSplit, own: Floats, label: str) -> Floats:
    """All ranks' rows of a table, in the order of the items that they belong to."""
    width = own.shape[1]
    table = np.empty((split.total, width))
    counts = [count * width for count in split.counts]
    comm.allgatherv(np.ascontiguousarray(own).reshape(-1), table.reshape(-1), counts, label=label)
    return table


def exchange_cuts(comm: Communicator, split: WorkSplit, pool: CutPool, stage: int, slots: range, own: Floats) -> None:
    """Put all ranks' cuts of a stage (rows of intercept and coefficients) into their slots, in the order of paths.

    Where all ranks see the pool's memory each writes its own cuts, and nothing else is copied. Elsewhere cuts are
    gathered first: a pool lies component by component, so they cannot be received in place.
    """
    own = pool.stored_columns(stage, own)
    if pool.is_shared_by_all_ranks:
        pool.write_at(stage, slots.start + split.block(comm.rank).start, own)
    else:
        table = gather_rows(comm, split, own, f"cuts of stage {stage}")
        if pool.is_leader:
            pool.write_at(stage, slots.start, table)
    pool.publish(stage, slots)


def share_bases(comm: Communicator, team: Team, own: list[Bases]) -> list[Bases]:
    """Send the bases of the first path, which rank 0 and its team have, to all ranks."""
    if len(team.members) == comm.size:
        return own
    status, cuts = (
        np.concatenate([b.status.reshape(-1) for b in own]),
        np.concatenate([b.cuts.reshape(-1) for b in own]),
    )
    comm.broadcast(status, 0, label="bases")
    comm.broadcast(cuts, 0, label="cuts of bases")
    shared, at, cut_at = [], 0, 0
    for basis in own:
        width, cut_width = basis.status.size, basis.cuts.size
        shared.append(
            Bases(
                status[at : at + width].reshape(basis.status.shape).copy(),
                cuts[cut_at : cut_at + cut_width].reshape(basis.cuts.shape).copy(),
            )
        )
        at, cut_at = at + width, cut_at + cut_width
    return shared
