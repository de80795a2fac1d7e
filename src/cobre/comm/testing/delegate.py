"""Communicators that delegate to another one: the base of mutants, and a fault-injecting test double."""

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from cobre.comm.backends.base import Backend
from cobre.comm.shared_memory import SharedRegion
from cobre.comm.types import Array, Dtype, ReduceOp


class DelegatingRegion(SharedRegion):
    """Delegates everything to another region; its calls are numbered by the delegating communicator."""

    def __init__(self, owner: Backend, inner: SharedRegion) -> None:
        super().__init__(owner, inner.count, inner.dtype, is_leader=owner.is_leader)
        self._inner = inner

    def _view(self, *, writable: bool) -> Array:
        return self._inner._view(writable=writable)

    def _fence(self) -> None:
        self._inner.fence()

    def _close(self) -> None:
        self._inner.close()


class DelegatingCommunicator(Backend):
    """Delegates every call; subclasses override what is to be different."""

    region_type: type[DelegatingRegion] = DelegatingRegion

    def __init__(self, inner: Backend) -> None:
        super().__init__(inner.rank, inner.size)
        self._inner = inner
        self.backend = inner.backend

    @property
    def is_leader(self) -> bool:
        """Whether the inner communicator's rank is the leader."""
        return self._inner.is_leader

    def _allgatherv(self, send: Array, recv: Array, counts: Sequence[int], displs: Sequence[int]) -> None:
        self._inner.allgatherv(send, recv, counts, displs)

    def _allreduce(self, send: Array, recv: Array, op: ReduceOp) -> None:
        self._inner.allreduce(send, recv, op)

    def _broadcast(self, buffer: Array, root: int) -> None:
        self._inner.broadcast(buffer, root)

    def _barrier(self) -> None:
        self._inner.barrier()

    def _create_shared_region(self, count: int, dtype: Dtype) -> SharedRegion:
        return self.region_type(self, self._inner.create_shared_region(count, dtype))

    def _split_local(self) -> Backend:
        # What our own backends split into can make regions too.
        return type(self)(cast("Backend", self._inner.split_local()))

    def _close(self) -> None:
        self._inner.close()

    def _abort(self, reason: str) -> None:
        self._inner.abort(reason)


class FaultyCommunicator(DelegatingCommunicator):
    """A fault-injecting test double: raises, exits or waits at chosen calls, to test programs that must survive it.

    faults: by sequence number (from 1), what to do right before that call; each happens once.

        comm = FaultyCommunicator(create_communicator(), {3: lambda: os._exit(9)})    # dies before its third call

    What a fault raises is treated as a failure of the backend: the call raises, the communicator is broken, and the
    other ranks are informed (clauses 4 and 5). Faults are not injected into `create_shared_region`, `fence` and
    `split_local`, although they are numbered.
    """

    def __init__(self, inner: Backend, faults: Mapping[int, Callable[[], object]]) -> None:
        super().__init__(inner)
        self._faults = dict(faults)

    def _allgatherv(self, send: Array, recv: Array, counts: Sequence[int], displs: Sequence[int]) -> None:
        self._inject_fault()
        super()._allgatherv(send, recv, counts, displs)

    def _allreduce(self, send: Array, recv: Array, op: ReduceOp) -> None:
        self._inject_fault()
        super()._allreduce(send, recv, op)

    def _broadcast(self, buffer: Array, root: int) -> None:
        self._inject_fault()
        super()._broadcast(buffer, root)

    def _barrier(self) -> None:
        self._inject_fault()
        super()._barrier()

    def _split_local(self) -> Backend:
        return DelegatingCommunicator(cast("Backend", self._inner.split_local()))

    def _inject_fault(self) -> None:
        self._faults.pop(self.sequence, lambda: None)()
