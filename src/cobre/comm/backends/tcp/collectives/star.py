"""The collectives without shared memory: a star, in which all calls and payloads go through the coordinator."""

from collections.abc import Sequence

from cobre._native import CallGuard
from cobre.comm.backends.local import LocalCommunicator
from cobre.comm.backends.tcp.collectives.node_group import NO_RING
from cobre.comm.backends.tcp.transport.base import NOTHING, SMALL_BYTES, DeferredCopy, Transport
from cobre.comm.backends.tcp.transport.ring import Ring
from cobre.comm.backends.tcp.wire.protocol import NO_DTYPE, call_header, describe_dtype, hash_counts
from cobre.comm.endpoint import Endpoint
from cobre.comm.errors import AllocationFailedError
from cobre.comm.shared_memory import HeapRegion
from cobre.comm.types import Array, Dtype, Operation, ReduceOp
from cobre.comm.validation import as_bytes, packed_displacements

# Plain ints: looking up an enum member costs as much as packing a header.
_ALLGATHERV, _ALLREDUCE = int(Operation.ALLGATHERV), int(Operation.ALLREDUCE)
_BROADCAST, _BARRIER = int(Operation.BROADCAST), int(Operation.BARRIER)


class StarCollectives:
    """One rank's side of the collectives if no ranks share memory.

    ring: the way of gathers and broadcasts of `ring_from` bytes or more; None: through the coordinator, as all others.
    """

    def __init__(
        self,
        transport: Transport,
        guard: CallGuard,
        rank: int,
        size: int,
        ring: Ring | None = None,
        ring_from: int = NO_RING,
    ) -> None:
        self._transport = transport
        self._guard = guard
        self._rank = rank
        self._size = size
        self._no_sizes = (0,) * size
        self._ring = ring
        self._ring_from = NO_RING if ring is None else ring_from

    def allgatherv(self, send: Array, recv: Array, counts: Sequence[int], displs: Sequence[int] | None) -> None:
        """Gather every rank's data on every rank."""
        elements = tuple(counts)
        total, itemsize = sum(elements), recv.itemsize
        # By the total, which is the same on all ranks: all of them must choose the same protocol.
        in_ring = total * itemsize >= self._ring_from
        is_small = total * itemsize <= SMALL_BYTES and not in_ring
        sequence = self._begin_call(_ALLGATHERV)
        header = call_header(
            sequence,
            _ALLGATHERV,
            inline_bytes=elements[self._rank] * itemsize if is_small else 0,
            count=elements[self._rank],
            total=total,
            counts_hash=hash_counts(elements),
            dtype=describe_dtype(recv.dtype),
        )
        own, starts = as_bytes(send), packed_displacements(elements) if displs is None else displs
        targets = part_views(recv, elements, starts)
        if is_small:
            parts = self._transport.gather(sequence, header, own, [len(target) for target in targets])
            for target, part in zip(targets, parts, strict=True):
                target[:] = part
        else:
            # Copying a part onto itself would be harmless, but not free if it is large.
            in_place = _is_in_place(send, recv, starts[self._rank])
            copy = DeferredCopy() if in_place else DeferredCopy(own, targets[self._rank])
            if in_ring and self._ring is not None:
                self._agree_on(sequence, header)
                self._ring.gather(sequence, (own,), lambda ranks: [targets[rank] for rank in ranks], copy)
            else:
                self._transport.gather_stream(sequence, header, (own,), targets, copy)
        self._transport.end(sequence)

    def allreduce(self, send: Array, recv: Array, op: ReduceOp) -> None:
        """Reduce by the left fold in rank order."""
        is_small = send.nbytes <= SMALL_BYTES
        sequence = self._begin_call(_ALLREDUCE)
        header = call_header(
            sequence,
            _ALLREDUCE,
            inline_bytes=send.nbytes if is_small else 0,
            count=send.size,
            total=send.size,
            dtype=describe_dtype(send.dtype),
            reduction=op,
        )
        if is_small:
            self._transport.reduce(sequence, header, send, recv, op)
        else:
            self._transport.reduce_stream(sequence, header, send, recv, op)
        self._transport.end(sequence)

    def broadcast(self, buffer: Array, root: int) -> None:
        """Copy the root's data to every rank."""
        in_ring = buffer.nbytes >= self._ring_from
        is_small = buffer.nbytes <= SMALL_BYTES and not in_ring
        sequence = self._begin_call(_BROADCAST)
        header = call_header(
            sequence,
            _BROADCAST,
            inline_bytes=buffer.nbytes if is_small and self._rank == root else 0,  # only the root's call has data
            count=buffer.size,
            total=buffer.size,
            dtype=describe_dtype(buffer.dtype),
            root=root,
        )
        if in_ring and self._ring is not None:
            self._agree_on(sequence, header)
            self._ring.broadcast(sequence, as_bytes(buffer), root)
        else:
            broadcast = self._transport.broadcast if is_small else self._transport.broadcast_stream
            broadcast(sequence, header, as_bytes(buffer), root)
        self._transport.end(sequence)

    def barrier(self) -> None:
        """Wait for all ranks."""
        sequence = self._begin_call(_BARRIER)
        self._agree_on(sequence, call_header(sequence, _BARRIER))
        self._transport.end(sequence)

    def create_region(self, owner: Endpoint, count: int, dtype: Dtype) -> HeapRegion:
        """Allocate, then exchange who could: the outcome must be the same on all ranks."""
        region, failure = None, None
        # Allocated before the exchange: a rank that raised first would leave the others waiting for it.
        try:
            region = HeapRegion(owner, count, dtype)
        except AllocationFailedError as error:
            failure = error
        flags = self._agree(Operation.CREATE_SHARED_REGION, bytes([failure is not None]), count, dtype)
        if failure is not None:
            raise failure
        failed = [rank for rank, flag in enumerate(flags) if flag[0]]
        if failed or region is None:
            raise no_memory(count * dtype.itemsize, failed)
        return region

    def split_local(self) -> LocalCommunicator:
        """A communicator of this rank alone: no memory is shared. All ranks take part, so that a mismatch is found."""
        self._agree(Operation.SPLIT_LOCAL, b"", 0, None)
        return LocalCommunicator()

    def _agree(self, operation: Operation, own: bytes, count: int, dtype: Dtype | None) -> list[memoryview]:
        sequence = self._begin_call(operation)
        described = NO_DTYPE if dtype is None else describe_dtype(dtype)
        header = call_header(sequence, operation, inline_bytes=len(own), count=count, total=count, dtype=described)
        flags = self._transport.gather(sequence, header, memoryview(own), (len(own),) * self._size)
        self._transport.end(sequence)
        return flags

    def _agree_on(self, sequence: int, header: bytes) -> None:
        """Wait until all ranks have made this call: a gather without data."""
        self._transport.gather(sequence, header, NOTHING, self._no_sizes)

    def _begin_call(self, operation: int) -> int:
        sequence = self._guard.sequence
        self._transport.begin(sequence, operation)
        return sequence


def part_views(array: Array, counts: Sequence[int], starts: Sequence[int]) -> list[memoryview]:
    """The bytes of several parts of an array; counts and starts are in elements."""
    whole, unit = as_bytes(array), array.itemsize
    return [whole[start * unit : (start + count) * unit] for start, count in zip(starts, counts, strict=True)]


def no_memory(nbytes: int, ranks: Sequence[int]) -> AllocationFailedError:
    """The error for a region that some ranks could not allocate."""
    return AllocationFailedError(nbytes, f"not enough memory for a region of {nbytes} bytes on ranks {list(ranks)}")


def _is_in_place(send: Array, recv: Array, start: int) -> bool:
    target = recv.__array_interface__["data"][0] + start * recv.itemsize
    return bool(send.__array_interface__["data"][0] == target)
