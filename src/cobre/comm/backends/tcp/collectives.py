"""The collectives of backend tcp: a star around the coordinator, and hosts whose ranks share memory.

Without shared memory every rank is a node of the star. With it, the ranks of a host exchange in shared memory, and
their leader with the leaders of other hosts.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TypeAlias

import numpy as np

from cobre._native import CallGuard, ShmRegion
from cobre.comm.backends.local import LocalCommunicator
from cobre.comm.backends.shm import NativeRegionBackend, ShmCommunicator, ShmSharedRegion
from cobre.comm.backends.tcp.node_group import NO_RING, NodeGroup, Nodes
from cobre.comm.backends.tcp.transport.ring import Ring
from cobre.comm.backends.tcp.transport.star import EMPTY, SMALL_BYTES, DeferredCopy, StarTransport
from cobre.comm.backends.tcp.wire.protocol import NO_DTYPE, call_header, describe_dtype, hash_counts
from cobre.comm.config import ShmConfig
from cobre.comm.endpoint import Endpoint
from cobre.comm.errors import AllocationFailedError
from cobre.comm.shared_memory import HeapRegion
from cobre.comm.types import Array, Dtype, Operation, ReduceOp
from cobre.comm.validation import as_bytes, as_octets, packed_displacements, view_of

# Plain ints: looking up an enum member costs as much as packing a header.
_ALLGATHERV, _ALLREDUCE = int(Operation.ALLGATHERV), int(Operation.ALLREDUCE)
_BROADCAST, _BARRIER = int(Operation.BROADCAST), int(Operation.BARRIER)


class StarCollectives:
    """One rank's side of the collectives if no ranks share memory.

    ring: moves gathers and broadcasts of `ring_threshold_bytes` or more; None: all payloads go through the coordinator.
    """

    def __init__(
        self,
        transport: StarTransport,
        guard: CallGuard,
        rank: int,
        size: int,
        ring: Ring | None = None,
        ring_threshold_bytes: int = NO_RING,
    ) -> None:
        self._transport = transport
        self._guard = guard
        self._rank = rank
        self._size = size
        self._no_sizes = (0,) * size
        self._ring = ring
        self._ring_threshold_bytes = NO_RING if ring is None else ring_threshold_bytes

    def allgatherv(self, send: Array, recv: Array, counts: Sequence[int], displs: Sequence[int] | None) -> None:
        """Gather every rank's data on every rank."""
        elements = tuple(counts)
        total, itemsize = sum(elements), recv.itemsize
        # By the total, which is the same on all ranks: all of them must choose the same protocol.
        in_ring = total * itemsize >= self._ring_threshold_bytes
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
        local, starts = as_bytes(send), packed_displacements(elements) if displs is None else displs
        targets = part_views(recv, elements, starts)
        if is_small:
            parts = self._transport.gather_inline(sequence, header, local, [len(target) for target in targets])
            for target, part in zip(targets, parts, strict=True):
                target[:] = part
        else:
            # Copying a part onto itself would be harmless, but not free if it is large.
            in_place = _is_in_place(send, recv, starts[self._rank])
            copy = DeferredCopy() if in_place else DeferredCopy(local, targets[self._rank])
            if in_ring and self._ring is not None:
                self._compare_calls(sequence, header)
                self._ring.gather_blocks(sequence, (local,), lambda ranks: [targets[rank] for rank in ranks], copy)
            else:
                self._transport.gather_stream(sequence, header, (local,), targets, copy)
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
            self._transport.reduce_inline(sequence, header, send, recv, op)
        else:
            self._transport.reduce_stream(sequence, header, send, recv, op)
        self._transport.end(sequence)

    def broadcast(self, buffer: Array, root: int) -> None:
        """Copy the root's data to every rank."""
        in_ring = buffer.nbytes >= self._ring_threshold_bytes
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
            self._compare_calls(sequence, header)
            self._ring.broadcast_block(sequence, as_bytes(buffer), root)
        else:
            broadcast = self._transport.broadcast_inline if is_small else self._transport.broadcast_stream
            broadcast(sequence, header, as_bytes(buffer), root)
        self._transport.end(sequence)

    def barrier(self) -> None:
        """Wait for all ranks."""
        sequence = self._begin_call(_BARRIER)
        self._compare_calls(sequence, call_header(sequence, _BARRIER))
        self._transport.end(sequence)

    def create_region(self, owner: Endpoint, count: int, dtype: Dtype) -> HeapRegion:
        """Allocate, then exchange which ranks failed to: the outcome must be the same on all ranks."""
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
            raise allocation_error(count * dtype.itemsize, failed)
        return region

    def split_local(self) -> LocalCommunicator:
        """Return a communicator with only this rank, as no memory is shared.

        Collective: mismatched calls are detected.
        """
        self._agree(Operation.SPLIT_LOCAL, b"", 0, None)
        return LocalCommunicator()

    def _agree(self, operation: Operation, local: bytes, count: int, dtype: Dtype | None) -> list[memoryview]:
        sequence = self._begin_call(operation)
        described = NO_DTYPE if dtype is None else describe_dtype(dtype)
        header = call_header(sequence, operation, inline_bytes=len(local), count=count, total=count, dtype=described)
        flags = self._transport.gather_inline(sequence, header, memoryview(local), (len(local),) * self._size)
        self._transport.end(sequence)
        return flags

    def _compare_calls(self, sequence: int, header: bytes) -> None:
        """Wait until all ranks have made this call: a gather without data."""
        self._transport.gather_inline(sequence, header, EMPTY, self._no_sizes)

    def _begin_call(self, operation: int) -> int:
        sequence = self._guard.sequence
        self._transport.begin(sequence, operation)
        return sequence


