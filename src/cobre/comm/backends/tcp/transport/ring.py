"""Large payloads from host to host in a ring, without passing through the coordinator (docs/explanation/tcp-ring.md).

Every host sends to its right neighbour and receives from its left one, both at once. In a gather it sends its own block
and then forwards every block that arrives, except its right neighbour's own: each link carries each block at most once.
In a broadcast the root's block goes around until it has reached the host before the root. Bytes are forwarded as they
arrive, not block by block, so that unequal blocks cost no more than equal ones.

The coordinator has compared the calls before (`StarTransport.gather_inline`), so that nothing is sent for calls that
differ. It watches its connection to every host until that host is DONE: the death of a host is found as quickly as in
the star, and once the coordinator has completed a call, so can all others, even if a rank dies then.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from cobre.comm.backends.tcp.transport.channel import MAX_VIEWS, Channel
from cobre.comm.backends.tcp.transport.star import SMALL_BYTES, DeferredCopy, StarTransport, Watch
from cobre.comm.backends.tcp.transport.waiting import READ, WRITE, Waiter
from cobre.comm.backends.tcp.wire.protocol import (
    DONE_BYTES,
    MAX_FRAME_DATA_BYTES,
    ProtocolError,
    done_frame,
    ring_header,
)

RING_BYTES = SMALL_BYTES + 1  # more than travels with the call itself; 64 KB are faster in the ring than in the star
MEDIUM_BYTES = 256 * 1024  # of all hosts together; up to here a copy costs less than the system calls that it saves
MIN_HOSTS = 3  # with two hosts the star's one connection carries no more than a ring's two

Block = Sequence[memoryview]
"""The data of one host: the parts of its ranks, in their order, wherever they are in this rank's memory."""


class CoordinatorWatch(Watch):
    """Collector of DONE from all other hosts; the end of a host's connection before that is a failure."""

    def __init__(self, channels: Mapping[int, Channel], sequence: int, waiter: Waiter) -> None:
        self._expected = done_frame(sequence)
        self._waiter = waiter
        self._channels = {channel.fd: (leader, channel) for leader, channel in channels.items()}
        self._received = {fd: bytearray() for fd in self._channels}
        self.descriptors = self._received.keys()
        self.missing: set[int] = set(channels)

    def advance(self, ready: Collection[int]) -> None:
        """Read from the hosts that have sent something."""
        for fd in [fd for fd in ready if fd in self._received]:
            self._read(fd, self._channels[fd][1].receive)

    def finish(self) -> None:
        """Wait for the hosts that are not done yet."""
        # One blocking read for each, the common case; a host that is late is left to the waiter, which watches all.
        for fd in list(self._received):
            if not self._read(fd, self._channels[fd][1].await_bytes):
                break
        while self._received:
            self.advance(self._waiter.sleep(dict.fromkeys(self.descriptors, READ), self.missing))

    def _read(self, fd: int, receive: Callable[[memoryview], int]) -> bool:
        """Receive from one host; return whether it is done."""
        leader, channel = self._channels[fd]
        received, piece = self._received[fd], bytearray(DONE_BYTES)
        # Never more than this frame: the host's next call may follow at once.
        room = memoryview(piece)[: DONE_BYTES - len(received)]
        received += room[: receive(room)]
        if len(received) < DONE_BYTES:
            return False
        if received != self._expected:
            raise ProtocolError(f"{channel.peer} completed another call")
        del self._received[fd]
        self.missing.discard(leader)
        return True


class WorkerWatch(Watch):
    """Watch of a worker: notices the death of the coordinator, and reports to it when this host is done."""

    missing = (0,)

    def __init__(self, channel: Channel, send_done: Callable[[], None]) -> None:
        self._channel = channel
        self._send_done = send_done
        self.descriptors = (channel.fd,)

    def advance(self, ready: Collection[int]) -> None:
        """Raise if the coordinator's connection has ended: it sends nothing while data moves in the ring."""
        if self._channel.fd in ready and self._channel.receive(memoryview(bytearray(1))):
            raise ProtocolError("the coordinator sent data in the middle of a call")

    def finish(self) -> None:
        """Tell the coordinator, and do not wait for it."""
        self._send_done()


