"""The coordinator's end of the collectives: rank 0 receives all calls, compares them, and only then delivers data."""

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from cobre._native import fold
from cobre.comm.backends.tcp.liveness import CoordinatorMonitor, WorldFailedError
from cobre.comm.backends.tcp.transport.channel import Channel, LinkLostError
from cobre.comm.backends.tcp.transport.ring import CoordinatorWatch
from cobre.comm.backends.tcp.transport.star import EMPTY, SMALL_BYTES, DeferredCopy, StarTransport
from cobre.comm.backends.tcp.transport.streams import DataReader, NodeReader, RelayWriter
from cobre.comm.backends.tcp.transport.waiting import READ, WRITE, CoordinatorWaiter, Waiter, WaitPolicy
from cobre.comm.backends.tcp.wire.messages import FailureKind, FailureRecord
from cobre.comm.backends.tcp.wire.protocol import (
    CALL_BYTES,
    HEADER_BYTES,
    PREFIX,
    SIGNATURE_AT,
    CallHeader,
    ProtocolError,
    Tag,
    go_header,
)
from cobre.comm.errors import Peer
from cobre.comm.types import Array, ReduceOp
from cobre.comm.validation import as_bytes, view_of

# Receiving the calls of the workers.

ALIGNMENT = 64  # bytes; operands are folded where they arrived, and this suits every numeric dtype


class Inbox:
    """Receiver of one worker's call: its header, and a small payload behind it at an aligned address.

    Reused from call to call, so that a small collective allocates nothing.
    """

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.view = _aligned(SMALL_BYTES)
        self.expect(0)

    def expect(self, payload_bytes: int) -> None:
        """Prepare for the next call, whose payload has this many bytes if the worker makes the same call as we do."""
        self.received = 0
        self.expected_bytes = HEADER_BYTES + payload_bytes
        if self.expected_bytes > len(self.view):
            self.view = _aligned(payload_bytes)
        self._prefix = PREFIX.pack(CALL_BYTES + payload_bytes, Tag.CALL)

    def advance(self) -> None:
        """Receive what has arrived; never blocks, never reads past this call."""
        self.received += self.channel.receive(self.view[self.received : self.expected_bytes])

    def await_call(self) -> bool:
        """Wait for the whole call, RECEIVE_TIMEOUT_S at most.

        Return False if it has not arrived or has another length.
        """
        # One blocking read for all bytes: a small call arrives in one segment, and the poll before it is saved. What
        # arrives in parts is completed by `advance`.
        self.received = self.channel.await_bytes(self.view[: self.expected_bytes])
        return self.received == self.expected_bytes

    def matches(self, header: bytes) -> bool:
        """Return whether the worker's signature equals ours; True as long as it has not arrived completely."""
        if self.received < HEADER_BYTES:
            return True
        # The signature before the length: ranks that make different calls usually differ in length too, and the
        # mismatch of calls is the better message.
        if self.view[SIGNATURE_AT:HEADER_BYTES] != header[SIGNATURE_AT:]:
            return False
        if self.view[: len(self._prefix)] != self._prefix:
            raise ProtocolError(f"{self.channel.peer} sent a call whose payload has an unexpected length")
        return True

    @property
    def payload(self) -> memoryview:
        """The small payload behind the header."""
        return self.view[HEADER_BYTES : self.expected_bytes]


def _aligned(payload_bytes: int) -> memoryview:
    """Allocate memory for a header, and a payload that starts at an aligned address."""
    memory = np.zeros(2 * ALIGNMENT + HEADER_BYTES + payload_bytes, np.uint8)
    start = -(memory.ctypes.data + HEADER_BYTES) % ALIGNMENT
    return view_of(memory)[start : start + HEADER_BYTES + payload_bytes]


# Relaying large payloads: parts leave for some workers while they arrive from others.


# The smallest piece that is relayed before a rank's part is complete. Smaller ones cost more system calls than the
# earlier start gains; 128 KiB, 512 KiB and 1 MiB were measured (ADR 0009).
MIN_RELAY_BYTES = 512 * 1024


Sleep = Callable[[Mapping[int, int], set[int]], None]
"""Takes events by descriptor, and the ranks that are waited for; returns when a descriptor is ready."""


