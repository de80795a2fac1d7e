"""Mutants: wrong communicators that the cases of the conformance kit must reject.

Each mutant names the cases that must detect it. The control is a communicator that only delegates, and must pass every
case.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cobre.comm.backends.base import Backend
from cobre.comm.shared_memory import SharedRegion
from cobre.comm.testing import inputs
from cobre.comm.testing.faulty import DelegatingCommunicator, DelegatingRegion
from cobre.comm.types import Array, Dtype, ReduceOp

CHUNK_BYTES = 64 * 1024


class ReversedGather(DelegatingCommunicator):
    """Places the data of the ranks in reverse order."""

    def _allgatherv(self, send: Array, recv: Array, counts: Sequence[int], displs: Sequence[int]) -> None:
        super()._allgatherv(send, recv, counts, displs)
        flat = recv.reshape(-1)
        blocks = [flat[start : start + count].copy() for start, count in zip(displs, counts, strict=True)]
        for start, block in zip(displs, reversed(blocks), strict=True):
            flat[start : start + block.size] = block


class GatherWithoutDispls(DelegatingCommunicator):
    """Packs the data, ignoring the displacements."""

    def _allgatherv(self, send: Array, recv: Array, counts: Sequence[int], displs: Sequence[int]) -> None:
        packed = np.empty(sum(counts), recv.dtype)
        self.inner.allgatherv(send.copy(), packed, counts)
        recv.reshape(-1)[: packed.size] = packed


class GatherIntoGaps(DelegatingCommunicator):
    """Overwrites the gaps between the parts with zeros."""

    def _allgatherv(self, send: Array, recv: Array, counts: Sequence[int], displs: Sequence[int]) -> None:
        mine = send.copy()
        recv.reshape(-1).view(np.uint8)[:] = 0
        super()._allgatherv(mine, recv, counts, displs)


class StaleGather(DelegatingCommunicator):
    """Delivers the data of the previous gather if that had the same shape."""

    _previous: Array | None = None

    def _allgatherv(self, send: Array, recv: Array, counts: Sequence[int], displs: Sequence[int]) -> None:
        super()._allgatherv(send, recv, counts, displs)
        received = recv.copy()
        old = self._previous
        if old is not None and old.dtype == recv.dtype and old.shape == recv.shape:
            recv[...] = old
        self._previous = received


class FieldwiseGather(DelegatingCommunicator):
    """Delivers structures field by field, and leaves old bytes in their padding."""

    def _allgatherv(self, send: Array, recv: Array, counts: Sequence[int], displs: Sequence[int]) -> None:
        received = inputs.copied(recv)
        self.inner.allgatherv(inputs.copied(send), received, counts, displs)
        recv[...] = received


class ShortGather(DelegatingCommunicator):
    """Does not deliver the last byte of a chunk."""

    def _allgatherv(self, send: Array, recv: Array, counts: Sequence[int], displs: Sequence[int]) -> None:
        data = recv.reshape(-1).view(np.uint8)
        kept = data[CHUNK_BYTES - 1 : CHUNK_BYTES].copy()
        super()._allgatherv(send, recv, counts, displs)
        data[CHUNK_BYTES - 1 : CHUNK_BYTES] = kept


class TreeSum(DelegatingCommunicator):
    """Reduces as a binary tree instead of a left fold."""

    def _allreduce(self, send: Array, recv: Array, op: ReduceOp) -> None:
        values = list(_contributions(self, send))
        while len(values) > 1:
            values = [_combine(op, *values[at : at + 2]) for at in range(0, len(values), 2)]
        recv.reshape(-1)[:] = values[0]


class ReversedSum(DelegatingCommunicator):
    """Reduces from the last rank to the first."""

    def _allreduce(self, send: Array, recv: Array, op: ReduceOp) -> None:
        first, *others = reversed(_contributions(self, send))
        for data in others:
            first = _combine(op, first, data)
        recv.reshape(-1)[:] = first


class NarrowSum(DelegatingCommunicator):
    """Reduces double precision in single precision."""

    def _allreduce(self, send: Array, recv: Array, op: ReduceOp) -> None:
        if send.dtype != np.float64 or op is not ReduceOp.SUM:
            super()._allreduce(send, recv, op)
            return
        with np.errstate(all="ignore"):
            narrow = send.astype(np.float32)
        result = np.empty_like(narrow)
        self.inner.allreduce(narrow, result, op)
        recv[...] = result


class MinForMax(DelegatingCommunicator):
    """Computes the minimum instead of the maximum."""

    def _allreduce(self, send: Array, recv: Array, op: ReduceOp) -> None:
        super()._allreduce(send, recv, ReduceOp.MIN if op is ReduceOp.MAX else op)


class NanDroppingMin(DelegatingCommunicator):
    """Ignores NaNs in a minimum."""

    def _allreduce(self, send: Array, recv: Array, op: ReduceOp) -> None:
        if op is ReduceOp.MIN:
            recv.reshape(-1)[:] = np.fmin.reduce(_contributions(self, send))
        else:
            super()._allreduce(send, recv, op)


class UnsignedZeros(DelegatingCommunicator):
    """Treats 0.0 and -0.0 as equal, as NumPy does: the result depends on the order of ranks."""

    def _allreduce(self, send: Array, recv: Array, op: ReduceOp) -> None:
        super()._allreduce(send, recv, op)
        if op is ReduceOp.MAX and send.dtype.kind == "f":
            recv[recv == 0] = -0.0


class NonCanonicalNan(DelegatingCommunicator):
    """Passes a NaN on with its sign and payload instead of the canonical one."""

    def _allreduce(self, send: Array, recv: Array, op: ReduceOp) -> None:
        mine = send.copy()
        super()._allreduce(send, recv, op)
        if send.dtype.kind == "f":
            recv[np.isnan(mine)] = mine[np.isnan(mine)]


class SaturatingSum(DelegatingCommunicator):
    """Saturates integers instead of wrapping them around."""

    def _allreduce(self, send: Array, recv: Array, op: ReduceOp) -> None:
        super()._allreduce(send, recv, op)
        if send.dtype == np.int8 and op is ReduceOp.SUM:
            exact = np.sum([data.astype(np.int64) for data in _contributions(self, send)], axis=0)
            recv.reshape(-1)[:] = np.clip(exact, -128, 127)


class WrongRoot(DelegatingCommunicator):
    """Always broadcasts from rank 0, ignoring the root."""

    def _broadcast(self, buffer: Array, root: int) -> None:
        super()._broadcast(buffer, 0)


class TruncatedBroadcast(DelegatingCommunicator):
    """Does not deliver data beyond the first chunk."""

    def _broadcast(self, buffer: Array, root: int) -> None:
        data = buffer.reshape(-1).view(np.uint8)
        super()._broadcast(data[: CHUNK_BYTES + 1], root)


class NonWaitingBarrier(DelegatingCommunicator):
    """A barrier that does not wait."""

    def _barrier(self) -> None:
        """Return without waiting for any rank."""


def _contributions(comm: DelegatingCommunicator, send: Array) -> list[Array]:
    everything = np.empty(send.size * comm.size, send.dtype)
    comm.inner.allgatherv(send.reshape(-1), everything, [send.size] * comm.size)
    return list(everything.reshape(comm.size, send.size))


def _combine(op: ReduceOp, *values: Array) -> Array:
    operations: dict[ReduceOp, Callable[..., Array]] = {
        ReduceOp.SUM: np.add,
        ReduceOp.MIN: np.minimum,
        ReduceOp.MAX: np.maximum,
    }
    with np.errstate(all="ignore"):
        return operations[op](*values) if len(values) > 1 else values[0]


# Mutants of everything but the messages: regions, checks, identity, life cycle and callers.


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
        self.inner.barrier()
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
        self.inner.abort("")


class NodeClosesWorld(DelegatingCommunicator):
    """The communicator of a node closes that of the world too."""

    def _split_local(self) -> Backend:
        inner = super()._split_local()
        inner._close = self.inner.close  # type: ignore[method-assign]  # the mutation itself
        return inner


# The list of mutants, and the cases that must detect each of them.


@dataclass(frozen=True, slots=True)
class Mutant:
    """A wrong communicator, and the ids of the cases that must detect it."""

    kind: type[DelegatingCommunicator]
    killed_by: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of its class."""
        return self.kind.__name__

    @property
    def wrapper(self) -> str:
        """The class, as ranks import it."""
        return f"{self.kind.__module__}:{self.name}"

    @property
    def what(self) -> str:
        """Return its defect: the docstring of its class."""
        return (self.kind.__doc__ or "").partition("\n")[0]


