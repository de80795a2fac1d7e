"""Mutants of gather, reduction, broadcast and barrier."""

from collections.abc import Callable, Sequence

import numpy as np

from cobre.comm.testing import inputs
from cobre.comm.testing.delegate import DelegatingCommunicator
from cobre.comm.types import Array, ReduceOp

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
    """Packs the data, whatever the displacements say."""

    def _allgatherv(self, send: Array, recv: Array, counts: Sequence[int], displs: Sequence[int]) -> None:
        packed = np.empty(sum(counts), recv.dtype)
        self._inner.allgatherv(send.copy(), packed, counts)
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
        self._inner.allgatherv(inputs.copied(send), received, counts, displs)
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
        self._inner.allreduce(narrow, result, op)
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
    """Always broadcasts from rank 0, whatever the root."""

    def _broadcast(self, buffer: Array, root: int) -> None:
        super()._broadcast(buffer, 0)


class TruncatedBroadcast(DelegatingCommunicator):
    """Does not deliver what lies beyond the first chunk."""

    def _broadcast(self, buffer: Array, root: int) -> None:
        data = buffer.reshape(-1).view(np.uint8)
        super()._broadcast(data[: CHUNK_BYTES + 1], root)


class NonWaitingBarrier(DelegatingCommunicator):
    """A barrier that does not wait."""

    def _barrier(self) -> None:
        """Return without waiting for any rank."""


def _contributions(comm: DelegatingCommunicator, send: Array) -> list[Array]:
    everything = np.empty(send.size * comm.size, send.dtype)
    comm._inner.allgatherv(send.reshape(-1), everything, [send.size] * comm.size)
    return list(everything.reshape(comm.size, send.size))


def _combine(op: ReduceOp, *values: Array) -> Array:
    operations: dict[ReduceOp, Callable[..., Array]] = {
        ReduceOp.SUM: np.add,
        ReduceOp.MIN: np.minimum,
        ReduceOp.MAX: np.maximum,
    }
    with np.errstate(all="ignore"):
        return operations[op](*values) if len(values) > 1 else values[0]