class Relay:
    """The streams of one large call, moved in whatever order the sockets allow.

    In a fixed order one slow worker would hold up all others. parts_for: by worker, every rank's part that it gets, by
    rank; None for parts that it already has. available, in the methods: by rank, how many bytes of its part have
    arrived.
    """

    def __init__(
        self,
        channels: Mapping[int, Channel],
        sequence: int,
        parts_for: Mapping[int, Sequence[memoryview | None]],
        sleep: Sleep,
    ) -> None:
        self._channels = channels
        self._sleep = sleep
        self._writers = {
            rank: RelayWriter(channels[rank], sequence, parts, MIN_RELAY_BYTES) for rank, parts in parts_for.items()
        }

    @property
    def is_writing(self) -> bool:
        """Whether something is still to be sent, now or once it has arrived."""
        return bool(self._writers)

    def run(self, readers: dict[int, NodeReader], available: Sequence[int], copy: DeferredCopy) -> None:
        """Receive and send until all is done. readers: by worker; they advance `available`, the writers follow it."""
        while readers or self._writers:
            moved_bytes = _advance_readers(readers) + self.write(available)
            # Our own part is copied while the sockets are idle, so it costs no extra time.
            if not moved_bytes and (readers or self._writers) and not copy.advance():
                self.sleep(readers, available)
        copy.finish()

    def write(self, available: Sequence[int]) -> int:
        """Send what has arrived, as far as the sockets take it; return the number of bytes."""
        total = 0
        for rank, writer in list(self._writers.items()):
            while writer.has_work(available) and (sent := writer.flush()):
                total += sent
            if writer.is_done:
                del self._writers[rank]
        return total

    def sleep(self, readers: Collection[int], available: Sequence[int]) -> None:
        """Wait until bytes arrive from one of the `readers`, or there is room for bytes that can be sent."""
        interests = {self._channels[rank].fd: READ for rank in readers}
        for rank, writer in self._writers.items():
            # Only if there is something to send: an idle socket is always writable, and would end every sleep at once.
            if writer.has_work(available):
                descriptor = self._channels[rank].fd
                interests[descriptor] = interests.get(descriptor, 0) | WRITE
        self._sleep(interests, {*readers, *self._writers})


def _advance_readers(readers: dict[int, NodeReader]) -> int:
    total = 0
    for leader, reader in list(readers.items()):
        total += reader.advance()
        if reader.is_done:
            del readers[leader]
    return total


# Folding large reductions in bounded memory, whatever the size of the payload.

CHUNK_BYTES = 1 << 18  # stays in the cache between receiving and folding
SLOTS = 4  # chunks that a worker may be ahead of the slowest one


