"""mpi4py's buffer calls (upper case), as its manual recommends for arrays; any MPI."""

from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from mpi4py import MPI

from collectives.adapters.base import Adapter, Array, Call
from collectives.cases import Kind

SMALL_BYTES = 1 << 15


class MpiAdapter(Adapter):
    """An MPI communicator, called without anything in between."""

    def __init__(self, comm: Any) -> None:
        super().__init__(comm.Get_rank(), comm.Get_size())
        self._comm = comm

    def synchronise(self) -> None:
        """Call MPI's barrier."""
        self._comm.Barrier()

    def bind_barrier(self) -> Call:
        """Bind `Barrier`."""
        barrier: Call = self._comm.Barrier
        return barrier

    def bind_allreduce(self, send: Array, recv: Array) -> Call:
        """Bind `Allreduce`, whose order of additions is unspecified."""
        return partial(self._comm.Allreduce, send, recv, MPI.SUM)

    def bind_allgatherv(self, send: Array, recv: Array, counts: tuple[int, ...]) -> Call:
        """Bind `Allgatherv`."""
        displs = (0, *accumulate(counts[:-1]))
        return partial(self._comm.Allgatherv, send, [recv, counts, displs, MPI.DOUBLE])

    def bind_broadcast(self, buffer: Array) -> Call:
        """Bind `Bcast`."""
        return partial(self._comm.Bcast, buffer, 0)


class MpiFoldAdapter(MpiAdapter):
    """Sums in rank order, as a program would write them by hand: MPI moves the data, NumPy adds it.

    Memory is allocated once, arguments are bound once, nothing is checked.
    """

    kinds = frozenset((Kind.BARRIER, Kind.ALLREDUCE))

    def bind_barrier(self) -> Call:
        """Bind a Python function that calls `Barrier`."""

        def barrier() -> None:
            self._comm.Barrier()

        return barrier

    def bind_allreduce(self, send: Array, recv: Array) -> Call:
        """Bind a hand-written fold: small arrays are gathered and added by all ranks, large ones slice by slice."""
        return self._small(send, recv) if send.nbytes <= SMALL_BYTES else self._large(send, recv)

    def _small(self, send: Array, recv: Array) -> Call:
        table = np.empty((self.size, send.size))
        first, *others = table

        def fold() -> None:
            self._comm.Allgather(send, table)
            np.copyto(recv, first)
            for row in others:
                np.add(recv, row, recv)

        return fold

    def _large(self, send: Array, recv: Array) -> Call:
        bounds = [send.size * rank // self.size for rank in range(self.size + 1)]
        counts = [end - start for start, end in pairwise(bounds)]
        mine = counts[self.rank]
        table = np.empty((self.size, mine))
        first, *others = table
        own = recv[bounds[self.rank] : bounds[self.rank + 1]]
        outgoing = [send, (counts, bounds[:-1]), MPI.DOUBLE]
        incoming = [table, ([mine] * self.size, [mine * rank for rank in range(self.size)]), MPI.DOUBLE]
        gathered = [recv, (counts, bounds[:-1]), MPI.DOUBLE]

        def fold() -> None:
            self._comm.Alltoallv(outgoing, incoming)
            np.add(first, others[0], own)
            for row in others[1:]:
                np.add(own, row, own)
            self._comm.Allgatherv(MPI.IN_PLACE, gathered)

        return fold
