"""cobre.comm through its public methods, every check on; any backend."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from cobre.comm import Backend, ReduceOp
from collectives.adapters.base import Adapter, Array, Call
from collectives.cases import Kind


class CobreAdapter(Adapter):
    """A communicator of ours."""

    kinds = frozenset(Kind)

    def __init__(self, comm: Backend) -> None:
        super().__init__(comm.rank, comm.size)
        self._comm = comm

    def synchronise(self) -> None:
        """Call our barrier."""
        self._comm.barrier()

    def bind_barrier(self) -> Call:
        """Bind `barrier`."""
        return self._comm.barrier

    def bind_allreduce(self, send: Array, recv: Array) -> Call:
        """Bind `allreduce`, which folds in rank order."""
        return partial(self._comm.allreduce, send, recv, ReduceOp.SUM)

    def bind_allgatherv(self, send: Array, recv: Array, counts: tuple[int, ...]) -> Call:
        """Bind `allgatherv` into private memory."""
        return partial(self._comm.allgatherv, send, recv, counts)

    def bind_broadcast(self, buffer: Array) -> Call:
        """Bind `broadcast`."""
        return partial(self._comm.broadcast, buffer, 0)

    @contextmanager
    def bind_allgatherv_into_region(self, send: Array, counts: tuple[int, ...]) -> Iterator[tuple[Call, Array]]:
        """Bind `allgatherv` into a shared region: every rank writes its part, and none copies the result."""
        with self._comm.create_shared_region(sum(counts), send.dtype) as region:
            yield partial(self._comm.allgatherv, send, region, counts), region.as_array()