class ReductionWindow:
    """A ring of SLOTS chunks for every worker's operand; a chunk is folded once all workers' have arrived."""

    def __init__(self, size: int) -> None:
        self._workers = range(1, size)
        self._memory: dict[int, Sequence[Array]] = {}

    def start(self, send: Array, recv: Array, op: ReduceOp) -> None:
        """Prepare for one reduction of `send` and the workers' operands into `recv`."""
        if not self._memory:  # allocated by the first large reduction, then kept
            self._memory = {rank: [np.empty(CHUNK_BYTES, np.uint8) for _ in range(SLOTS)] for rank in self._workers}
        self._send, self._recv, self._op = send, recv, op
        self._elements = CHUNK_BYTES // send.itemsize
        self._chunk_bytes = self._elements * send.itemsize
        self._received = dict.fromkeys(self._workers, 0)
        self._folded = 0
        self.folded_bytes = 0
        # Memoryviews are made once per reduction, not per read: a chunk arrives in many pieces.
        self._views = {rank: [view_of(slot) for slot in slots] for rank, slots in self._memory.items()}

    def has_room(self, rank: int) -> bool:
        """Return whether there is a free slot for more of this rank's operand."""
        return self._received[rank] // self._chunk_bytes < self._folded + SLOTS

    def read(self, rank: int, reader: DataReader) -> int:
        """Receive some of a rank's operand; return the number of bytes, 0 if none have arrived or there is no room."""
        if not self.has_room(rank):
            return 0
        chunk, at = divmod(self._received[rank], self._chunk_bytes)
        received = reader.read(self._views[rank][chunk % SLOTS][at : self._chunk_bytes])
        self._received[rank] += received
        return received

    def fold_complete(self) -> int:
        """Fold every chunk that has arrived from all workers; return the number of new bytes in the result."""
        before, total = self.folded_bytes, self._send.nbytes
        while self.folded_bytes < total:
            end = min(self.folded_bytes + self._chunk_bytes, total)
            if min(self._received.values()) < end:
                break
            self._fold_chunk(self._folded, (end - self.folded_bytes) // self._send.itemsize)
            self._folded += 1
            self.folded_bytes = end
        return self.folded_bytes - before

    def _fold_chunk(self, chunk: int, elements: int) -> None:
        start = chunk * self._elements
        span = slice(start, start + elements)
        dtype, slot = self._send.dtype, chunk % SLOTS
        # Rank 0's own operand first, then the workers' in rank order: the left fold of clause 8.
        operands = [np.frombuffer(self._memory[rank][slot], dtype, elements) for rank in self._workers]
        fold([self._send[span], *operands], self._recv[span], self._op)


class CoordinatorTransport(StarTransport):
    """Rank 0's transport: a data connection to every worker.

    Leaders: the workers whose data connections are in use, one per node; without shared memory, all of them.
    """

    monitor: CoordinatorMonitor

    def __init__(
        self,
        channels: Mapping[int, Channel],
        me: Peer,
        monitor: CoordinatorMonitor,
        wait_policy: WaitPolicy,
    ) -> None:
        super().__init__(monitor, wait_policy)
        self._channels = channels
        self._me = me
        self._size = len(channels) + 1
        self._inboxes = {rank: Inbox(channel) for rank, channel in sorted(channels.items())}
        self._ranks_by_leader: Mapping[int, Sequence[int]] = {rank: (rank,) for rank in range(self._size)}
        self._window = ReductionWindow(self._size)
        # Changed by the caller's thread, read by the monitor's for heartbeats. Hence the tuple below, which is built in
        # one step under the GIL: iterating over a set that changes during the loop raises.
        self._missing: set[int] = set()
        self.progress.missing = lambda: tuple(self._missing)

    def diagnose_disconnect(self, error: LinkLostError) -> FailureRecord:
        """Return why a data connection ended, and declare it to all workers."""
        monitor, sequence = self.monitor, self.progress.started
        return monitor.broadcast_failure(monitor.diagnose_disconnect(error.peer.rank, error.cause, sequence))

    def gather_inline(self, sequence: int, header: bytes, local: memoryview, sizes: Sequence[int]) -> list[memoryview]:
        """Collect the bytes of all ranks and send each worker the others' bytes."""
        # Everything has arrived and all calls agree before the first reply leaves (clause 2).
        self._collect(sequence, header, sizes)
        parts = self._split_by_rank(local, sizes)
        for leader in self._inboxes:
            ranks = self._ranks_by_leader[leader]
            others = b"".join([part for rank, part in enumerate(parts) if rank not in ranks])
            self._reply(sequence, leader, go_header(sequence, len(others)) + others)
        return parts

    def reduce_inline(self, sequence: int, header: bytes, send: Array, recv: Array, op: ReduceOp) -> None:
        """Collect the operands, fold them in rank order, and send the result to all workers."""
        sizes = (recv.nbytes,) * self._size
        self._collect(sequence, header, sizes)
        result = recv.reshape(-1)
        if result.size:
            fold([np.frombuffer(part, recv.dtype) for part in self._split_by_rank(as_bytes(send), sizes)], result, op)
        message = go_header(sequence, recv.nbytes) + as_bytes(recv)
        for rank in self._inboxes:
            self._reply(sequence, rank, message)

    def broadcast_inline(self, sequence: int, header: bytes, buffer: memoryview, root: int) -> None:
        """Collect the root's bytes and send them to the others."""
        sizes = [len(buffer) if rank == root else 0 for rank in range(self._size)]
        self._collect(sequence, header, sizes)
        source = next(leader for leader, ranks in self._ranks_by_leader.items() if root in ranks)
        if source:  # else the root is on this node, and its bytes are in the buffer
            buffer[:] = self._inboxes[source].payload
        message = go_header(sequence, len(buffer)) + buffer
        for leader in self._inboxes:
            # The root's own node gets an empty GO: it has the data, but may not return before all calls agree.
            self._reply(sequence, leader, go_header(sequence, 0) if leader == source else message)

    def gather_stream(
        self,
        sequence: int,
        header: bytes,
        local: Sequence[memoryview],
        targets: Sequence[memoryview],
        copy: DeferredCopy,
    ) -> None:
        """Receive every part into its place in the receive buffer, and relay it from there."""
        self._collect(sequence, header, (0,) * self._size)
        parts = list(targets)
        for rank, part in zip(self._ranks_by_leader[0], local, strict=True):
            parts[rank] = part
        self._relay(sequence, parts, copy)

    def broadcast_stream(self, sequence: int, header: bytes, buffer: memoryview, root: int) -> None:
        """Receive the root's bytes, and relay them while they arrive."""
        self._collect(sequence, header, (0,) * self._size)
        self._relay(sequence, [buffer if rank == root else EMPTY for rank in range(self._size)], DeferredCopy())

    def reduce_stream(self, sequence: int, header: bytes, send: Array, recv: Array, op: ReduceOp) -> None:
        """Receive operands, fold and send results concurrently, chunk by chunk through a bounded window."""
        self._collect(sequence, header, (0,) * self._size)
        if not self._channels:
            fold([send.reshape(-1)], recv.reshape(-1), op)
            return
        window = self._window
        window.start(send.reshape(-1), recv.reshape(-1), op)
        result = [as_bytes(recv)]
        readers = {rank: DataReader(channel, send.nbytes) for rank, channel in self._channels.items()}
        relay = self._make_relay(sequence, dict.fromkeys(self._channels, result))
        # Operands arrive, chunks are folded and results leave in one loop; sleep only when none of the three could
        # proceed. Receiving everything first would need memory for all operands, and leave one direction idle.
        while readers or relay.is_writing:
            moved_bytes = 0
            for rank, reader in list(readers.items()):
                moved_bytes += window.read(rank, reader)
                if not reader.remaining:
                    del readers[rank]
            moved_bytes += window.fold_complete()
            moved_bytes += relay.write((window.folded_bytes,))
            if not moved_bytes and (readers or relay.is_writing):
                # A worker that is ahead by a whole window is not polled: its unread bytes would end every sleep at once
                # while we wait for the slowest worker.
                waiting = {rank: reader for rank, reader in readers.items() if window.has_room(rank)}
                relay.sleep(waiting, (window.folded_bytes,))

    def _collect(self, sequence: int, header: bytes, payload_sizes: Sequence[int]) -> None:
        """Receive every worker's call, with its small payload; raise if one differs from ours.

        payload_sizes: the sizes by rank, in bytes.
        """
        for leader, inbox in self._inboxes.items():
            inbox.expect(sum([payload_sizes[rank] for rank in self._ranks_by_leader[leader]]))
        self._missing = set(self._inboxes)
        if not self._receive_calls_in_order(header):
            waiter = self.make_waiter(sequence)
            while not self._receive_calls(header):
                waiter.sleep({self._channels[rank].fd: READ for rank in self._missing}, self._missing)
        # All calls have arrived, but a rank may have aborted since it sent its own; then no rank may get data.
        self.monitor.read_pending_frames(sequence)

    def _receive_calls_in_order(self, header: bytes) -> bool:
        """Receive the calls with one system call per worker, the common case; False if some took RECEIVE_TIMEOUT_S."""
        for rank, inbox in self._inboxes.items():
            if not inbox.await_call():
                return False
            self._check_call(rank, header, inbox)
        return True

    def _receive_calls(self, header: bytes) -> bool:
        """Read from every worker that is still missing; True when none is. A call that differs fails at once."""
        for rank in tuple(self._missing):
            inbox = self._inboxes[rank]
            inbox.advance()
            self._check_call(rank, header, inbox)
        return not self._missing

    def _check_call(self, rank: int, header: bytes, inbox: Inbox) -> None:
        if not inbox.matches(header):
            self._fail_mismatch(rank, header, inbox)
        if inbox.received == inbox.expected_bytes:
            self._missing.discard(rank)

    def _fail_mismatch(self, rank: int, header: bytes, inbox: Inbox) -> None:
        own_call, other_call = CallHeader.parse(header), CallHeader.parse(inbox.view[:HEADER_BYTES])
        sequences = dict.fromkeys((own_call.sequence, other_call.sequence))  # only one if they are equal
        numbers = " and ".join(f"#{sequence}" for sequence in sequences)
        text = f"rank 0: {own_call} vs rank {rank}: {other_call} at call {numbers}"
        # The two ranks may be at different calls; nothing can complete from the earlier one on.
        first = min(own_call.sequence, other_call.sequence)
        failure = FailureRecord(FailureKind.MISMATCH, first, (self._me, inbox.channel.peer), text)
        raise WorldFailedError(self.monitor.broadcast_failure(failure))

    def _reply(self, sequence: int, rank: int, message: bytes) -> None:
        self._send_message(self._channels[rank], message, sequence, (rank,))

    def _relay(self, sequence: int, parts: Sequence[memoryview], copy: DeferredCopy) -> None:
        """Receive all parts, and send each to all other nodes."""
        # By rank, how many bytes of its part have arrived: advanced by the readers, followed by the writers.
        local_ranks = self._ranks_by_leader[0]
        available = [len(part) if rank in local_ranks else 0 for rank, part in enumerate(parts)]
        readers = {
            leader: NodeReader(inbox.channel, {rank: parts[rank] for rank in self._ranks_by_leader[leader]}, available)
            for leader, inbox in self._inboxes.items()
            if any(parts[rank] for rank in self._ranks_by_leader[leader])
        }
        parts_for = {leader: self._parts_for_node(parts, leader) for leader in self._inboxes}
        self._make_relay(sequence, parts_for).run(readers, available, copy)

    def _make_relay(self, sequence: int, parts_for: Mapping[int, Sequence[memoryview | None]]) -> Relay:
        waiter = self.make_waiter(sequence)

        def sleep(interests: Mapping[int, int], missing: set[int]) -> None:
            self._missing = missing
            waiter.sleep(interests, missing)

        return Relay(self._channels, sequence, parts_for, sleep)

    def _split_by_rank(self, local: memoryview, sizes: Sequence[int]) -> list[memoryview]:
        """Split our own payload and the small ones that have arrived into the parts of single ranks."""
        parts = [EMPTY] * self._size
        payloads = {0: local} | {leader: inbox.payload for leader, inbox in self._inboxes.items()}
        for leader, payload in payloads.items():
            offset = 0
            for rank in self._ranks_by_leader[leader]:
                parts[rank] = payload[offset : offset + sizes[rank]]
                offset += sizes[rank]
        return parts

    def _parts_for_node(self, parts: Sequence[memoryview], leader: int) -> list[memoryview | None]:
        """Return every rank's part, by rank; None for ranks of the leader's own node, which has them already."""
        ranks = self._ranks_by_leader[leader]
        return [None if rank in ranks else part for rank, part in enumerate(parts)]

    def _use_leaders(self, nodes: Sequence[Sequence[int]]) -> None:
        # The channels of ranks that are not leaders stay open but unused: their leader sends for them.
        self._ranks_by_leader = {ranks[0]: tuple(ranks) for ranks in nodes}
        self._inboxes = {leader: self._inboxes[leader] for leader in self._ranks_by_leader if leader}
        # Before `missing`, which the monitor's thread calls for its next heartbeat: until now the monitor knows no
        # group of rank 0, and looking it up would end that thread by a KeyError.
        self.monitor.ranks_by_leader = self._ranks_by_leader
        self.progress.missing = lambda: self.monitor.late(self._ranks_by_leader, self.progress.started)

    def watch_ring(self, sequence: int, waiter: Waiter) -> CoordinatorWatch:
        """Watch the other hosts while data moves in the ring."""
        watch = CoordinatorWatch({leader: self._channels[leader] for leader in self._inboxes}, sequence, waiter)
        self._missing = watch.missing
        return watch

    def local_address(self, peer: int) -> Sequence[object]:
        """Return the address at which the peer has reached the coordinator."""
        address: Sequence[object] = self._channels[peer].sock.getsockname()
        return address

    def make_waiter(self, sequence: int) -> CoordinatorWaiter:
        """Make the waiter of one call."""
        return CoordinatorWaiter(self.monitor, sequence, self.wait_policy)

    def _close_channels(self) -> None:
        for channel in self._channels.values():
            channel.close()