CONTROL = Mutant(DelegatingCommunicator, ())

_ALL = (
    Mutant(ReversedGather, ("gather/layouts", "sequences/back_to_back", "programs/random")),
    Mutant(GatherWithoutDispls, ("gather/layouts", "regions/gather_into")),
    Mutant(GatherIntoGaps, ("gather/layouts",)),
    Mutant(StaleGather, ("sequences/back_to_back",)),
    Mutant(FieldwiseGather, ("gather/layouts",)),
    Mutant(ShortGather, ("gather/limits", "gather/large")),
    Mutant(TreeSum, ("reduce/values", "reduce/limits", "programs/random")),
    Mutant(ReversedSum, ("reduce/values", "reduce/limits")),
    Mutant(NarrowSum, ("reduce/values",)),
    Mutant(MinForMax, ("reduce/values",)),
    Mutant(NanDroppingMin, ("reduce/special",)),
    Mutant(UnsignedZeros, ("reduce/special",)),
    Mutant(NonCanonicalNan, ("reduce/special",)),
    Mutant(SaturatingSum, ("reduce/values",)),
    Mutant(WrongRoot, ("broadcast/values", "sequences/back_to_back")),
    Mutant(TruncatedBroadcast, ("broadcast/limits", "broadcast/large")),
    Mutant(NonWaitingBarrier, ("barrier/no_rank_leaves_early",)),
    Mutant(NonWaitingFence, ("regions/fence_waits",)),
    Mutant(WritableViews, ("regions/read_only",)),
    Mutant(EveryRankLeads, ("regions/leader_only",)),
    Mutant(DirtyRegions, ("regions/zero_at_first",)),
    Mutant(AcceptsShortBuffers, ("refusals/arguments",)),
    Mutant(AcceptsAnyRoot, ("refusals/arguments",)),
    Mutant(AcceptsStrides, ("refusals/arguments",)),
    Mutant(ChecksTooLate, ("refusals/arguments", "sequences/numbers")),
    Mutant(WrongRank, ("lifecycle/identity",)),
    Mutant(ConstantSequence, ("sequences/numbers",)),
    Mutant(NeverCloses, ("lifecycle/use_after_close",)),
    Mutant(Picklable, ("callers/not_picklable",)),
    Mutant(AbortWithoutReason, ("failures/abort",)),
    Mutant(NodeClosesWorld, ("lifecycle/use_after_close",)),
)

MUTANTS: Mapping[str, Mutant] = {mutant.name: mutant for mutant in _ALL}