def part_views(array: Array, counts: Sequence[int], starts: Sequence[int]) -> list[memoryview]:
    """Return the bytes of several parts of an array; counts and starts are in elements."""
    whole, unit = as_bytes(array), array.itemsize
    return [whole[start * unit : (start + count) * unit] for start, count in zip(starts, counts, strict=True)]


def allocation_error(nbytes: int, ranks: Sequence[int]) -> AllocationFailedError:
    """Return the error for a region that some ranks could not allocate."""
    return AllocationFailedError(nbytes, f"not enough memory for a region of {nbytes} bytes on ranks {list(ranks)}")


def _is_in_place(send: Array, recv: Array, start: int) -> bool:
    target = recv.__array_interface__["data"][0] + start * recv.itemsize
    return bool(send.__array_interface__["data"][0] == target)


# Hierarchical collectives: shared memory inside a node, TCP between the leaders of nodes.
#
# Every call has the same three phases. The ranks of a node meet at a barrier in shared memory, which compares their
# calls; their leader, the lowest rank, exchanges with the leaders of other nodes; then it distributes the result inside
# its node. No caller's buffer is written before all nodes agree on the call. Between two nodes every byte is sent once,
# however many ranks receive it. A reduction is folded in rank order by the coordinator: folding inside a node first
# would change the order, and with it the bits.

Header: TypeAlias = Callable[..., bytes]
"""Packs the signature that leaders compare, given the size of the payload in the same frame (`inline_bytes`)."""

REDUCTION_BYTES = 1 << 20  # of one node's operands in flight at once


