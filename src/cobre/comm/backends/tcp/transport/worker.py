"""A worker's end of the collectives: everything goes to the coordinator and comes back from it."""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from cobre.comm.backends.tcp.liveness import WorkerMonitor, is_unreachable
from cobre.comm.backends.tcp.transport.channel import Channel, LinkLostError
from cobre.comm.backends.tcp.transport.ring import WorkerWatch
from cobre.comm.backends.tcp.transport.star import EMPTY, SMALL_BYTES, DeferredCopy, StarTransport
from cobre.comm.backends.tcp.transport.streams import ReplyReader, Writer
from cobre.comm.backends.tcp.transport.waiting import READ, WRITE, Waiter, WaitPolicy, WorkerWaiter
from cobre.comm.backends.tcp.wire.messages import FailureKind, FailureRecord
from cobre.comm.backends.tcp.wire.protocol import GO_HEADER, ProtocolError, done_frame, go_header
from cobre.comm.types import Array, ReduceOp
from cobre.comm.validation import as_bytes

COORDINATOR_RANKS = (0,)
# How long the end of a neighbour's connection waits for the coordinator's verdict, which takes up to DISCONNECT_GRACE_S
# itself. The whole time passes only if nothing but the connection was lost.
VERDICT_S = 2.0


class WorkerTransport(StarTransport):
    """The transport of a rank other than 0: one data connection, to the coordinator."""

    monitor: WorkerMonitor

    def __init__(
        self,
        rank: int,
        size: int,
        channel: Channel,
        monitor: WorkerMonitor,
        wait_policy: WaitPolicy,
    ) -> None:
        super().__init__(monitor, wait_policy)
        self._local_ranks: tuple[int, ...] = (rank,)  # the ranks for which this one sends
        self._size = size
        self._channel = channel
        self._reply_buffer = memoryview(bytearray(GO_HEADER.size + SMALL_BYTES))

    def gather_inline(self, sequence: int, header: bytes, local: memoryview, sizes: Sequence[int]) -> list[memoryview]:
        """Send this node's bytes and receive all others."""
        reply = self._request(sequence, header, local, sum(sizes) - len(local))
        parts, offset, local_offset = [], 0, 0
        for rank, nbytes in enumerate(sizes):
            if rank in self._local_ranks:
                parts.append(local[local_offset : local_offset + nbytes])
                local_offset += nbytes
                continue
            parts.append(reply[offset : offset + nbytes])
            offset += nbytes
        return parts

    def reduce_inline(self, sequence: int, header: bytes, send: Array, recv: Array, op: ReduceOp) -> None:
        """Send this node's operands and receive the result."""
        as_bytes(recv)[:] = self._request(sequence, header, as_bytes(send), recv.nbytes)

    def broadcast_inline(self, sequence: int, header: bytes, buffer: memoryview, root: int) -> None:
        """Send the root's bytes, or receive them."""
        if root in self._local_ranks:
            # The root waits for GO too: until then another rank may turn out to have made a different call.
            self._request(sequence, header, buffer, 0)
        else:
            buffer[:] = self._request(sequence, header, EMPTY, len(buffer))

    def gather_stream(
        self,
        sequence: int,
        header: bytes,
        local: Sequence[memoryview],
        targets: Sequence[memoryview],
        copy: DeferredCopy,
    ) -> None:
        """Send this node's parts while the others arrive."""
        others = [None if rank in self._local_ranks else target for rank, target in enumerate(targets)]
        self._stream(sequence, header, local, others, copy)

    def reduce_stream(self, sequence: int, header: bytes, send: Array, recv: Array, op: ReduceOp) -> None:
        """Send this rank's operand while the first results arrive."""
        self._stream(sequence, header, (as_bytes(send),), [as_bytes(recv)], DeferredCopy())

    def broadcast_stream(self, sequence: int, header: bytes, buffer: memoryview, root: int) -> None:
        """Send the root's bytes, or receive them."""
        is_root = root in self._local_ranks
        targets = [buffer if rank == root and not is_root else None for rank in range(self._size)]
        self._stream(sequence, header, (buffer,) if is_root else (), targets, DeferredCopy())

    def _request(self, sequence: int, header: bytes, payload: memoryview, reply_bytes: int) -> memoryview:
        """Send the call with its payload and return the reply, which is valid until the next request.

        Raises `ProtocolError` if the coordinator replies to another call.
        """
        self._send(sequence, header, payload)
        if len(self._reply_buffer) < GO_HEADER.size + reply_bytes:
            self._reply_buffer = memoryview(bytearray(GO_HEADER.size + reply_bytes))
        # Exactly as long as the reply: the next frame on this connection belongs to the next call.
        reply = self._reply_buffer[: GO_HEADER.size + reply_bytes]
        received = self._receive_some(sequence, reply)
        while received < len(reply):
            received += self._receive_some(sequence, reply[received:])
        if reply[: GO_HEADER.size] != go_header(sequence, reply_bytes):
            raise ProtocolError("the coordinator replied to another call")
        return reply[GO_HEADER.size :]

    def _send(self, sequence: int, header: bytes, payload: memoryview) -> None:
        # Joined, at the cost of a copy of at most SMALL_BYTES: one segment and one system call instead of two.
        message = header + payload if payload else header
        self._send_message(self._channel, message, sequence, COORDINATOR_RANKS)

    def _receive_some(self, sequence: int, view: memoryview) -> int:
        channel = self._channel
        if received := channel.await_bytes(view):
            return received
        # Only a wait that takes longer needs a waiter, which checks failure records, silence and limits between reads.
        waiter = self.make_waiter(sequence)
        while not (received := channel.await_bytes(view)):
            waiter.check(COORDINATOR_RANKS)
        return received

    def _stream(
        self,
        sequence: int,
        header: bytes,
        local: Sequence[memoryview],
        targets: Sequence[memoryview | None],
        copy: DeferredCopy,
    ) -> None:
        """Send and receive concurrently until both are done; nothing is written to `targets` before GO.

        Concurrently: the first results of a reduction come back while operands are still being sent, and a coordinator
        whose send buffer is full relays no further.
        """
        channel, waiter = self._channel, self.make_waiter(sequence)
        writer, reader = Writer(channel), ReplyReader(channel, sequence, targets)
        writer.push(header)
        for part in local:
            writer.push_data(part)
        while not (writer.is_idle and reader.is_done):
            # Our own part is copied only after GO: until then the caller's buffer must stay untouched (clause 2).
            if writer.flush() + reader.advance() or (reader.has_go and copy.advance()):
                continue
            interest = (0 if writer.is_idle else WRITE) | (0 if reader.is_done else READ)
            waiter.sleep({channel.fd: interest}, COORDINATOR_RANKS)
        copy.finish()

    def diagnose_disconnect(self, error: LinkLostError) -> FailureRecord:
        """Return why a connection ended.

        The coordinator knows more about a neighbour, and usually declares its failure before this rank has to.
        """
        sequence, monitor = self.progress.started, self.monitor
        if error.peer.rank == 0:
            return monitor.diagnose_disconnect(0, error.cause, sequence)
        deadline = time.monotonic() + VERDICT_S
        # A coordinator whose heartbeats are late may be the reason why the neighbour has left. Then the loss of the
        # coordinator is the cause, which is known at the timeout at the latest.
        while time.monotonic() < deadline or not (monitor.has_heartbeat(0) or 0 in monitor.departed):
            monitor.check(sequence)
            if (lost := monitor.lost_coordinator(sequence)) is not None:
                return lost
            time.sleep(0.002)
        cause = "closed" if error.cause is None else error.cause.strerror or str(error.cause)
        status = f"is alive, but rank {self._local_ranks[0]} has lost its connection to it ({cause})"
        kind = FailureKind.SILENT if is_unreachable(error.cause) else FailureKind.DIED
        return monitor.report_failure(FailureRecord(kind, sequence, (replace(error.peer, status=status),)))

    def watch_ring(self, sequence: int, _waiter: Waiter) -> WorkerWatch:
        """Watch the coordinator while data moves in the ring."""
        done = partial(self._send_message, self._channel, done_frame(sequence), sequence, COORDINATOR_RANKS)
        return WorkerWatch(self._channel, done)

    def local_address(self, _peer: int) -> Sequence[object]:
        """Return the address of this host towards the coordinator."""
        address: Sequence[object] = self._channel.sock.getsockname()
        return address

    def make_waiter(self, sequence: int) -> WorkerWaiter:
        """Make the waiter of one call."""
        return WorkerWaiter(self.monitor, sequence, self.wait_policy)

    def _use_leaders(self, nodes: Sequence[Sequence[int]]) -> None:
        self._local_ranks = next(tuple(ranks) for ranks in nodes if self._local_ranks[0] in ranks)

    def _close_channels(self) -> None:
        self._channel.close()
