"""Payloads that exceed one MPI call, whose counts and displacements are 32-bit in most MPI libraries."""

from collections.abc import Sequence
from itertools import zip_longest

from cobre.comm.backends.mpi.library import Mpi, MpiComm
from cobre.comm.types import Array


def broadcast_in_chunks(mpi: Mpi, comm: MpiComm, data: Array, root: int, limit: int) -> None:
    """Broadcast bytes, at most `limit` per MPI call."""
    for chunk in _chunks(data, limit):
        comm.Bcast((chunk, chunk.size, mpi.BYTE), root)


def gather_in_chunks(mpi: Mpi, comm: MpiComm, data: Array, byte_ranges: Sequence[tuple[int, int]], limit: int) -> None:
    """Gather bytes in place: every rank's own part is in `data` already.

    byte_ranges: start and end of each part, by rank.

    A ring: in every step each rank sends to its right neighbour what it received from its left one in the step before.
    """
    rank, size = comm.Get_rank(), comm.Get_size()
    right, left = (rank + 1) % size, (rank - 1) % size
    blocks = [_chunks(data[start:end], limit) for start, end in byte_ranges]
    # Allgatherv cannot be used, because its displacements are 32-bit too. In the ring every message starts at zero.
    for step in range(size - 1):
        outgoing, incoming = blocks[(rank - step) % size], blocks[(rank - step - 1) % size]
        # Sendrecv, because blocking sends of all ranks to the right would deadlock. Blocks of different sizes have
        # different numbers of chunks: a neighbour without one is replaced by PROC_NULL.
        for sent, received in zip_longest(outgoing, incoming):
            comm.Sendrecv(
                _message(mpi, sent),
                mpi.PROC_NULL if sent is None else right,
                recvbuf=_message(mpi, received),
                source=mpi.PROC_NULL if received is None else left,
            )


def _chunks(data: Array, limit: int) -> list[Array]:
    return [data[start : start + limit] for start in range(0, data.size, limit)]


def _message(mpi: Mpi, chunk: Array | None) -> tuple[Array | None, int, object]:
    return (chunk, 0 if chunk is None else chunk.size, mpi.BYTE)
