"""Large payloads on a channel: sent and received piece by piece, as far as the socket allows, without copies.

Nothing here blocks. The callers poll several channels and move whatever can move.
"""

import select
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from cobre.comm.backends.tcp.liveness import CoordinatorMonitor, LivenessMonitor, WorkerMonitor, WorldFailedError
from cobre.comm.backends.tcp.transport.channel import MAX_VIEWS, Channel, SpinWait
from cobre.comm.backends.tcp.wire.messages import FailureKind, FailureRecord
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
from cobre.comm.endpoint import PROGRESS_S


class Writer:
    """A queue of buffers to send, in order. Holds views of the caller's memory, which must not change meanwhile."""

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
        """Send as much as the socket takes; the number of bytes."""
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


class PartWriter:
    """Relay of the other ranks' data to one worker: GO, then each part as soon as a large enough piece has arrived."""

    def __init__(self, channel: Channel, sequence: int, parts: Sequence[memoryview | None], piece_bytes: int) -> None:
        self._writer = Writer(channel)
        # GO before any data: until it arrives the worker must not write to its caller's buffers.
        self._writer.push(go_header(sequence, 0))
        self._parts = {source: part for source, part in enumerate(parts) if part is not None and len(part)}
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
        # Only after the last pieces are out: what arrives meanwhile makes the next ones larger.
        if self._writer.is_idle:
            for source in list(self._parts):
                self._enqueue(source, available[source])
        return not self._writer.is_idle

    def flush(self) -> int:
        """Send as much as the socket takes; the number of bytes."""
        return self._writer.flush()

    def _enqueue(self, source: int, available: int) -> None:
        part, start = self._parts[source], self._sent[source]
        end = min(available, start + MAX_FRAME_DATA_BYTES)
        if end - start < self._piece_bytes and end < len(part):
            return  # a small piece costs as many system calls as a large one
        self._writer.push(part_header(source, start, end - start), part[start:end])
        self._sent[source] = end
        if end == len(part):
            del self._parts[source]


class DataReader:
    """Receiver of one rank's payload, a sequence of DATA frames, into the memory that each `read` is given."""

    def __init__(self, channel: Channel, nbytes: int) -> None:
        self.channel = channel
        self.remaining = nbytes
        self._in_frame = 0
        self._header = bytearray(PREFIX_BYTES)
        self._header_bytes = 0

    def read(self, view: memoryview) -> int:
        """Receive some bytes into the view; 0 if none have arrived."""
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


