"""`allreduce` as the left fold in rank order: MPI moves the data, `cobre._native.fold` combines it.

MPI's own reductions may combine in any order, and do: the last digits depend on the number of ranks and on the library.
"""

from itertools import pairwise

import numpy as np

from cobre._native import fold
from cobre.comm.backends.mpi.datatypes import Datatypes
from cobre.comm.backends.mpi.library import Mpi, MpiComm
from cobre.comm.types import Array, ReduceOp

SMALL_BYTES = 1 << 16  # of all ranks together; below, one exchange is cheaper than two
CHUNK_BYTES = 1 << 22  # fits into the caches, and bounds the memory for a reduction of any size
MAX_CACHED_SHAPES = 256


class OrderedReduction:
    """Reductions over one communicator, with scratch memory that is reused."""

    def __init__(self, mpi: Mpi, comm: MpiComm, datatypes: Datatypes, max_message_bytes: int) -> None:
        self._mpi = mpi
        self._comm = comm
        self._datatypes = datatypes
        self._rank, self._size = comm.Get_rank(), comm.Get_size()
        self._byte = mpi.BYTE
        self._small_bytes = min(SMALL_BYTES, max_message_bytes) // self._size
        self._chunk_bytes = min(CHUNK_BYTES, max_message_bytes)
        self._scratch = np.empty(self._small_bytes * self._size, np.uint8)
        self._shapes: dict[tuple[str, int], tuple[tuple[object, ...], list[Array]]] = {}

    def reduce(self, send: Array, recv: Array, op: ReduceOp) -> None:
        """Fold all ranks' `send` in rank order into every rank's `recv`, which may be `send`. A collective."""
        nbytes = send.nbytes
        if nbytes > self._small_bytes:
            self._reduce_large(send.reshape(-1), recv.reshape(-1), op)
            return
        gathered, parts = self._shapes.get((send.dtype.char, nbytes)) or self._shape(send)
        self._comm.Allgather((send, nbytes, self._byte), gathered)
        fold(parts, recv, op)

    def _shape(self, send: Array) -> tuple[tuple[object, ...], list[Array]]:
        """The receive buffer for small operands of this dtype and size, and a view of each rank's operand in it."""
        if len(self._shapes) >= MAX_CACHED_SHAPES:
            self._shapes.clear()
        nbytes = send.nbytes
        parts = [self._scratch[rank * nbytes : (rank + 1) * nbytes].view(send.dtype) for rank in range(self._size)]
        shape = ((self._scratch[: nbytes * self._size], nbytes, self._byte), parts)
        self._shapes[send.dtype.char, nbytes] = shape
        return shape

    def _reduce_large(self, send: Array, recv: Array, op: ReduceOp) -> None:
        chunk = max(1, self._chunk_bytes // send.itemsize)
        room = -(-min(chunk, send.size) // self._size) * self._size  # every rank's slice, rounded up
        scratch = np.empty(room, send.dtype)
        for start in range(0, send.size, chunk):
            self._reduce_chunk(send[start : start + chunk], recv[start : start + chunk], scratch, op)

    def _reduce_chunk(self, send: Array, recv: Array, scratch: Array, op: ReduceOp) -> None:
        """Every rank folds one slice in rank order; then all ranks gather the slices."""
        # Alltoallv, fold, Allgatherv: the work is divided between ranks, yet each element is folded in rank order.
        # One rank that folds everything would take `size` times as long; MPI's own Allreduce has no fixed order.
        unit = self._datatypes[send.itemsize]
        bounds = [send.size * rank // self._size for rank in range(self._size + 1)]
        counts = [end - start for start, end in pairwise(bounds)]
        mine = counts[self._rank]
        starts = [mine * rank for rank in range(self._size)]
        self._comm.Alltoallv((send, (counts, bounds[:-1]), unit), (scratch, ([mine] * self._size, starts), unit))
        own = recv[bounds[self._rank] : bounds[self._rank + 1]]
        fold([scratch[start : start + mine] for start in starts], own, op)
        self._comm.Allgatherv(self._mpi.IN_PLACE, (recv, (counts, bounds[:-1]), unit))
