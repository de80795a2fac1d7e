"""Communicators that delegate to another one, and the test double that fails at a chosen call."""

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from cobre.comm.backends.base import Backend
from cobre.comm.shared_memory import SharedRegion
from cobre.comm.types import Array, Dtype, ReduceOp


class DelegatingRegion(SharedRegion):
    """Region that delegates to another one; its calls are numbered by the delegating communicator."""

    def __init__(self, owner: "DelegatingCommunicator", inner: SharedRegion) -> None:
        super().__init__(owner, inner.count, inner.dtype, is_leader=owner.is_leader)
        self._owner = owner
        self.inner = inner

    def _view(self, *, writable: bool) -> Array:
        return self.inner._view(writable=writable)

    def _fence(self) -> None:
        self._owner._before_call()
        self.inner.fence()

    def _close(self) -> None:
        self.inner.close()


class DelegatingCommunicator(Backend):
    """Communicator that delegates every call; subclasses override what is to be different."""

    region_type: type[DelegatingRegion] = DelegatingRegion

    def __init__(self, inner: Backend) -> None:
        super().__init__(inner.rank, inner.size)
        self.inner = inner
        self.backend = inner.backend

    @property
    def is_leader(self) -> bool:
        """Whether the inner communicator's rank is the leader."""
        return self.inner.is_leader

    def _before_call(self) -> None:
        """Do nothing; called right before every numbered call is passed on, fences of regions included."""

    def _allgatherv(self, send: Array, recv: Array, counts: Sequence[int], displs: Sequence[int]) -> None:
        self._before_call()
        self.inner.allgatherv(send, recv, counts, displs)

    def _allreduce(self, send: Array, recv: Array, op: ReduceOp) -> None:
        self._before_call()
        self.inner.allreduce(send, recv, op)

    def _broadcast(self, buffer: Array, root: int) -> None:
        self._before_call()
        self.inner.broadcast(buffer, root)

    def _barrier(self) -> None:
        self._before_call()
        self.inner.barrier()

    def _create_shared_region(self, count: int, dtype: Dtype) -> SharedRegion:
        self._before_call()
        return self.region_type(self, self.inner.create_shared_region(count, dtype))

    def _split_local(self) -> Backend:
        self._before_call()
        # What our own backends split into can make regions too.
        return type(self)(cast("Backend", self.inner.split_local()))

    def _close(self) -> None:
        self.inner.close()

    def _abort(self, reason: str) -> None:
        self.inner.abort(reason)


# A communicator that fails at a chosen call, for tests of programs that use one.


class FaultyCommunicator(DelegatingCommunicator):
    """A fault-injecting test double around a real communicator: raises, exits or waits at chosen calls.

    faults: functions by sequence number of a call on this object (from 1), each called right before the call is
    passed on; each is called once. All numbered calls count: the collectives, `create_shared_region`, `split_local` and
    the fences of regions that were created by it.

        comm = FaultyCommunicator(create_communicator(), {3: lambda: os._exit(9)})    # dies before its third call

    What a fault raises is treated as a failure of the backend: the call raises, the communicator is broken, and the
    other ranks are informed (clauses 4 and 5). A fault that returns only delays the call. The communicator that
    `split_local` returns has no faults.
    """

    def __init__(self, inner: Backend, faults: Mapping[int, Callable[[], object]]) -> None:
        super().__init__(inner)
        self._faults = dict(faults)

    def _before_call(self) -> None:
        self._faults.pop(self.sequence, lambda: None)()

    def _split_local(self) -> Backend:
        self._before_call()
        return DelegatingCommunicator(cast("Backend", self.inner.split_local()))