class PartsReader:
    """Receiver of the payloads of one node's ranks, one after the other.

    targets: by rank, where its payload goes. available: by rank, how many bytes have arrived; advanced here.
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
        """Receive what has arrived; the number of bytes."""
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


class PartReader:
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
        """Receive what has arrived; the number of bytes."""
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
            source, offset, nbytes = parse_part_header(self._header, self._sizes)
            target = self._targets[source]
            assert target is not None  # noqa: S101 - a source without a target has size 0, which no part fits
            self._body = target[offset : offset + nbytes]
        self._header_bytes = 0

    def _read_body(self, body: memoryview) -> int:
        received = self._channel.receive(body)
        self._remaining -= received
        self._body = body[received:] if received < len(body) else None
        return received


# Waiting inside a call: sleep until a connection is ready, and check the peers meanwhile.
#
# The death of a peer shows as end of file on its data connection, after the last byte that it sent. The control
# connection may end earlier, while good data is still in flight: it explains a loss, but does not decide.

POLL_S = 0.25  # between two checks of the peers while nothing arrives
OVERDUE_GRACE_S = 1.0  # how much later a worker's hard limit ends: the coordinator knows which ranks are late
READ, WRITE = select.POLLIN, select.POLLOUT


OnWait = Callable[[float, Sequence[str]], None]


@dataclass(frozen=True, slots=True)
class WaitPolicy:
    """Timeouts and callbacks of a rank that waits inside a call.

    spin_wait: used before sleeping. limit_s: hard limit for one call in seconds; None: no limit. on_wait: called every
    PROGRESS_S with the seconds waited and the names of the ranks that are missing.
    """

    spin_wait: SpinWait
    limit_s: float | None
    on_wait: OnWait


class Waiter(ABC):
    """Wait on behalf of one call. `missing`, in its methods: the ranks that the call still waits for."""

    def __init__(self, monitor: LivenessMonitor, sequence: int, wait_policy: WaitPolicy) -> None:
        self._monitor = monitor
        self._sequence = sequence
        self._spin_wait = wait_policy.spin_wait
        self._limit_s = wait_policy.limit_s
        self._on_wait = wait_policy.on_wait
        self._since = time.monotonic()
        self._next_report = self._since + PROGRESS_S
        self._registered: tuple[dict[int, int], bool] | None = None

    def sleep(self, interests: Mapping[int, int], missing: Collection[int]) -> Collection[int]:
        """Wait for descriptors and return those that are ready; raise `WorldFailedError` once the call cannot complete.

        interests: by descriptor, READ and WRITE.
        """
        # A failure that affects only later calls keeps the wake descriptor readable forever: then it is not polled.
        listens = not self._monitor.check(self._sequence)
        if (interests, listens) != self._registered:
            self._register(dict(interests), listens)
        poller = self._poller
        if ready := self._ready(self._spin_wait.spin(lambda: poller.poll(0)) or ()):
            return ready
        while not (ready := self._ready(poller.poll(POLL_S * 1000))):
            if self._monitor.check(self._sequence) and listens:
                listens = False
                self._register(dict(interests), listens)
                poller = self._poller
            self._check_peers(missing)
        return ready

    def _register(self, interests: dict[int, int], listens: bool) -> None:
        # A new poll object, not an epoll set: interests mostly change from one sleep to the next, but for a ring.
        self._registered = (interests, listens)
        self._poller = select.poll()
        for descriptor, events in interests.items():
            self._poller.register(descriptor, events)
        if listens:
            self._poller.register(self._monitor.wake_fd, READ)

    def check(self, missing: Collection[int]) -> None:
        """Raise `WorldFailedError` once the call can no longer complete; for callers that sleep in another way."""
        self._monitor.check(self._sequence)
        self._check_peers(missing)

    def _ready(self, events: Sequence[tuple[int, int]]) -> list[int]:
        return [descriptor for descriptor, _ in events if descriptor != self._monitor.wake_fd]

    def _check_peers(self, missing: Collection[int]) -> None:
        # From the most certain to the least: ranks that are known to be dead, that are silent, that are late.
        now = time.monotonic()
        lost = self._lost(missing)
        if lost:
            self._fail(self._monitor.departed[lost[0]], lost)
        silent = self._monitor.silent(self._expected_heartbeats(missing))
        if silent:
            self._fail(FailureKind.SILENT, silent)
        if self._limit_s is not None and now - self._since > self._limit_s:
            self._fail(FailureKind.OVERDUE, self._late(missing), f"{now - self._since:.1f} s")
        if now >= self._next_report:
            self._next_report += PROGRESS_S
            self._on_wait(now - self._since, self._names(missing))

    def _fail(self, kind: FailureKind, ranks: Collection[int], text: str = "") -> None:
        peers = tuple(self._monitor.describe(rank, kind) for rank in sorted(ranks))
        raise WorldFailedError(self._publish(FailureRecord(kind, self._sequence, peers, text)))

    def _lost(self, missing: Collection[int]) -> Sequence[int]:
        """Return the ranks that have departed without an end of file on a data connection in use."""
        return ()

    def _late(self, missing: Collection[int]) -> Collection[int]:
        """Return the ranks that keep the missing ones from arriving."""
        return missing

    @abstractmethod
    def _expected_heartbeats(self, missing: Collection[int]) -> Collection[int]: ...

    @abstractmethod
    def _names(self, missing: Collection[int]) -> list[str]: ...

    @abstractmethod
    def _publish(self, failure: FailureRecord) -> FailureRecord: ...


class CoordinatorWaiter(Waiter):
    """Wait for workers; declares a failure to all of them."""

    _monitor: CoordinatorMonitor

    def _expected_heartbeats(self, missing: Collection[int]) -> Collection[int]:
        return missing

    def _lost(self, missing: Collection[int]) -> Sequence[int]:
        return self._monitor.lost_members(missing)

    def _late(self, missing: Collection[int]) -> Collection[int]:
        return self._monitor.late(missing, self._sequence) or missing

    def _names(self, missing: Collection[int]) -> list[str]:
        return [self._monitor.name(rank) for rank in sorted(self._late(missing))]

    def _publish(self, failure: FailureRecord) -> FailureRecord:
        return self._monitor.broadcast_failure(failure)


class WorkerWaiter(Waiter):
    """Wait for the coordinator, the only rank that a worker is connected to."""

    _monitor: WorkerMonitor

    def __init__(self, monitor: WorkerMonitor, sequence: int, wait_policy: WaitPolicy) -> None:
        super().__init__(monitor, sequence, wait_policy)
        # The coordinator's limit ends first, because it knows which ranks are late; a worker only sees that there is no
        # reply.
        if self._limit_s is not None:
            self._limit_s += OVERDUE_GRACE_S

    def _expected_heartbeats(self, missing: Collection[int]) -> Collection[int]:
        return (0,)

    def _names(self, missing: Collection[int]) -> list[str]:
        beat = self._monitor.heartbeats.get(0)
        if beat is not None and beat.in_call and beat.sequence >= self._sequence and beat.missing:
            return [f"rank {rank}" for rank in beat.missing]
        return [self._monitor.name(0)]

    def _publish(self, failure: FailureRecord) -> FailureRecord:
        return failure  # raised here; the abort that follows tells the coordinator that this rank gave up, and why
