"""mpi4py's buffer calls (upper case), as its manual recommends for arrays; any MPI."""

from functools import partial
from itertools import accumulate
from typing import Any

from mpi4py import MPI

from collectives.adapters.base import Adapter, Array, Call


class MpiAdapter(Adapter):
    """An MPI communicator, called without anything in between."""

    def __init__(self, comm: Any) -> None:
        super().__init__(comm.Get_rank(), comm.Get_size())
        self._comm = comm

    def synchronise(self) -> None:
        """MPI's own barrier."""
        self._comm.Barrier()

    def bind_barrier(self) -> Call:
        """`Barrier`."""
        barrier: Call = self._comm.Barrier
        return barrier

    def bind_allreduce(self, send: Array, recv: Array) -> Call:
        """`Allreduce`, whose order of additions is MPI's own choice."""
        return partial(self._comm.Allreduce, send, recv, MPI.SUM)

    def bind_allgatherv(self, send: Array, recv: Array, counts: tuple[int, ...]) -> Call:
        """`Allgatherv`."""
        displs = (0, *accumulate(counts[:-1]))
        return partial(self._comm.Allgatherv, send, [recv, counts, displs, MPI.DOUBLE])

    def bind_broadcast(self, buffer: Array) -> Call:
        """`Bcast`."""
        return partial(self._comm.Bcast, buffer, 0)
