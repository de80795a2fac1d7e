"""What the coordinator's and a worker's side of the collectives have in common.

Ranks that share a host's memory have one leader, who speaks for them: its payload is theirs, one after the other, and
the others have no part in what happens here. Without shared memory every rank speaks for itself.

Small payloads travel in the same frame as the call and its answer: one round trip. Large ones are streams of
frames; everything that can move moves at the same time.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cobre.comm.backends.tcp.channel import LinkLostError
from cobre.comm.backends.tcp.liveness_monitor import LivenessMonitor
from cobre.comm.backends.tcp.progress import Progress
from cobre.comm.backends.tcp.protocol import Verdict
from cobre.comm.backends.tcp.waiting import OVERDUE_GRACE_S, WaitPolicy
from cobre.comm.errors import Peer
from cobre.comm.types import Array, ReduceOp

SMALL_BYTES = 32 * 1024  # all ranks' data together; up to here one round trip beats two streams
COPY_BYTES = 1 << 20
NOTHING = memoryview(b"")
_OCTET = np.dtype(np.uint8)


class DeferredCopy:
    """A rank's own part of a large gather, copied piece by piece while the network has nothing for us."""

    def __init__(self, source: memoryview = NOTHING, target: memoryview = NOTHING) -> None:
        self._source = source
        self._target = target
        self._at = 0

    def advance(self) -> bool:
        """Copy a piece; False when there was nothing left to do."""
        start, end = self._at, min(self._at + COPY_BYTES, len(self._source))
        if start == end:
            return False
        self._target[start:end] = self._source[start:end]
        self._at = end
        return True

    def finish(self) -> None:
        """Copy what is left, at the end of the call."""
        while self.advance():
            pass


class Transport(ABC):
    """This rank's connections, and how payloads move over them. Arguments are checked; sizes are bytes.

    Two subclasses, one for each end of the star. sequence: the number of the call; head: its packed signature, which
    the coordinator compares before anything is delivered.
    """

    def __init__(self, monitor: LivenessMonitor, progress: Progress, wait_policy: WaitPolicy) -> None:
        self.monitor = monitor
        self.progress = progress
        self._wait_policy = wait_policy

    def group(self, hosts: Sequence[Sequence[int]]) -> None:
        """From now on only the first rank of each host, its leader, uses its data connection, for all ranks there."""
        if self._wait_policy.limit_s is not None:
            # The ranks of a host know exactly which of them are late, if they are given the time to find out.
            self._wait_policy = replace(self._wait_policy, limit_s=self._wait_policy.limit_s + OVERDUE_GRACE_S)
        self._group(hosts)

    def begin(self, sequence: int, operation: int) -> None:
        """A call starts: raise if a verdict spoils it already."""
        progress = self.progress
        # The operation before the number: no heartbeat in between reports the new call under its predecessor's name.
        progress.operation = operation
        progress.serving = sequence
        if self.monitor.verdict is not None:
            self.monitor.check(sequence)

    def end(self, sequence: int) -> None:
        """The call is complete on this rank."""
        self.progress.completed = sequence

    def explain(self, error: LinkLostError) -> Verdict:
        """The verdict about a data connection that ended; the coordinator also reports it to the others."""
        return self.monitor.explain(error.peer.rank, error.cause, self.progress.serving)

    def abort(self, text: str, me: Peer) -> Verdict:
        """Report to all other ranks that this one gives up; returns the verdict that they will raise."""
        return self.monitor.abort(text, me)

    def close(self) -> None:
        """Say goodbye and close everything."""
        # The control connections first: a peer that sees the data connection end looks there for the reason.
        self.monitor.close()
        self._close_channels()

    def drop(self) -> None:
        """Close this process's copies of the sockets: in a forked child, which must not speak for its parent."""
        self.monitor.drop()
        self._close_channels()

    @abstractmethod
    def gather(self, sequence: int, head: bytes, own: memoryview, sizes: Sequence[int]) -> list[memoryview]:
        """Small: every rank's bytes, by rank; valid until the next call.

        own: the bytes of this host's ranks, one after the other. sizes: of every rank's bytes, by rank.
        """

    @abstractmethod
    def reduce(self, sequence: int, head: bytes, send: Array, recv: Array, op: ReduceOp) -> None:
        """Small: the ordered fold. send: the operands of the host's ranks, one after the other."""

    @abstractmethod
    def broadcast(self, sequence: int, head: bytes, buffer: memoryview, root: int) -> None:
        """Small: the root's bytes into every rank's `buffer`; on the root it is the source."""

    @abstractmethod
    def gather_stream(
        self, sequence: int, head: bytes, own: Sequence[memoryview], places: Sequence[memoryview], copy: DeferredCopy
    ) -> None:
        """Large: every rank's bytes into their places. own: a part for each of the host's ranks."""

    @abstractmethod
    def reduce_stream(self, sequence: int, head: bytes, send: Array, recv: Array, op: ReduceOp) -> None:
        """Large: the ordered fold, chunk by chunk; for ranks that speak for themselves."""

    @abstractmethod
    def broadcast_stream(self, sequence: int, head: bytes, buffer: memoryview, root: int) -> None:
        """Large: the root's bytes into every rank's `buffer`, passed on while they arrive."""

    @abstractmethod
    def _group(self, hosts: Sequence[Sequence[int]]) -> None: ...

    @abstractmethod
    def _close_channels(self) -> None: ...


def as_bytes(array: Array) -> memoryview:
    """The array's memory, whatever its dtype."""
    return view_of(array.reshape(-1).view(_OCTET))


def view_of(octets: Array) -> memoryview:
    """The memory of an array of bytes."""
    return memoryview(octets)  # type: ignore[arg-type]  # NumPy's stubs hide the buffer before Python 3.12
