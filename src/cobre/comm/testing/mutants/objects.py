"""Mutants of the communicator's own manners: regions, checks, identity, life and callers."""

import operator
from typing import Any

import numpy as np

from cobre.comm.backends.base import Backend
from cobre.comm.shared_memory import SharedRegion
from cobre.comm.testing.delegate import DelegatingCommunicator, DelegatingRegion
from cobre.comm.types import Array, Dtype, ReduceOp


class OpenFenceRegion(DelegatingRegion):
    """A fence that does not wait."""

    def _fence(self) -> None:
        """Nothing."""


class OpenFence(DelegatingCommunicator):
    """Regions whose fence does not wait."""

    region_type = OpenFenceRegion


class WritableRegion(DelegatingRegion):
    """Hands out its memory for writing to whoever only wants to read."""

    def _view(self, *, writable: bool) -> Array:
        return super()._view(writable=True)


class WritableViews(DelegatingCommunicator):
    """Regions that anybody can write."""

    region_type = WritableRegion


class LeaderlessRegion(DelegatingRegion):
    """Lets every rank write everything."""

    def __init__(self, owner: DelegatingCommunicator, inner: SharedRegion) -> None:
        super().__init__(owner, inner)
        self._is_leader = True


class Leaderless(DelegatingCommunicator):
    """Regions without a leader."""

    region_type = LeaderlessRegion


class DirtyRegions(DelegatingCommunicator):
    """Regions that are not zero at first."""

    def _create_shared_region(self, count: int, dtype: Dtype) -> SharedRegion:
        region = super()._create_shared_region(count, dtype)
        if self.is_leader:
            region._view(writable=True).view(np.uint8)[-1:] = 1
        self._inner.barrier()
        return region


class AcceptsShortBuffers(DelegatingCommunicator):
    """Takes the shorter of two buffers instead of refusing them."""

    def allreduce(self, send: Any, recv: Any, op: ReduceOp = ReduceOp.SUM, *, label: str = "") -> None:
        """Cut both to the shorter."""
        try:
            count = min(send.size, recv.size)
            super().allreduce(send.reshape(-1)[:count], recv.reshape(-1)[:count], op, label=label)
        except AttributeError:
            super().allreduce(send, recv, op, label=label)


class AcceptsAnyRoot(DelegatingCommunicator):
    """Takes any integer as a root."""

    def broadcast(self, buffer: Any, root: int = 0, *, label: str = "") -> None:
        """Wrap around."""
        try:
            wrapped = operator.index(root) % self.size
        except TypeError:
            wrapped = root
        super().broadcast(buffer, wrapped, label=label)


class AcceptsStrides(DelegatingCommunicator):
    """Copies a strided send buffer silently."""

    def allgatherv(self, send: Any, recv: Any, counts: Any, displs: Any = None, *, label: str = "") -> None:
        """Make it contiguous."""
        contiguous = np.ascontiguousarray(send) if isinstance(send, np.ndarray) else send
        super().allgatherv(contiguous, recv, counts, displs, label=label)


class ChecksTooLate(DelegatingCommunicator):
    """Tells the others about a call before it looks at the arguments."""

    def broadcast(self, buffer: Any, root: int = 0, *, label: str = "") -> None:
        """Wait for the others first."""
        self.barrier()
        super().broadcast(buffer, root, label=label)


class LiesAboutRank(DelegatingCommunicator):
    """Claims to be its neighbour."""

    @property
    def rank(self) -> int:
        """Wrong."""
        return (super().rank + 1) % self.size


class LosesCount(DelegatingCommunicator):
    """Does not number its calls."""

    @property
    def sequence(self) -> int:
        """Stuck."""
        return 1


class NeverCloses(DelegatingCommunicator):
    """Works on after `close`."""

    def close(self) -> None:
        """Nothing."""


class Picklable(DelegatingCommunicator):
    """Lets itself be copied."""

    def __reduce__(self) -> Any:
        return (str, ("a communicator",))


class SilentAbort(DelegatingCommunicator):
    """Keeps the reason of an abort to itself."""

    def _abort(self, reason: str) -> None:
        self._inner.abort("sorry")


class SelfishClose(DelegatingCommunicator):
    """A node's communicator that takes the world with it when it closes."""

    def _split_local(self) -> Backend:
        inner = super()._split_local()
        inner._close = self._inner.close  # type: ignore[method-assign]
        return inner
