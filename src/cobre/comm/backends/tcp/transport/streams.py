"""Large payloads on a channel: sent and received piece by piece, as far as the socket allows, without copies.

Nothing here blocks. The callers poll several channels and move whatever can move.
"""

from collections import deque
from collections.abc import Mapping, Sequence

from cobre.comm.backends.tcp.transport.channel import MAX_VIEWS, Channel
from cobre.comm.backends.tcp.wire.protocol import (
    GO_HEADER,
    MAX_FRAME_DATA_BYTES,
    PART_HEADER,
    PREFIX_BYTES,
    ProtocolError,
    data_header,
    go_header,
    parse_data_header,
    parse_part_header,
    part_header,
)


class Writer:
    """A queue of buffers to send, in order: views of memory of the caller, who must not change it until it is sent."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self._views: deque[memoryview] = deque()

    @property
    def is_idle(self) -> bool:
        """Whether the kernel has taken everything."""
        return not self._views

    def push(self, *pieces: bytes | memoryview) -> None:
        """Append buffers; they are not copied."""
        # Without empty ones: sending nothing returns 0, which `flush` would take for a full socket buffer.
        self._views.extend(memoryview(piece) for piece in pieces if len(piece))

    def push_data(self, payload: memoryview) -> None:
        """Append a payload, split into DATA frames."""
        for start in range(0, len(payload), MAX_FRAME_DATA_BYTES):
            piece = payload[start : start + MAX_FRAME_DATA_BYTES]
            self.push(data_header(len(piece)), piece)

    def flush(self) -> int:
        """Send as much as the socket takes; return the number of bytes."""
        total = 0
        # Until the kernel takes no more: stopping earlier would cost one poll per piece.
        while self._views:
            sent = self.channel.send([self._views[i] for i in range(min(MAX_VIEWS, len(self._views)))])
            if sent == 0:
                break
            total += sent
            self._drop(sent)
        return total

    def _drop(self, nbytes: int) -> None:
        while nbytes:
            first = self._views.popleft()
            if nbytes < len(first):
                self._views.appendleft(first[nbytes:])
                return
            nbytes -= len(first)


class RelayWriter:
    """Relay of the other ranks' data to one worker: GO, then each part as soon as a large enough piece has arrived."""

    def __init__(self, channel: Channel, sequence: int, parts: Sequence[memoryview | None], piece_bytes: int) -> None:
        self._writer = Writer(channel)
        # GO before any data: until it arrives the worker must not write to its caller's buffers.
        self._writer.push(go_header(sequence, 0))
        self._parts = {rank: part for rank, part in enumerate(parts) if part is not None and len(part)}
        self._sent = dict.fromkeys(self._parts, 0)
        self._piece_bytes = piece_bytes

    @property
    def is_done(self) -> bool:
        """Whether the kernel has taken everything."""
        return not self._parts and self._writer.is_idle

    def has_work(self, available: Sequence[int]) -> bool:
        """Return whether there is something to send now.

        Queues the next pieces. available: bytes arrived so far, by rank.
        """
        # Only after the last pieces are out: what arrives in the meantime makes the next ones larger.
        if self._writer.is_idle:
            for rank in list(self._parts):
                self._enqueue(rank, available[rank])
        return not self._writer.is_idle

    def flush(self) -> int:
        """Send as much as the socket takes; return the number of bytes."""
        return self._writer.flush()

    def _enqueue(self, rank: int, available: int) -> None:
        part, start = self._parts[rank], self._sent[rank]
        end = min(available, start + MAX_FRAME_DATA_BYTES)
        if end - start < self._piece_bytes and end < len(part):
            return  # a small piece costs as many system calls as a large one
        self._writer.push(part_header(rank, start, end - start), part[start:end])
        self._sent[rank] = end
        if end == len(part):
            del self._parts[rank]


