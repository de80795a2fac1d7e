"""The collectives of ranks that share memory with others of their host: inside by memory, between hosts by TCP.

Every call has the same three parts. The ranks of a host come together and compare their calls; the first of them, the
leader, exchanges with the other hosts' leaders; then it lets the others go, with the result. Nobody's buffer is touched
before all hosts agree. Between hosts every byte moves once, whatever number of ranks wants it. A reduction is folded in
rank order by the coordinator, so ranks of one host are not folded first: their order in the world decides.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeAlias

import numpy as np

from cobre._native import CallGuard, ShmRegion
from cobre.comm.backends.shm.communicator import ShmCommunicator
from cobre.comm.backends.shm.region import RegionOwner, ShmSharedRegion
from cobre.comm.backends.tcp.calls import NO_DTYPE, call_head, describe_dtype, hash_counts
from cobre.comm.backends.tcp.host_discovery import Hosts
from cobre.comm.backends.tcp.host_group import HostGroup
from cobre.comm.backends.tcp.star import no_memory, places_in
from cobre.comm.backends.tcp.transport import NOTHING, SMALL_BYTES, DeferredCopy, Transport, as_bytes, view_of
from cobre.comm.config import ShmConfig
from cobre.comm.types import Array, Dtype, Operation, ReduceOp
from cobre.comm.validation import packed

Head: TypeAlias = Callable[..., bytes]
"""Makes what leaders compare of a call, for the size of the payload that travels with it."""

REDUCTION_BYTES = 1 << 20  # of one host's operands that are under way at once


class TwoLevels:
    """One rank's part of the collectives, where ranks of a host share memory.

    Inside the host every rank takes part in each step, leaders and others alike: a step that only some make would
    leave the rest waiting in a barrier of shared memory.
    """

    def __init__(
        self, transport: Transport, host: HostGroup, hosts: Hosts, guard: CallGuard, rank: int, size: int
    ) -> None:
        self._transport = transport
        self._host = host
        self._shared = host.shm
        self._guard = guard
        self._rank = rank
        self._size = size
        self._is_alone = len(hosts.groups) == 1
        self._most = max(map(len, hosts.groups))
        self._elsewhere = [other for other in range(size) if other not in host.ranks]
        self._no_sizes = (0,) * size

    # The collectives.

    def allgatherv(self, send: Array, recv: Array, counts: Sequence[int], displs: Sequence[int] | None) -> None:
        """Every rank's data to every rank."""
        elements = tuple(counts)
        starts = packed(elements) if displs is None else displs
        total, hashed = sum(elements), hash_counts(elements)
        with self._call(Operation.ALLGATHERV, recv, elements[self._rank], total, 0, hashed) as sequence:
            head = _head(
                sequence, Operation.ALLGATHERV, recv.dtype, total, count=elements[self._rank], counts_hash=hashed
            )
            if self._is_alone:
                self._shared.allgatherv(send, recv, elements, starts)
            elif total * recv.itemsize <= SMALL_BYTES:
                self._gather_small(sequence, head, send, places_in(recv, elements, starts))
            else:
                self._gather_large(sequence, head, send, recv, elements, starts)

    def _gather_small(self, sequence: int, head: Head, send: Array, places: Sequence[memoryview]) -> None:
        sizes = [len(place) for place in places]
        own = self._gather_host(as_octets(send), [sizes[rank] for rank in self._host.ranks])
        self._host_arrived()
        rest = np.empty(sum(sizes) - own.size, np.uint8)
        if self._host.is_leader:
            parts = self._transport.gather(sequence, head(inline_bytes=own.size), view_of(own), sizes)
            view_of(rest)[:] = b"".join([parts[rank] for rank in self._elsewhere])
        self._shared.broadcast(rest, 0)
        _place(own, [places[rank] for rank in self._host.ranks])
        _place(rest, [places[rank] for rank in self._elsewhere])

    def _gather_large(
        self, sequence: int, head: Head, send: Array, recv: Array, elements: Sequence[int], starts: Sequence[int]
    ) -> None:
        self._agree(sequence, head)
        here, elsewhere = self._host.ranks, self._elsewhere
        self._shared.allgatherv(send, recv, [elements[rank] for rank in here], [starts[rank] for rank in here])
        if self._host.is_leader:
            places = places_in(recv, elements, starts)
            self._transport.gather_stream(
                sequence, head(inline_bytes=0), [places[rank] for rank in here], places, DeferredCopy()
            )
        self._shared.broadcast_parts(
            recv, [elements[rank] for rank in elsewhere], [starts[rank] for rank in elsewhere], 0
        )

    def allreduce(self, send: Array, recv: Array, op: ReduceOp) -> None:
        """The left fold in rank order, through a window of bounded size."""
        with self._call(Operation.ALLREDUCE, send, send.size, send.size, op, 0) as sequence:
            if self._is_alone:
                self._shared.allreduce(send, recv, op)
                return
            head = _head(sequence, Operation.ALLREDUCE, send.dtype, send.size, reduction=op)
            operand, result = send.reshape(-1), recv.reshape(-1)
            step = max(1, REDUCTION_BYTES // self._most // send.itemsize)
            for start in range(0, max(1, operand.size), step):
                piece = slice(start, start + step)
                result[piece] = self._reduce_piece(sequence, head, operand[piece], op)

    def _reduce_piece(self, sequence: int, head: Head, operand: Array, op: ReduceOp) -> Array:
        operands = self._gather_host(operand, [operand.size] * len(self._host.ranks))
        self._host_arrived()
        result = np.empty_like(operand)
        if self._host.is_leader:
            self._transport.reduce(sequence, head(inline_bytes=operands.nbytes), operands, result, op)
        self._shared.broadcast(result, 0)
        return result

    def broadcast(self, buffer: Array, root: int) -> None:
        """The root's data to every rank."""
        with self._call(Operation.BROADCAST, buffer, buffer.size, buffer.size, root, 0) as sequence:
            head = _head(sequence, Operation.BROADCAST, buffer.dtype, buffer.size, root=root)
            if self._is_alone:
                self._shared.broadcast(buffer, root)
            elif buffer.nbytes <= SMALL_BYTES:
                self._broadcast_small(sequence, head, as_bytes(buffer), root)
            else:
                self._broadcast_large(sequence, head, buffer, root)

    def _broadcast_small(self, sequence: int, head: Head, buffer: memoryview, root: int) -> None:
        data = np.frombuffer(bytearray(buffer), np.uint8)
        self._bring_to_leader(data, root)
        self._host_arrived()
        if self._host.is_leader:
            inline_bytes = data.size if root in self._host.ranks else 0
            self._transport.broadcast(sequence, head(inline_bytes=inline_bytes), view_of(data), root)
        self._shared.broadcast(data, 0)
        if self._rank != root:
            buffer[:] = view_of(data)

    def _broadcast_large(self, sequence: int, head: Head, buffer: Array, root: int) -> None:
        self._agree(sequence, head)
        self._bring_to_leader(buffer, root)
        if self._host.is_leader:
            self._transport.broadcast_stream(sequence, head(inline_bytes=0), as_bytes(buffer), root)
        if root in self._host.ranks:
            self._shared.barrier()
        else:
            self._shared.broadcast(buffer, 0)

    def _bring_to_leader(self, buffer: Array, root: int) -> None:
        """The root's data to all ranks of its host; on the other hosts all ranks come together."""
        if root in self._host.ranks:
            self._shared.broadcast(buffer, self._host.ranks.index(root))
        else:
            self._shared.barrier()

    def barrier(self) -> None:
        """Until all ranks are here."""
        with self._call(Operation.BARRIER) as sequence:
            self._shared.barrier()
            if not self._is_alone:
                self._host_arrived()
                if self._host.is_leader:
                    head = call_head(sequence, Operation.BARRIER)
                    self._transport.gather(sequence, head, NOTHING, self._no_sizes)
                self._shared.barrier()

    # Regions, and the ranks of this host.

    def create_region(self, owner: RegionOwner, count: int, dtype: Dtype) -> ShmSharedRegion:
        """Allocate once on every host, then hear whether all others could."""
        nbytes, region, problem = count * dtype.itemsize, None, ""
        with self._call(Operation.CREATE_SHARED_REGION, np.empty(0, dtype), nbytes, nbytes) as sequence:
            try:
                region = self._shared.create_region(nbytes, dtype)
            except OSError as error:  # on every rank of this host alike
                problem = error.strerror or str(error)
            without = self._hosts_without(sequence, Operation.CREATE_SHARED_REGION, dtype, nbytes, is_here=not problem)
        if region is None or without:
            raise no_memory(nbytes, without)
        return ShmSharedRegion(owner, region, count, dtype)

    def split_local(self) -> ShmCommunicator:
        """A communicator of this host's ranks."""
        config = ShmConfig(f"cobre-host-{self._rank}", self._host.local_rank, len(self._host.ranks))
        local, problem = None, ""
        with self._call(Operation.SPLIT_LOCAL) as sequence:
            try:
                local = ShmCommunicator(config, self._shared)
            except OSError as error:
                problem = error.strerror or str(error)
            without = self._hosts_without(sequence, Operation.SPLIT_LOCAL, None, 0, is_here=not problem)
        if local is None or without:
            raise no_memory(self._shared.window_bytes, without)
        return local

    def fence(self, region: ShmRegion) -> None:
        """Until all ranks of this host are here."""
        with self._call(Operation.FENCE, detail=region.id):
            self._shared.fence(region)

    def _hosts_without(
        self, sequence: int, operation: Operation, dtype: Dtype | None, total: int, *, is_here: bool
    ) -> list[int]:
        """The ranks on whose hosts something could not be had."""
        flags = np.full(self._size, not is_here, np.uint8)
        if not self._is_alone:
            self._host_arrived()
            if self._host.is_leader:
                own = bytes(flags[: len(self._host.ranks)])
                head = _head(sequence, operation, dtype, total)(inline_bytes=len(own))
                view_of(flags)[:] = b"".join(self._transport.gather(sequence, head, memoryview(own), (1,) * self._size))
            self._shared.broadcast(flags, 0)
        return [int(rank) for rank in np.flatnonzero(flags)]

    # What the calls are made of.

    @contextmanager
    def _call(
        self,
        operation: Operation,
        like: Array | None = None,
        count: int = 0,
        total: int = 0,
        detail: int = 0,
        counts_hash: int = 0,
    ) -> Iterator[int]:
        sequence, progress = self._guard.sequence, self._transport.progress
        progress.waits_for_host = not self._is_alone
        try:
            self._transport.begin(sequence, operation)
            self._shared.describe_call(like, count, total, detail, counts_hash)
            self._shared.enforce_operation_timeout(True)
            yield sequence
        finally:
            progress.waits_for_host = False
        self._transport.end(sequence)

    def _host_arrived(self) -> None:
        """All ranks of this host have come: from here on they wait for their leader, and it for the other hosts."""
        # The hard limit stops here for this host: only the coordinator sees which host is late, and its verdict, which
        # names the ranks, must come first.
        self._transport.progress.waits_for_host = False
        self._shared.enforce_operation_timeout(False)

    def _agree(self, sequence: int, head: Head) -> None:
        """Make sure that all ranks make the same call, before a large payload moves into anybody's buffer."""
        self._shared.barrier()
        self._host_arrived()
        if self._host.is_leader:
            self._transport.gather(sequence, head(inline_bytes=0), NOTHING, self._no_sizes)

    def _gather_host(self, own: Array, counts: Sequence[int]) -> Array:
        """The data of this host's ranks, one after the other."""
        gathered = np.empty(sum(counts), own.dtype)
        self._shared.allgatherv(own, gathered, counts, packed(counts))
        return gathered


def _head(sequence: int, operation: Operation, dtype: Dtype | None, total: int, **more: int) -> Head:
    described = NO_DTYPE if dtype is None else describe_dtype(dtype)
    return partial(call_head, sequence, operation, dtype=described, total=total, **more)


def as_octets(array: Array) -> Array:
    """The array's memory as bytes."""
    return np.frombuffer(as_bytes(array), np.uint8)


def _place(octets: Array, places: Sequence[memoryview]) -> None:
    """Bytes that lie one after the other into their places."""
    view, at = view_of(octets), 0
    for place in places:
        place[:] = view[at : at + len(place)]
        at += len(place)
