"""A worker's side of the collectives: everything goes to the coordinator and comes back from it."""

from collections.abc import Sequence

from cobre.comm.backends.tcp.channel import Channel
from cobre.comm.backends.tcp.fields import ProtocolError
from cobre.comm.backends.tcp.liveness_monitor import WorkerMonitor
from cobre.comm.backends.tcp.protocol import GO_HEAD, go_head
from cobre.comm.backends.tcp.streams import PartReader, Writer
from cobre.comm.backends.tcp.transport import NOTHING, SMALL_BYTES, DeferredCopy, Transport, as_bytes
from cobre.comm.backends.tcp.waiting import READ, WRITE, WaitPolicy, WorkerWaiter
from cobre.comm.types import Array, ReduceOp

COORDINATOR = (0,)


class WorkerTransport(Transport):
    """One data connection, to the coordinator."""

    monitor: WorkerMonitor

    def __init__(
        self,
        rank: int,
        size: int,
        channel: Channel,
        monitor: WorkerMonitor,
        wait_policy: WaitPolicy,
    ) -> None:
        super().__init__(monitor, monitor.progress, wait_policy)
        self._own: tuple[int, ...] = (rank,)  # the ranks that this one speaks for
        self._size = size
        self._channel = channel
        self._inbox = memoryview(bytearray(GO_HEAD.size + SMALL_BYTES))

    def gather(self, sequence: int, head: bytes, own: memoryview, sizes: Sequence[int]) -> list[memoryview]:
        """Send our bytes, get all others' in rank order."""
        answer = self._ask(sequence, head, own, sum(sizes) - len(own))
        parts, at, own_at = [], 0, 0
        for rank, nbytes in enumerate(sizes):
            if rank in self._own:
                parts.append(own[own_at : own_at + nbytes])
                own_at += nbytes
                continue
            parts.append(answer[at : at + nbytes])
            at += nbytes
        return parts

    def reduce(self, sequence: int, head: bytes, send: Array, recv: Array, op: ReduceOp) -> None:
        """Send our operands, get the result."""
        as_bytes(recv)[:] = self._ask(sequence, head, as_bytes(send), recv.nbytes)

    def broadcast(self, sequence: int, head: bytes, buffer: memoryview, root: int) -> None:
        """Send or get the root's bytes."""
        if root in self._own:
            self._ask(sequence, head, buffer, 0)
        else:
            buffer[:] = self._ask(sequence, head, NOTHING, len(buffer))

    def gather_stream(
        self, sequence: int, head: bytes, own: Sequence[memoryview], places: Sequence[memoryview], copy: DeferredCopy
    ) -> None:
        """Send our parts while the others' arrive."""
        others = [None if rank in self._own else place for rank, place in enumerate(places)]
        self._stream(sequence, head, own, others, copy)

    def reduce_stream(self, sequence: int, head: bytes, send: Array, recv: Array, op: ReduceOp) -> None:
        """Send our operand while the first results arrive."""
        self._stream(sequence, head, (as_bytes(send),), [as_bytes(recv)], DeferredCopy())

    def broadcast_stream(self, sequence: int, head: bytes, buffer: memoryview, root: int) -> None:
        """Send or get the root's bytes."""
        is_root = root in self._own
        places = [buffer if rank == root and not is_root else None for rank in range(self._size)]
        self._stream(sequence, head, (buffer,) if is_root else (), places, DeferredCopy())

    def _ask(self, sequence: int, head: bytes, payload: memoryview, answer_bytes: int) -> memoryview:
        """One round trip: our call with its payload, and the answer, which is valid until the next one.

        Raises `ProtocolError` where the coordinator answers another call.
        """
        self._send(sequence, head, payload)
        if len(self._inbox) < GO_HEAD.size + answer_bytes:
            self._inbox = memoryview(bytearray(GO_HEAD.size + answer_bytes))
        # Exactly as long as the answer: the next frame on this connection belongs to the next call.
        inbox = self._inbox[: GO_HEAD.size + answer_bytes]
        received = self._receive_some(sequence, inbox)
        while received < len(inbox):
            received += self._receive_some(sequence, inbox[received:])
        if inbox[: GO_HEAD.size] != go_head(sequence, answer_bytes):
            raise ProtocolError("the coordinator answers another call")
        return inbox[GO_HEAD.size :]

    def _send(self, sequence: int, head: bytes, payload: memoryview) -> None:
        message = head + payload if payload else head
        sent = self._channel.send_small(message)
        if sent == len(message):
            return
        writer, waiter = Writer(self._channel), self._waiter(sequence)
        writer.push(message[sent:])
        while not writer.is_idle:
            if not writer.flush():
                waiter.sleep({self._channel.fd: WRITE}, COORDINATOR)

    def _receive_some(self, sequence: int, view: memoryview) -> int:
        channel = self._channel
        if received := channel.await_bytes(view):
            return received
        # Only a wait that lasts needs a waiter, which looks at verdicts, silence and limits between two reads.
        waiter = self._waiter(sequence)
        while not (received := channel.await_bytes(view)):
            waiter.check(COORDINATOR)
        return received

    def _stream(
        self,
        sequence: int,
        head: bytes,
        own: Sequence[memoryview],
        places: Sequence[memoryview | None],
        copy: DeferredCopy,
    ) -> None:
        """Send and receive at once, until both are done; only the coordinator's GO allows to write anywhere.

        At once: a connection has two directions, and the first results of a reduction come back while operands still
        leave.
        """
        channel, waiter = self._channel, self._waiter(sequence)
        writer, reader = Writer(channel), PartReader(channel, sequence, places)
        writer.push(head)
        for part in own:
            writer.push_data(part)
        while not (writer.is_idle and reader.is_done):
            # Our own part is copied only after GO: before it the caller's buffer must stay as it was (clause 2).
            if writer.flush() + reader.advance() or (reader.has_go and copy.advance()):
                continue
            interest = (0 if writer.is_idle else WRITE) | (0 if reader.is_done else READ)
            waiter.sleep({channel.fd: interest}, COORDINATOR)
        copy.finish()

    def _waiter(self, sequence: int) -> WorkerWaiter:
        return WorkerWaiter(self.monitor, sequence, self._wait_policy)

    def _group(self, hosts: Sequence[Sequence[int]]) -> None:
        self._own = next(tuple(ranks) for ranks in hosts if self._own[0] in ranks)

    def _close_channels(self) -> None:
        self._channel.close()
