"""Mutants of everything but the messages: regions, checks, identity, life cycle and callers."""

import operator
from typing import Any

import numpy as np

from cobre.comm.backends.base import Backend
from cobre.comm.shared_memory import SharedRegion
from cobre.comm.testing.delegate import DelegatingCommunicator, DelegatingRegion
from cobre.comm.types import Array, Dtype, ReduceOp


class NonWaitingFenceRegion(DelegatingRegion):
    """A fence that does not wait."""

    def _fence(self) -> None:
        """Return without waiting for any rank."""


class NonWaitingFence(DelegatingCommunicator):
    """Regions whose fence does not wait."""

    region_type = NonWaitingFenceRegion


class WritableRegion(DelegatingRegion):
    """Returns writable memory as the read-only view."""

    def _view(self, *, writable: bool) -> Array:
        return super()._view(writable=True)


class WritableViews(DelegatingCommunicator):
    """Regions whose read-only views can be written."""

    region_type = WritableRegion


class EveryRankLeadsRegion(DelegatingRegion):
    """Treats every rank as the leader."""

    def __init__(self, owner: DelegatingCommunicator, inner: SharedRegion) -> None:
        super().__init__(owner, inner)
        self._is_leader = True


class EveryRankLeads(DelegatingCommunicator):
    """Regions that every rank may write as a whole."""

    region_type = EveryRankLeadsRegion


class DirtyRegions(DelegatingCommunicator):
    """Regions that are not initialised to zero."""

    def _create_shared_region(self, count: int, dtype: Dtype) -> SharedRegion:
        region = super()._create_shared_region(count, dtype)
        if self.is_leader:
            region._view(writable=True).view(np.uint8)[-1:] = 1
        self._inner.barrier()
        return region


class AcceptsShortBuffers(DelegatingCommunicator):
    """Truncates buffers of different lengths instead of rejecting them."""

    def allreduce(self, send: Any, recv: Any, op: ReduceOp = ReduceOp.SUM, *, label: str = "") -> None:
        """Truncate both buffers to the shorter one."""
        try:
            count = min(send.size, recv.size)
            super().allreduce(send.reshape(-1)[:count], recv.reshape(-1)[:count], op, label=label)
        except AttributeError:
            super().allreduce(send, recv, op, label=label)


class AcceptsAnyRoot(DelegatingCommunicator):
    """Accepts any integer as root."""

    def broadcast(self, buffer: Any, root: int = 0, *, label: str = "") -> None:
        """Take the root modulo the number of ranks."""
        try:
            wrapped = operator.index(root) % self.size
        except TypeError:
            wrapped = root
        super().broadcast(buffer, wrapped, label=label)


class AcceptsStrides(DelegatingCommunicator):
    """Copies a strided send buffer instead of rejecting it."""

    def allgatherv(self, send: Any, recv: Any, counts: Any, displs: Any = None, *, label: str = "") -> None:
        """Make the send buffer contiguous."""
        contiguous = np.ascontiguousarray(send) if isinstance(send, np.ndarray) else send
        super().allgatherv(contiguous, recv, counts, displs, label=label)


class ChecksTooLate(DelegatingCommunicator):
    """Communicates before it checks the arguments."""

    def broadcast(self, buffer: Any, root: int = 0, *, label: str = "") -> None:
        """Wait at a barrier before the arguments are checked."""
        self.barrier()
        super().broadcast(buffer, root, label=label)


class WrongRank(DelegatingCommunicator):
    """Reports the rank of its neighbour."""

    @property
    def rank(self) -> int:
        """The rank of the next process."""
        return (super().rank + 1) % self.size


class ConstantSequence(DelegatingCommunicator):
    """Does not number its calls."""

    @property
    def sequence(self) -> int:
        """Always 1."""
        return 1


class NeverCloses(DelegatingCommunicator):
    """Stays usable after `close`."""

    def close(self) -> None:
        """Do nothing."""


class Picklable(DelegatingCommunicator):
    """Can be pickled and copied."""

    def __reduce__(self) -> Any:
        return (str, ("a communicator",))


class AbortWithoutReason(DelegatingCommunicator):
    """Does not tell other ranks the reason of an abort."""

    def _abort(self, reason: str) -> None:
        self._inner.abort("")


class NodeClosesWorld(DelegatingCommunicator):
    """The communicator of a node closes that of the world too."""

    def _split_local(self) -> Backend:
        inner = super()._split_local()
        inner._close = self._inner.close  # type: ignore[method-assign]  # the mutation itself
        return inner