class DataReader:
    """Receiver of one rank's payload, a sequence of DATA frames, into the memory that each `read` is given."""

    def __init__(self, channel: Channel, nbytes: int) -> None:
        self.channel = channel
        self.remaining = nbytes
        self._in_frame = 0
        self._header = bytearray(PREFIX_BYTES)
        self._header_bytes = 0

    def read(self, view: memoryview) -> int:
        """Receive some bytes into the view; return their number, 0 if none have arrived."""
        if self._in_frame == 0 and not self._read_header():
            return 0
        # No further than this frame: the header of the next one must not land in the caller's buffer.
        received = self.channel.receive(view[: self._in_frame])
        self._in_frame -= received
        self.remaining -= received
        return received

    def _read_header(self) -> bool:
        # Even a prefix of five bytes may arrive in two reads.
        self._header_bytes += self.channel.receive(memoryview(self._header)[self._header_bytes :])
        if self._header_bytes < PREFIX_BYTES:
            return False
        self._header_bytes = 0
        self._in_frame = parse_data_header(self._header, self.remaining)
        return True


class NodeReader:
    """Receiver of the payloads of one node's ranks, one after the other.

    targets: memory for the payload of each rank. available: bytes received so far, by rank; advanced here.
    """

    def __init__(self, channel: Channel, targets: Mapping[int, memoryview], available: list[int]) -> None:
        self._targets = deque((rank, target) for rank, target in targets.items() if len(target))
        self._available = available
        self._channel = channel
        self._reader = self._next()

    @property
    def is_done(self) -> bool:
        """Whether everything has arrived."""
        return not self._targets

    def advance(self) -> int:
        """Receive what has arrived; return the number of bytes."""
        total = 0
        while self._targets:
            rank, target = self._targets[0]
            received = self._reader.read(target[self._available[rank] :])
            self._available[rank] += received
            total += received
            if self._reader.remaining:
                break  # nothing more has arrived: the parts come one after the other on one connection
            self._targets.popleft()
            self._reader = self._next()
        return total

    def _next(self) -> DataReader:
        return DataReader(self._channel, len(self._targets[0][1]) if self._targets else 0)


class ReplyReader:
    """Receiver of GO, and then of the other ranks' parts into their targets; None for parts that are not sent."""

    def __init__(self, channel: Channel, sequence: int, targets: Sequence[memoryview | None]) -> None:
        self._channel = channel
        self._targets = targets
        self._sizes = [0 if target is None else len(target) for target in targets]
        self._remaining = sum(self._sizes)
        self._go = go_header(sequence, 0)
        self._header = bytearray(GO_HEADER.size)
        self._header_bytes = 0
        self._body: memoryview | None = None
        self.has_go = False

    @property
    def is_done(self) -> bool:
        """Whether everything has arrived."""
        return self.has_go and self._remaining == 0

    def advance(self) -> int:
        """Receive what has arrived; return the number of bytes."""
        total = 0
        while not self.is_done:
            received = self._read_header() if self._body is None else self._read_body(self._body)
            if received == 0:
                break
            total += received
        return total

    def _read_header(self) -> int:
        received = self._channel.receive(memoryview(self._header)[self._header_bytes :])
        self._header_bytes += received
        if self._header_bytes == len(self._header):
            self._handle_header()
        return received

    def _handle_header(self) -> None:
        if not self.has_go:
            if self._header != self._go:
                raise ProtocolError("the coordinator replied to another call")
            self.has_go = True
            self._header = bytearray(PART_HEADER.size)
        else:
            rank, offset, nbytes = parse_part_header(self._header, self._sizes)
            target = self._targets[rank]
            assert target is not None  # noqa: S101 - a source without a target has size 0, which no part fits
            self._body = target[offset : offset + nbytes]
        self._header_bytes = 0

    def _read_body(self, body: memoryview) -> int:
        received = self._channel.receive(body)
        self._remaining -= received
        self._body = body[received:] if received < len(body) else None
        return received