class HierarchicalCollectives:
    """One rank's side of the collectives if ranks of a node share memory.

    Inside a node every rank takes part in each step, leader or not: a step that only some of them make would leave the
    rest waiting at a barrier in shared memory.
    """

    def __init__(
        self,
        transport: StarTransport,
        node: NodeGroup,
        nodes: Nodes,
        guard: CallGuard,
        rank: int,
        size: int,
        ring: Ring | None = None,
    ) -> None:
        self._transport = transport
        self._node = node
        self._shared = node.shm
        self._guard = guard
        self._rank = rank
        self._size = size
        self._is_single_node = len(nodes.groups) == 1
        self._max_ranks_per_node = max(map(len, nodes.groups))
        self._remote_ranks = [other for other in range(size) if other not in node.ranks]
        self._no_sizes = (0,) * size
        self._ring = ring
        # Above this size the calls are compared first, and the leader then moves the data; in the ring, if there is
        # one. All ranks of a node take the same steps, and only the leader knows whether there is one.
        self._large_threshold_bytes = min(SMALL_BYTES + 1, nodes.ring_threshold_bytes)
        self._ring_threshold_bytes = nodes.ring_threshold_bytes

    # The collectives.

    def allgatherv(self, send: Array, recv: Array, counts: Sequence[int], displs: Sequence[int] | None) -> None:
        """Gather every rank's data on every rank."""
        elements = tuple(counts)
        starts = packed_displacements(elements) if displs is None else displs
        total, counts_hash = sum(elements), hash_counts(elements)
        with self._call(Operation.ALLGATHERV, recv, elements[self._rank], total, 0, counts_hash) as sequence:
            header = _header(
                sequence, Operation.ALLGATHERV, recv.dtype, total, count=elements[self._rank], counts_hash=counts_hash
            )
            if self._is_single_node:
                self._shared.allgatherv(send, recv, elements, starts)
            elif total * recv.itemsize < self._large_threshold_bytes:
                self._gather_small(sequence, header, send, part_views(recv, elements, starts))
            else:
                self._gather_large(sequence, header, send, recv, elements, starts)

    def _gather_small(self, sequence: int, header: Header, send: Array, targets: Sequence[memoryview]) -> None:
        sizes = [len(target) for target in targets]
        local = self._concatenate_in_node(as_octets(send), [sizes[rank] for rank in self._node.ranks])
        self._end_node_phase()
        remote = np.empty(sum(sizes) - local.size, np.uint8)
        if self._node.is_leader:
            parts = self._transport.gather_inline(sequence, header(inline_bytes=local.size), view_of(local), sizes)
            view_of(remote)[:] = b"".join([parts[rank] for rank in self._remote_ranks])
        self._shared.broadcast(remote, 0)
        _scatter(local, [targets[rank] for rank in self._node.ranks])
        _scatter(remote, [targets[rank] for rank in self._remote_ranks])

    def _gather_large(
        self, sequence: int, header: Header, send: Array, recv: Array, elements: Sequence[int], starts: Sequence[int]
    ) -> None:
        # A large payload is received straight into the callers' buffers, so the calls are compared in a round of their
        # own first; a small one travels with the comparison.
        self._agree(sequence, header)
        local_ranks, remote_ranks = self._node.ranks, self._remote_ranks
        self._shared.allgatherv(
            send, recv, [elements[rank] for rank in local_ranks], [starts[rank] for rank in local_ranks]
        )
        if self._node.is_leader:
            targets, copy = part_views(recv, elements, starts), DeferredCopy()
            local = [targets[rank] for rank in local_ranks]
            if self._ring is not None and recv.itemsize * sum(elements) >= self._ring_threshold_bytes:
                self._ring.gather_blocks(sequence, local, lambda ranks: [targets[rank] for rank in ranks], copy)
            else:
                self._transport.gather_stream(sequence, header(inline_bytes=0), local, targets, copy)
        self._shared.broadcast_parts(
            recv, [elements[rank] for rank in remote_ranks], [starts[rank] for rank in remote_ranks], 0
        )

    def allreduce(self, send: Array, recv: Array, op: ReduceOp) -> None:
        """Reduce by the left fold in rank order, in pieces of bounded size."""
        with self._call(Operation.ALLREDUCE, send, send.size, send.size, op, 0) as sequence:
            if self._is_single_node:
                self._shared.allreduce(send, recv, op)
                return
            header = _header(sequence, Operation.ALLREDUCE, send.dtype, send.size, reduction=op)
            operand, result = send.reshape(-1), recv.reshape(-1)
            # The same number of pieces on all nodes, whatever their number of ranks: every piece is an exchange that
            # all leaders take part in. At least one, because even an empty reduction compares the calls.
            step = max(1, REDUCTION_BYTES // self._max_ranks_per_node // send.itemsize)
            for start in range(0, max(1, operand.size), step):
                chunk = slice(start, start + step)
                result[chunk] = self._reduce_chunk(sequence, header, operand[chunk], op)

    def _reduce_chunk(self, sequence: int, header: Header, operand: Array, op: ReduceOp) -> Array:
        operands = self._concatenate_in_node(operand, [operand.size] * len(self._node.ranks))
        self._end_node_phase()
        result = np.empty_like(operand)
        if self._node.is_leader:
            self._transport.reduce_inline(sequence, header(inline_bytes=operands.nbytes), operands, result, op)
        self._shared.broadcast(result, 0)
        return result

    def broadcast(self, buffer: Array, root: int) -> None:
        """Copy the root's data to every rank."""
        with self._call(Operation.BROADCAST, buffer, buffer.size, buffer.size, root, 0) as sequence:
            header = _header(sequence, Operation.BROADCAST, buffer.dtype, buffer.size, root=root)
            if self._is_single_node:
                self._shared.broadcast(buffer, root)
            elif buffer.nbytes < self._large_threshold_bytes:
                self._broadcast_small(sequence, header, as_bytes(buffer), root)
            else:
                self._broadcast_large(sequence, header, buffer, root)

    def _broadcast_small(self, sequence: int, header: Header, buffer: memoryview, root: int) -> None:
        data = np.frombuffer(bytearray(buffer), np.uint8)  # a copy: the caller's buffer is written only after GO
        self._copy_within_root_node(data, root)
        self._end_node_phase()
        if self._node.is_leader:
            inline_bytes = data.size if root in self._node.ranks else 0
            self._transport.broadcast_inline(sequence, header(inline_bytes=inline_bytes), view_of(data), root)
        self._shared.broadcast(data, 0)
        if self._rank != root:
            buffer[:] = view_of(data)

    def _broadcast_large(self, sequence: int, header: Header, buffer: Array, root: int) -> None:
        self._agree(sequence, header)
        self._copy_within_root_node(buffer, root)
        if self._node.is_leader:
            if self._ring is not None and buffer.nbytes >= self._ring_threshold_bytes:
                self._ring.broadcast_block(sequence, as_bytes(buffer), root)
            else:
                self._transport.broadcast_stream(sequence, header(inline_bytes=0), as_bytes(buffer), root)
        if root in self._node.ranks:
            self._shared.barrier()
        else:
            self._shared.broadcast(buffer, 0)

    def _copy_within_root_node(self, buffer: Array, root: int) -> None:
        """Copy the root's data to all ranks of its node, including the leader; on other nodes, wait at a barrier."""
        if root in self._node.ranks:
            self._shared.broadcast(buffer, self._node.ranks.index(root))
        else:
            self._shared.barrier()

    def barrier(self) -> None:
        """Wait for all ranks: inside the node, between leaders, and inside the node again."""
        with self._call(Operation.BARRIER) as sequence:
            self._shared.barrier()
            if not self._is_single_node:
                self._end_node_phase()
                if self._node.is_leader:
                    header = call_header(sequence, Operation.BARRIER)
                    self._transport.gather_inline(sequence, header, EMPTY, self._no_sizes)
                self._shared.barrier()

    # Regions, and the ranks of this node.

    def create_region(self, owner: NativeRegionBackend, count: int, dtype: Dtype) -> ShmSharedRegion:
        """Allocate once on every node, then exchange which nodes failed to."""
        nbytes, region = count * dtype.itemsize, None
        with self._call(Operation.CREATE_SHARED_REGION, np.empty(0, dtype), nbytes, nbytes) as sequence:
            # Not raised yet: a node that left the call here would leave the others waiting for it.
            with suppress(OSError):  # on every rank of this node alike
                region = self._shared.create_region(nbytes, dtype)
            failed = self._failed_ranks(
                sequence, Operation.CREATE_SHARED_REGION, dtype, nbytes, failed_here=region is None
            )
        if region is None or failed:
            raise allocation_error(nbytes, failed)
        return ShmSharedRegion(owner, region, count, dtype)

    def split_local(self) -> ShmCommunicator:
        """Return a shared-memory communicator of this node's ranks."""
        config = ShmConfig(f"cobre-node-{self._rank}", self._node.local_rank, len(self._node.ranks))
        local = None
        with self._call(Operation.SPLIT_LOCAL) as sequence:
            with suppress(OSError):  # not raised yet, as in `create_region`
                local = ShmCommunicator(config, self._shared)
            failed = self._failed_ranks(sequence, Operation.SPLIT_LOCAL, None, 0, failed_here=local is None)
        if local is None or failed:
            raise allocation_error(self._shared.window_bytes, failed)
        return local

    def fence(self, region: ShmRegion) -> None:
        """Wait for all ranks of this node; other nodes take no part."""
        with self._call(Operation.FENCE, detail=region.id):
            self._shared.fence(region)

    def _failed_ranks(
        self, sequence: int, operation: Operation, dtype: Dtype | None, total: int, *, failed_here: bool
    ) -> list[int]:
        """Return the ranks of all nodes that have failed to allocate; the same list everywhere. Collective."""
        flags = np.full(self._size, failed_here, np.uint8)
        if not self._is_single_node:
            self._end_node_phase()
            if self._node.is_leader:
                local = bytes(flags[: len(self._node.ranks)])
                header = _header(sequence, operation, dtype, total)(inline_bytes=len(local))
                view_of(flags)[:] = b"".join(
                    self._transport.gather_inline(sequence, header, memoryview(local), (1,) * self._size)
                )
            self._shared.broadcast(flags, 0)
        return [int(rank) for rank in np.flatnonzero(flags)]

    # Steps of the calls.

    @contextmanager
    def _call(
        self,
        operation: Operation,
        array: Array | None = None,
        count: int = 0,
        total: int = 0,
        detail: int = 0,
        counts_hash: int = 0,
    ) -> Iterator[int]:
        sequence, progress = self._guard.sequence, self._transport.progress
        # Before the call starts: the monitor's thread must not find a started call whose connections are not watched.
        progress.waits_inside_node = not self._is_single_node
        try:
            self._transport.begin(sequence, operation)
            # The steps below are separate collectives in shared memory; errors must name the caller's.
            self._shared.describe_call(array, count, total, detail, counts_hash)
            self._shared.enforce_operation_timeout(True)
            yield sequence
        finally:
            progress.waits_inside_node = False
        self._transport.end(sequence)

    def _end_node_phase(self) -> None:
        """Note that all ranks of this node have arrived: they now wait for their leader, and it for other nodes."""
        # The hard limit is suspended inside the node: only the coordinator sees which node is late, and its record,
        # which names the ranks, must come first.
        self._transport.progress.waits_inside_node = False
        self._shared.enforce_operation_timeout(False)

    def _agree(self, sequence: int, header: Header) -> None:
        """Make sure that all ranks make the same call, before a large payload is received into a caller's buffer."""
        self._shared.barrier()
        self._end_node_phase()
        if self._node.is_leader:
            self._transport.gather_inline(sequence, header(inline_bytes=0), EMPTY, self._no_sizes)

    def _concatenate_in_node(self, local: Array, counts: Sequence[int]) -> Array:
        """Return the data of this node's ranks, concatenated."""
        gathered = np.empty(sum(counts), local.dtype)
        self._shared.allgatherv(local, gathered, counts, packed_displacements(counts))
        return gathered


def _header(sequence: int, operation: Operation, dtype: Dtype | None, total: int, **more: int) -> Header:
    described = NO_DTYPE if dtype is None else describe_dtype(dtype)
    return partial(call_header, sequence, operation, dtype=described, total=total, **more)


def _scatter(octets: Array, targets: Sequence[memoryview]) -> None:
    """Copy concatenated bytes to their targets."""
    view, offset = view_of(octets), 0
    for target in targets:
        target[:] = view[offset : offset + len(target)]
        offset += len(target)
