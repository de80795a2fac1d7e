"""The interface and the common parts of the coordinator's and the workers' ends of the transport.

Ranks that share a node's memory are represented by one leader: its payload is the concatenation of theirs, and the
others take no part in what happens here. Without shared memory every rank is its own leader.

A small payload is sent in the same frame as the call, and its result in the same frame as the reply: one round trip.
Large payloads are streams of frames, in both directions at once.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import replace

from cobre.comm.backends.tcp.liveness import LivenessMonitor
from cobre.comm.backends.tcp.transport.channel import Channel, LinkLostError
from cobre.comm.backends.tcp.transport.streams import Writer
from cobre.comm.backends.tcp.transport.waiting import OVERDUE_GRACE_S, WRITE, Waiter, WaitPolicy
from cobre.comm.backends.tcp.wire.messages import FailureRecord
from cobre.comm.types import Array, ReduceOp

SMALL_BYTES = 32 * 1024  # of all ranks together; up to here one round trip beats two streams
COPY_BYTES = 1 << 20
EMPTY = memoryview(b"")


class DeferredCopy:
    """Copy of this rank's part of a large gather, made chunk by chunk while the sockets are idle."""

    def __init__(self, source: memoryview = EMPTY, target: memoryview = EMPTY) -> None:
        self._source = source
        self._target = target
        self._copied = 0

    def advance(self) -> bool:
        """Copy one chunk; False if nothing was left to copy."""
        start, end = self._copied, min(self._copied + COPY_BYTES, len(self._source))
        if start == end:
            return False
        self._target[start:end] = self._source[start:end]
        self._copied = end
        return True

    def finish(self) -> None:
        """Copy the rest, at the end of the call."""
        while self.advance():
            pass


class Watch(ABC):
    """Watch over the star's connections while one call's data moves in the ring.

    descriptors: to poll for reading. missing: the ranks that the call still waits for.
    """

    descriptors: Collection[int]
    missing: Collection[int]

    @abstractmethod
    def advance(self, ready: Collection[int]) -> None:
        """Read from the descriptors that are ready; raise if a connection has ended."""

    @abstractmethod
    def finish(self) -> None:
        """Report that this host has received and sent everything."""


class StarTransport(ABC):
    """One end of the star: this rank's connections, and how payloads move over them.

    Arguments have been checked; sizes are in bytes. sequence: the number of the call. header: its packed signature,
    which the coordinator compares before anything is delivered. `..._inline`: small payloads, in the frame of the call;
    `..._stream`: large payloads, in frames that follow.
    """

    def __init__(self, monitor: LivenessMonitor, wait_policy: WaitPolicy) -> None:
        self.monitor = monitor
        self.progress = monitor.progress
        self.wait_policy = wait_policy
        self.neighbours: Sequence[Channel] = ()
        """Connections to neighbouring hosts, if there is a ring; closed with all others."""

    def use_leaders(self, nodes: Sequence[Sequence[int]]) -> None:
        """Use only the data connection of each node's first rank, its leader, from now on."""
        if self.wait_policy.limit_s is not None:
            # The ranks of a node know exactly which of them are late: give them time to report it first.
            self.wait_policy = replace(self.wait_policy, limit_s=self.wait_policy.limit_s + OVERDUE_GRACE_S)
        self._use_leaders(nodes)

    def begin(self, sequence: int, operation: int) -> None:
        """Start a call; raises `WorldFailedError` if a failure already affects it."""
        progress = self.progress
        # The operation before the number: a heartbeat in between must not report the new call under the old name.
        progress.operation = operation
        progress.started = sequence
        if self.monitor.failure is not None:
            self.monitor.check(sequence)

    def end(self, sequence: int) -> None:
        """Note that the call is complete on this rank."""
        self.progress.completed = sequence

    @abstractmethod
    def diagnose_disconnect(self, error: LinkLostError) -> FailureRecord:
        """Return why a data connection ended; the coordinator also declares it to the others."""

    def close(self) -> None:
        """Say goodbye and close everything."""
        # The control connections first: a peer that sees the data connection end looks for the reason there.
        self.monitor.close()
        self._close_all_channels()

    def drop(self) -> None:
        """Close this process's copies of the sockets, in a forked child: it must not say goodbye for its parent."""
        self.monitor.drop()
        self._close_all_channels()

    def _close_all_channels(self) -> None:
        self._close_channels()
        for channel in self.neighbours:
            channel.close()

    @abstractmethod
    def gather_inline(self, sequence: int, header: bytes, local: memoryview, sizes: Sequence[int]) -> list[memoryview]:
        """Gather small payloads: return every rank's bytes, by rank; the views are valid until the next call.

        local: the bytes of this node's ranks, concatenated. sizes: number of bytes of every rank, by rank.
        """

    @abstractmethod
    def reduce_inline(self, sequence: int, header: bytes, send: Array, recv: Array, op: ReduceOp) -> None:
        """Fold small payloads from the left in rank order. send: the operands of this node's ranks, concatenated."""

    @abstractmethod
    def broadcast_inline(self, sequence: int, header: bytes, buffer: memoryview, root: int) -> None:
        """Copy a small payload, the root's `buffer`, into every rank's."""

    @abstractmethod
    def gather_stream(
        self,
        sequence: int,
        header: bytes,
        local: Sequence[memoryview],
        targets: Sequence[memoryview],
        copy: DeferredCopy,
    ) -> None:
        """Receive every rank's bytes, a large payload, into their targets. local: the parts of this node's ranks."""

    @abstractmethod
    def reduce_stream(self, sequence: int, header: bytes, send: Array, recv: Array, op: ReduceOp) -> None:
        """Fold large payloads from the left in rank order, chunk by chunk; only without shared memory."""

    @abstractmethod
    def broadcast_stream(self, sequence: int, header: bytes, buffer: memoryview, root: int) -> None:
        """Copy a large payload, the root's `buffer`, into every rank's, relayed while it arrives."""

    def _send_message(self, channel: Channel, message: bytes, sequence: int, missing: Collection[int]) -> None:
        """Send a small message; wait for `missing` only if the socket buffer does not take all of it at once."""
        sent = channel.send_small(message)
        if sent == len(message):
            return
        # The peer is slow to read, or the message is larger than the socket buffers.
        writer, waiter = Writer(channel), self.make_waiter(sequence)
        writer.push(message[sent:])
        while not writer.is_idle:
            if not writer.flush():
                waiter.sleep({channel.fd: WRITE}, missing)

    @abstractmethod
    def local_address(self, peer: int) -> Sequence[object]:
        """Return this host's address on its data connection to the coordinator, or at the coordinator to that peer."""

    @abstractmethod
    def watch_ring(self, sequence: int, waiter: Waiter) -> Watch:
        """Watch the star's connections while the data of one call moves in the ring."""

    @abstractmethod
    def make_waiter(self, sequence: int) -> Waiter:
        """Make the waiter of one call."""

    @abstractmethod
    def _use_leaders(self, nodes: Sequence[Sequence[int]]) -> None: ...

    @abstractmethod
    def _close_channels(self) -> None: ...
