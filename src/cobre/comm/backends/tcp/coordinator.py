"""The coordinator's side of the collectives: rank 0 hears all calls, compares them, and only then delivers."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from cobre._native import fold
from cobre.comm.backends.tcp.calls import CALL_BYTES, HEAD_BYTES, SIGNATURE_AT, Call
from cobre.comm.backends.tcp.channel import Channel, LinkLostError
from cobre.comm.backends.tcp.failures import WorldFailedError
from cobre.comm.backends.tcp.fields import ProtocolError
from cobre.comm.backends.tcp.liveness_monitor import CoordinatorMonitor
from cobre.comm.backends.tcp.protocol import PREFIX, FailureKind, Tag, Verdict, go_head
from cobre.comm.backends.tcp.reduction import ReductionWindow
from cobre.comm.backends.tcp.streams import DataReader, PartsReader, PartWriter, Writer
from cobre.comm.backends.tcp.transport import NOTHING, SMALL_BYTES, DeferredCopy, Transport, as_bytes, view_of
from cobre.comm.backends.tcp.waiting import READ, WRITE, CoordinatorWaiter, WaitPolicy
from cobre.comm.errors import Peer
from cobre.comm.types import Array, ReduceOp

ALIGNMENT = 64  # bytes; operands are folded where they arrived, and every numeric dtype is aligned there
PIECE_BYTES = 512 * 1024  # pieces that are passed on before a rank's part is complete are at least this large


class Inbox:
    """One worker's call as it arrives: its head, and a small payload at an aligned address behind it.

    Kept from call to call, so that a small collective allocates nothing.
    """

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.view = _aligned(SMALL_BYTES)
        self.expect(0)

    def expect(self, payload_bytes: int) -> None:
        """Make ready for the next call, whose payload has this many bytes if the worker calls what we call."""
        self.received = 0
        self.wanted = HEAD_BYTES + payload_bytes
        if self.wanted > len(self.view):
            self.view = _aligned(payload_bytes)
        self._prefix = PREFIX.pack(CALL_BYTES + payload_bytes, Tag.CALL)

    def advance(self) -> None:
        """Read what has arrived; never blocks, never reads past this call."""
        self.received += self.channel.receive(self.view[self.received : self.wanted])

    def await_call(self) -> bool:
        """Wait for the whole call, RECEIVE_TIMEOUT_S at most; one of another length counts as not here yet."""
        # A blocking read that takes all bytes at once: for small calls it saves the poll before it.
        self.received = self.channel.await_bytes(self.view[: self.wanted])
        return self.received == self.wanted

    def agrees(self, head: bytes) -> bool:
        """Whether the signature, once it is here, is the same as ours."""
        if self.received < HEAD_BYTES:
            return True
        # The signature before the length: ranks that call different things mostly differ in length too, and a mismatch
        # of calls is the better message.
        if self.view[SIGNATURE_AT:HEAD_BYTES] != head[SIGNATURE_AT:]:
            return False
        if self.view[: len(self._prefix)] != self._prefix:
            raise ProtocolError(f"{self.channel.peer} sent a call with a payload of another length")
        return True

    @property
    def payload(self) -> memoryview:
        """The small payload behind the head."""
        return self.view[HEAD_BYTES : self.wanted]


def _aligned(payload_bytes: int) -> memoryview:
    """Memory for a head and a payload whose first byte is aligned."""
    memory = np.zeros(2 * ALIGNMENT + HEAD_BYTES + payload_bytes, np.uint8)
    start = -(memory.ctypes.data + HEAD_BYTES) % ALIGNMENT
    return view_of(memory)[start : start + HEAD_BYTES + payload_bytes]


class CoordinatorTransport(Transport):
    """A data connection to every worker."""

    monitor: CoordinatorMonitor

    def __init__(
        self,
        channels: Mapping[int, Channel],
        me: Peer,
        monitor: CoordinatorMonitor,
        wait_policy: WaitPolicy,
    ) -> None:
        super().__init__(monitor, monitor.progress, wait_policy)
        self._channels = channels
        self._me = me
        self._size = len(channels) + 1
        self._inboxes = {rank: Inbox(channel) for rank, channel in sorted(channels.items())}
        self._groups: Mapping[int, Sequence[int]] = {rank: (rank,) for rank in range(self._size)}
        self._window = ReductionWindow(self._size)
        # Changed by the caller's thread, read by the monitor's for heartbeats. Hence the tuple below, made in one step:
        # a set that changes while Python code iterates over it raises.
        self._missing: set[int] = set()
        self.progress.missing = lambda: tuple(self._missing)

    def explain(self, error: LinkLostError) -> Verdict:
        """Why a data connection ended; everybody is told."""
        return self.monitor.declare(super().explain(error))

    def gather(self, sequence: int, head: bytes, own: memoryview, sizes: Sequence[int]) -> list[memoryview]:
        """Collect all workers' bytes, give each the others'."""
        # Everything is here and agreed upon before the first answer leaves (clause 2).
        self._collect(sequence, head, sizes)
        parts = self._by_rank(own, sizes)
        for leader in self._inboxes:
            ranks = self._groups[leader]
            others = b"".join([part for rank, part in enumerate(parts) if rank not in ranks])
            self._reply(sequence, leader, go_head(sequence, len(others)) + others)
        return parts

    def reduce(self, sequence: int, head: bytes, send: Array, recv: Array, op: ReduceOp) -> None:
        """Collect the operands, fold in rank order, give all the result."""
        sizes = (recv.nbytes,) * self._size
        self._collect(sequence, head, sizes)
        result = recv.reshape(-1)
        if result.size:
            fold([np.frombuffer(part, recv.dtype) for part in self._by_rank(as_bytes(send), sizes)], result, op)
        self._reply_all(sequence, go_head(sequence, recv.nbytes) + as_bytes(recv))

    def broadcast(self, sequence: int, head: bytes, buffer: memoryview, root: int) -> None:
        """Take the root's bytes, give them to the others."""
        sizes = [len(buffer) if rank == root else 0 for rank in range(self._size)]
        self._collect(sequence, head, sizes)
        source = self._leader_of(root)
        if source:  # else the root is on this host, and its bytes are in the buffer
            buffer[:] = self._inboxes[source].payload
        message = go_head(sequence, len(buffer)) + buffer
        for leader in self._inboxes:
            self._reply(sequence, leader, go_head(sequence, 0) if leader == source else message)

    def gather_stream(
        self, sequence: int, head: bytes, own: Sequence[memoryview], places: Sequence[memoryview], copy: DeferredCopy
    ) -> None:
        """Receive every part into its place and pass it on from there."""
        self._collect(sequence, head, (0,) * self._size)
        parts = list(places)
        for rank, part in zip(self._groups[0], own, strict=True):
            parts[rank] = part
        self._relay(sequence, parts, copy)

    def broadcast_stream(self, sequence: int, head: bytes, buffer: memoryview, root: int) -> None:
        """Receive the root's bytes and pass them on while they arrive."""
        self._collect(sequence, head, (0,) * self._size)
        self._relay(sequence, [buffer if rank == root else NOTHING for rank in range(self._size)], DeferredCopy())

    def reduce_stream(self, sequence: int, head: bytes, send: Array, recv: Array, op: ReduceOp) -> None:
        """Receive, fold and send at once, chunk by chunk through a window."""
        self._collect(sequence, head, (0,) * self._size)
        if not self._channels:
            fold([send.reshape(-1)], recv.reshape(-1), op)
            return
        window = self._window
        window.start(send.reshape(-1), recv.reshape(-1), op)
        result = [as_bytes(recv)]
        readers = {rank: DataReader(channel, send.nbytes) for rank, channel in self._channels.items()}
        writers = self._part_writers(sequence, dict.fromkeys(self._channels, result))
        waiter = self._waiter(sequence)
        # Operands arrive, chunks are folded and results leave at the same time; sleep only when nothing could move.
        while readers or writers:
            moved = 0
            for rank, reader in list(readers.items()):
                moved += window.read(rank, reader)
                if not reader.remaining:
                    del readers[rank]
            moved += window.fold_complete()
            moved += self._write(writers, (window.folded_bytes,))
            if not moved and (readers or writers):
                # A worker that is ahead by a whole window is not polled: its bytes would end the sleep at once, again
                # and again, while the worker that is behind is waited for.
                waiting = {rank: reader for rank, reader in readers.items() if window.has_room(rank)}
                self._sleep(waiter, waiting, writers, (window.folded_bytes,))

    def _collect(self, sequence: int, head: bytes, payload_sizes: Sequence[int]) -> None:
        """Receive every worker's call, with its small payload; raise where one differs from ours.

        payload_sizes: by rank, in bytes.
        """
        for leader, inbox in self._inboxes.items():
            inbox.expect(sum([payload_sizes[rank] for rank in self._groups[leader]]))
        self._missing = set(self._inboxes)
        if not self._take_calls_in_turn(head):
            waiter = self._waiter(sequence)
            while not self._take_calls(head):
                waiter.sleep({self._channels[rank].fd: READ for rank in self._missing}, self._missing)
        # All calls are here, but a rank may have aborted since it sent its own; then nobody must get data.
        self.monitor.catch_up(sequence)

    def _take_calls_in_turn(self, head: bytes) -> bool:
        """The usual case, where all arrive within RECEIVE_TIMEOUT_S: one system call per worker. False: not all did."""
        for rank, inbox in self._inboxes.items():
            if not inbox.await_call():
                return False
            self._take_call(rank, head, inbox)
        return True

    def _take_calls(self, head: bytes) -> bool:
        """Read from every worker that is missing; True when none is. A call that differs fails at once."""
        for rank in tuple(self._missing):
            inbox = self._inboxes[rank]
            inbox.advance()
            self._take_call(rank, head, inbox)
        return not self._missing

    def _take_call(self, rank: int, head: bytes, inbox: Inbox) -> None:
        if not inbox.agrees(head):
            self._fail_mismatch(rank, head, inbox)
        if inbox.received == inbox.wanted:
            self._missing.discard(rank)

    def _fail_mismatch(self, rank: int, head: bytes, inbox: Inbox) -> None:
        ours, theirs = Call.parse(head), Call.parse(inbox.view[:HEAD_BYTES])
        number = f"#{ours.sequence}" if ours.sequence == theirs.sequence else f"#{ours.sequence} and #{theirs.sequence}"
        text = f"rank 0: {ours} vs rank {rank}: {theirs} at call {number}"
        # Two ranks may be at different calls: from the earlier one on nothing can complete.
        first = min(ours.sequence, theirs.sequence)
        verdict = Verdict(FailureKind.MISMATCH, first, (self._me, inbox.channel.peer), text)
        raise WorldFailedError(self.monitor.declare(verdict))

    def _reply_all(self, sequence: int, message: bytes) -> None:
        for rank in self._inboxes:
            self._reply(sequence, rank, message)

    def _reply(self, sequence: int, rank: int, message: bytes) -> None:
        channel = self._channels[rank]
        sent = channel.send_small(message)
        if sent == len(message):
            return
        # The worker is slow to read, or the answer larger than its socket buffer.
        writer, waiter = Writer(channel), self._waiter(sequence)
        writer.push(message[sent:])
        while not writer.is_idle:
            if not writer.flush():
                waiter.sleep({channel.fd: WRITE}, (rank,))

    def _relay(self, sequence: int, parts: Sequence[memoryview], copy: DeferredCopy) -> None:
        """Receive all parts and send each to everybody else, whatever is possible first.

        available: by rank, how many bytes of its part are here; the readers advance it, the writers follow.
        """
        here = self._groups[0]
        available = [len(part) if rank in here else 0 for rank, part in enumerate(parts)]
        readers = {
            leader: PartsReader(inbox.channel, {rank: parts[rank] for rank in self._groups[leader]}, available)
            for leader, inbox in self._inboxes.items()
            if any(parts[rank] for rank in self._groups[leader])
        }
        writers = self._part_writers(sequence, {leader: self._foreign(parts, leader) for leader in self._inboxes})
        waiter = self._waiter(sequence)
        while readers or writers:
            moved = self._read(readers) + self._write(writers, available)
            # Our own part is copied when the network has nothing to do, so it costs no time of its own.
            if not moved and (readers or writers) and not copy.advance():
                self._sleep(waiter, readers, writers, available)
        copy.finish()

    def _part_writers(
        self, sequence: int, parts_for: Mapping[int, Sequence[memoryview | None]]
    ) -> dict[int, PartWriter]:
        return {
            rank: PartWriter(self._channels[rank], sequence, parts, PIECE_BYTES) for rank, parts in parts_for.items()
        }

    def _read(self, readers: dict[int, PartsReader]) -> int:
        total = 0
        for leader, reader in list(readers.items()):
            total += reader.advance()
            if reader.is_done:
                del readers[leader]
        return total

    def _write(self, writers: dict[int, PartWriter], available: Sequence[int]) -> int:
        total = 0
        for rank, writer in list(writers.items()):
            while writer.has_work(available) and (sent := writer.flush()):
                total += sent
            if writer.is_done:
                del writers[rank]
        return total

    def _sleep(
        self,
        waiter: CoordinatorWaiter,
        readers: Collection[int],
        writers: Mapping[int, PartWriter],
        available: Sequence[int],
    ) -> None:
        interests = {self._channels[rank].fd: READ for rank in readers}
        for rank, writer in writers.items():
            # Only where there is something to send: an idle socket is always writable, and would never let us sleep.
            if writer.has_work(available):
                descriptor = self._channels[rank].fd
                interests[descriptor] = interests.get(descriptor, 0) | WRITE
        self._missing = {*readers, *writers}
        waiter.sleep(interests, self._missing)

    def _by_rank(self, own: memoryview, sizes: Sequence[int]) -> list[memoryview]:
        """The small payloads that have arrived, and our own, cut into every rank's."""
        parts = [NOTHING] * self._size
        payloads = {0: own} | {leader: inbox.payload for leader, inbox in self._inboxes.items()}
        for leader, payload in payloads.items():
            at = 0
            for rank in self._groups[leader]:
                parts[rank] = payload[at : at + sizes[rank]]
                at += sizes[rank]
        return parts

    def _foreign(self, parts: Sequence[memoryview], leader: int) -> list[memoryview | None]:
        """Every rank's part by rank; None for those that the leader's host has already."""
        ranks = self._groups[leader]
        return [None if rank in ranks else part for rank, part in enumerate(parts)]

    def _leader_of(self, rank: int) -> int:
        return next(leader for leader, ranks in self._groups.items() if rank in ranks)

    def _group(self, hosts: Sequence[Sequence[int]]) -> None:
        # The channels of ranks that are not leaders stay open, unused: nothing is sent on them any more.
        self._groups = {ranks[0]: tuple(ranks) for ranks in hosts}
        self._inboxes = {leader: self._inboxes[leader] for leader in self._groups if leader}
        self.monitor.groups = self._groups
        self.progress.missing = lambda: self.monitor.late(self._groups, self.progress.serving)

    def _waiter(self, sequence: int) -> CoordinatorWaiter:
        return CoordinatorWaiter(self.monitor, sequence, self._wait_policy)

    def _close_channels(self) -> None:
        for channel in self._channels.values():
            channel.close()