class Ring:
    """This host's place in the ring.

    nodes: the ranks of all hosts, in the order of the ring. position: of this host among them.
    """

    def __init__(
        self,
        transport: StarTransport,
        left: Channel,
        right: Channel,
        nodes: Sequence[Sequence[int]],
        position: int,
    ) -> None:
        self._transport = transport
        self._left = left
        self._right = right
        self._nodes = nodes
        self._position = position

    def gather_blocks(
        self, sequence: int, local: Block, block_of: Callable[[Sequence[int]], Block], copy: DeferredCopy
    ) -> None:
        """Send this host's block and receive all others. block_of: where the block of a host's ranks goes."""
        size = len(self._nodes)
        blocks = [
            split_into_frames(sequence, block_of(self._nodes[(self._position - step) % size]))
            for step in range(1, size)
        ]
        incoming = [item for block in blocks for item in block]
        # The last block to arrive is the right neighbour's own.
        self._move(sequence, split_into_frames(sequence, local), incoming, sum(map(len, blocks[:-1])), copy)

    def broadcast_block(self, sequence: int, buffer: memoryview, root: int) -> None:
        """Send the root's bytes, or receive them and forward them, unless the next host is the root's."""
        root_position = next(position for position, ranks in enumerate(self._nodes) if root in ranks)
        items = split_into_frames(sequence, (buffer,))
        if root_position == self._position:
            self._move(sequence, items, [], 0, DeferredCopy())
        else:
            is_last = (self._position + 1) % len(self._nodes) == root_position
            self._move(sequence, [], items, 0 if is_last else len(items), DeferredCopy())

    def _move(
        self,
        sequence: int,
        local: Sequence[memoryview | bytes],
        incoming: Sequence[memoryview | bytes],
        forwarded: int,
        copy: DeferredCopy,
    ) -> None:
        """Send `local` and the first `forwarded` items that arrive, while all of `incoming` is received."""
        is_medium = sum(map(len, incoming)) + sum(map(len, local)) <= MEDIUM_BYTES
        reader = StagedReader(self._left, incoming) if is_medium else RingReader(self._left, incoming)
        writer = RingWriter(self._right, local, reader.first_items(forwarded))
        if is_medium:
            # Blocking reads: half the system calls. What does not come at once is left to the loop below, which watches
            # the star and waits for room in the socket's buffer.
            writer.flush(0)
            while not (reader.is_done or writer.has_work(reader.received)) and reader.wait():
                writer.flush(reader.received)
        waiter = self._transport.make_waiter(sequence)
        watch = self._transport.watch_ring(sequence, waiter)
        left, right = self._left.fd, self._right.fd
        ready: Collection[int] = (left, right)
        while True:
            # One pass per wake-up: both ends stop at the first short read or write, so that trying again at once would
            # mostly cost a system call and an exception.
            moved_bytes = reader.advance() if left in ready else 0
            moved_bytes += writer.flush(reader.received)
            if reader.is_done and writer.is_done:
                break
            if not moved_bytes and copy.advance():
                continue
            # An idle socket is always writable: only if there is something to send does it end a sleep.
            interests = dict.fromkeys(watch.descriptors, READ)
            if not reader.is_done:
                interests[left] = READ
            if writer.has_work(reader.received):
                interests[right] = WRITE
            ready = waiter.sleep(interests, watch.missing)
            watch.advance(ready)
        reader.finish()
        copy.finish()
        watch.finish()


class RingReader:
    """Receiver of a known sequence of headers and data from the left neighbour.

    expected: headers as bytes, which the received ones must equal, and writable memory for data. Nothing is written to
    a block before its header has been compared. items: the memory of all of them, in order. received: bytes so far.
    """

    def __init__(self, channel: Channel, expected: Sequence[memoryview | bytes]) -> None:
        self._channel = channel
        self._expected = expected
        self.items = [memoryview(bytearray(len(item))) if isinstance(item, bytes) else item for item in expected]
        self.received = 0
        self._index = 0
        self._rest = self.items[0] if self.items else memoryview(b"")

    @property
    def is_done(self) -> bool:
        """Whether everything has arrived."""
        return self._index == len(self.items)

    def first_items(self, count: int) -> list[memoryview]:
        """Return the memory of the first items."""
        return self.items[:count]

    def advance(self) -> int:
        """Receive what has arrived; return the number of bytes."""
        before = self.received
        while self._index < len(self.items):
            received = self._channel.receive(self._rest)
            self.received += received
            if received < len(self._rest):
                # Nothing more has arrived: asking again would cost a system call and an exception.
                self._rest = self._rest[received:]
                break
            self._complete()
        return self.received - before

    def _complete(self) -> None:
        expected = self._expected[self._index]
        if isinstance(expected, bytes) and self.items[self._index] != expected:
            raise ProtocolError(f"{self._channel.peer} sent data of another call")
        self._index += 1
        if self._index < len(self.items):
            self._rest = self.items[self._index]

    def wait(self) -> int:
        """Wait for some bytes, RECEIVE_TIMEOUT_S at most; return their number, 0 if none have arrived."""
        return 0

    def finish(self) -> None:
        """Copy to its place what was received elsewhere."""


class StagedReader(RingReader):
    """Receiver of medium payloads into a staging buffer: one read for all that has arrived, and a copy at the end."""

    def __init__(self, channel: Channel, expected: Sequence[memoryview | bytes]) -> None:
        self._channel = channel
        self._expected = expected
        self._memory = memoryview(bytearray(sum(map(len, expected))))
        self.received = 0

    @property
    def is_done(self) -> bool:
        """Whether everything has arrived."""
        return self.received == len(self._memory)

    def first_items(self, count: int) -> list[memoryview]:
        """Return the memory of the first items, in one piece."""
        return [self._memory[: sum(map(len, self._expected[:count]))]]

    def advance(self) -> int:
        """Receive what has arrived; return the number of bytes."""
        return 0 if self.is_done else self._count(self._channel.receive(self._memory[self.received :]))

    def wait(self) -> int:
        """Wait for some bytes, RECEIVE_TIMEOUT_S at most; return their number, 0 if none have arrived."""
        return self._count(self._channel.await_bytes(self._memory[self.received :]))

    def _count(self, received: int) -> int:
        self.received += received
        return received

    def finish(self) -> None:
        """Compare the headers, and copy all data to its place."""
        pieces, offset = [], 0
        for expected in self._expected:
            pieces.append(self._memory[offset : offset + len(expected)])
            offset += len(expected)
        pairs = list(zip(self._expected, pieces, strict=True))
        if any(isinstance(expected, bytes) and expected != piece for expected, piece in pairs):
            raise ProtocolError(f"{self._channel.peer} sent data of another call")
        for expected, piece in pairs:
            if isinstance(expected, memoryview):
                expected[:] = piece


class RingWriter:
    """Sender of this host's own items to the right neighbour, and then of the items that its reader receives."""

    def __init__(self, channel: Channel, local: Sequence[memoryview | bytes], forwarded: Sequence[memoryview]) -> None:
        self._channel = channel
        self._items = [*(memoryview(item) for item in local), *forwarded]
        self._local_bytes = sum(map(len, local))
        self._total = self._local_bytes + sum(map(len, forwarded))
        self._sent = 0
        self._index = 0
        self._offset = 0  # in the item of that index

    @property
    def is_done(self) -> bool:
        """Whether the kernel has taken everything."""
        return self._sent == self._total

    def has_work(self, received: int) -> bool:
        """Return whether there is something to send. received: bytes that have arrived at the reader."""
        return self._sent < min(self._total, self._local_bytes + received)

    def flush(self, received: int) -> int:
        """Send what there is, as far as the socket takes it; return the number of bytes."""
        before = self._sent
        while self.has_work(received):
            views = self._next_views(self._local_bytes + received - self._sent)
            sent = self._channel.send(views)
            self._advance(sent)
            if sent < sum(map(len, views)):
                break  # the socket buffer is full
        return self._sent - before

    def _next_views(self, limit: int) -> list[memoryview]:
        """Return the next views to send, of at most `limit` bytes in all."""
        views, offset = [], self._offset
        for item in self._items[self._index : self._index + MAX_VIEWS]:
            view = item[offset : offset + limit]
            views.append(view)
            limit -= len(view)
            offset = 0
            if limit <= 0:
                break
        return views

    def _advance(self, sent: int) -> None:
        self._sent += sent
        self._offset += sent
        while self._index < len(self._items) and self._offset >= len(self._items[self._index]):
            self._offset -= len(self._items[self._index])
            self._index += 1


def split_into_frames(sequence: int, block: Iterable[memoryview]) -> list[memoryview | bytes]:
    """Split a block into RING frames of at most MAX_FRAME_DATA_BYTES; the same on all hosts, whatever its parts."""
    frames: list[list[memoryview]] = []
    room = 0
    for part in block:
        while len(part):
            if not room:
                frames.append([])
                room = MAX_FRAME_DATA_BYTES
            frames[-1].append(part[:room])
            room -= len(frames[-1][-1])
            part = part[len(frames[-1][-1]) :]  # noqa: PLW2901 - the rest of it
    items: list[memoryview | bytes] = []
    for views in frames:
        items += [ring_header(sequence, sum(map(len, views))), *views]
    return items
