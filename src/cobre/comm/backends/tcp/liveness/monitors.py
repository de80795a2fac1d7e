"""Watch the connections of the coordinator and of a worker."""

import select
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from cobre.comm.backends.tcp.liveness.liveness_monitor import ControlLink, LivenessMonitor, Progress, earlier_of
from cobre.comm.backends.tcp.wire.messages import FailureKind, FailureRecord
from cobre.comm.backends.tcp.wire.protocol import ProtocolError, Tag
from cobre.comm.errors import Peer

# The coordinator's liveness monitor: hears from all workers and decides what counts as the failure of the world.


class CoordinatorMonitor(LivenessMonitor):
    """Rank 0's monitor. One rank decides, so that all ranks raise the same error, whichever of them saw it first."""

    def __init__(self, links: Mapping[int, ControlLink], progress: Progress, timeout_s: float) -> None:
        # A poller for the caller's thread alone: a poll object must not be used by two threads at once.
        self._arrivals = select.poll()
        for link in links.values():
            self._arrivals.register(link.fd, select.POLLIN)
        self._ranks = {link.fd: rank for rank, link in links.items()}
        self.ranks_by_leader: Mapping[int, Sequence[int]] = {rank: (rank,) for rank in links}
        """The ranks of each node by their leader, the only one whose data connection is in use."""
        # Last: it starts the thread, which uses all of the above.
        super().__init__(links, progress, timeout_s)

    def read_pending_frames(self, sequence: int) -> None:
        """For the caller's thread, before it delivers: raise if an abort that has arrived by now affects the call.

        All calls are here, but the monitor's thread may not have run since an abort came in. Delivering first would let
        some ranks complete a call that others raise from.
        """
        for descriptor, _ in self._arrivals.poll(0):
            if not self._read(self._ranks[descriptor], time.monotonic()):
                self._arrivals.unregister(descriptor)
        self.check(sequence)

    def late(self, leaders: Collection[int], sequence: int) -> list[int]:
        """The ranks of these nodes whose heartbeats have not reported this call yet."""
        ranks = [rank for leader in leaders for rank in self.ranks_by_leader[leader] if rank in self.links]
        return [rank for rank in ranks if (beat := self.heartbeats.get(rank)) is None or beat.sequence < sequence]

    def lost_members(self, leaders: Collection[int]) -> list[int]:
        """The ranks of these nodes that have departed and are not leaders: no data connection shows their end."""
        return [
            rank
            for leader in leaders
            for rank in self.ranks_by_leader[leader]
            if rank != leader and rank in self.departed
        ]

    def broadcast_failure(self, failure: FailureRecord) -> FailureRecord:
        """Record the failure, unless there is one already, and send it to every worker; returns the one that counts."""
        recorded = self.set_failure(failure)
        if recorded is failure:  # only the thread whose record won sends it, and only once
            payload = failure.pack()
            for link in self.links.values():
                link.send(Tag.FAILURE, payload)
        return recorded

    def abort(self, text: str, me: Peer) -> FailureRecord:
        """Tell every worker that rank 0 gives up."""
        return self.report_failure(FailureRecord(FailureKind.ABORTED, self.progress.completed + 1, (me,), text))

    def report_failure(self, failure: FailureRecord) -> FailureRecord:
        """Declare what the ranks of this node have found in their shared memory."""
        return earlier_of(self.broadcast_failure(failure), failure)

    def _handle_failure(self, rank: int, tag: Tag, failure: FailureRecord) -> None:
        if tag is not Tag.ABORT:
            raise ProtocolError(f"{tag.name} from a worker")
        if failure.kind is FailureKind.ABORTED and not failure.peers:
            # An abort that names nobody is the sender's own.
            failure = replace(failure, peers=(self.links[rank].peer,))
        self.broadcast_failure(failure)

    def _detect_failure(self) -> None:
        """Declare a failure where a rank has departed or is silent and nobody else is looking.

        While rank 0 waits for other nodes in a collective, the waiting thread decides: it sees the data connections,
        and with them whether the last bytes of a rank that died are still on their way. Otherwise some worker may be
        waiting for the rank that is lost, and only this thread can know.
        """
        progress = self.progress
        next_call = progress.completed + 1
        in_call = progress.started != progress.completed
        if self.failure is not None or (in_call and not progress.waits_inside_node):
            return
        # The most certain first: one record is all that anybody gets to see, and a rank that died may be the reason why
        # others left.
        for kind in (FailureKind.DIED, FailureKind.LEFT, FailureKind.SILENT):
            ranks = [rank for rank, reason in self.departed.items() if reason is kind]
            if ranks:
                # A rank that left in order completed its calls up to the one that its goodbye names: those still hold.
                first = max(next_call, min(self._last_completed.get(rank, -1) for rank in ranks) + 1)
                self.broadcast_failure(FailureRecord(kind, first, tuple(self.describe(rank, kind) for rank in ranks)))
                return
        # Silence matters only while somebody waits: a run that computes for hours may be stopped and continued.
        silent = self.silent(self.links)
        is_awaited = in_call or any(beat.in_call and beat.sequence >= next_call for beat in self.heartbeats.values())
        if silent and is_awaited:
            peers = tuple(self.describe(rank, FailureKind.SILENT) for rank in silent)
            self.broadcast_failure(FailureRecord(FailureKind.SILENT, next_call, peers))


# A worker's liveness monitor: hears from the coordinator alone, which decides for all ranks.


class WorkerMonitor(LivenessMonitor):
    """The monitor of a rank other than 0."""

    def abort(self, text: str, me: Peer) -> FailureRecord:
        """Tell the coordinator that this rank gives up; it declares the failure to the others."""
        return self.report_failure(FailureRecord(FailureKind.ABORTED, self.progress.completed + 1, (me,), text))

    def report_failure(self, failure: FailureRecord) -> FailureRecord:
        """Report a failure to the coordinator, unless the coordinator has declared one already."""
        # Not recorded here: the coordinator may have declared another one first, and all ranks must raise the same.
        if self.failure is None:
            self.links[0].send(Tag.ABORT, failure.pack())
        return earlier_of(self.failure, failure)

    def _handle_failure(self, rank: int, tag: Tag, failure: FailureRecord) -> None:
        if tag is not Tag.FAILURE:
            raise ProtocolError(f"{tag.name} from the coordinator")
        self.set_failure(failure)

    def _detect_failure(self) -> None:
        """Record the loss of the coordinator where nobody else would see it.

        It matters only to a rank in a call. A leader that waits for other nodes sees the data connection itself; a rank
        that waits in its node's memory looks at no connection, so this thread does it.
        """
        progress = self.progress
        if not progress.waits_inside_node or self.failure is not None:
            return
        lost = self.lost_coordinator(progress.started)
        if lost is not None:
            self.set_failure(lost)

    def lost_coordinator(self, sequence: int) -> FailureRecord | None:
        """The failure of this call if the coordinator has departed or is silent; None if it is there."""
        kind = self.departed.get(0, FailureKind.SILENT if self.silent((0,)) else None)
        # A coordinator that left after completing this call has left nobody waiting for it.
        if kind is None or self._last_completed.get(0, -1) >= sequence:
            return None
        return FailureRecord(kind, sequence, (self.describe(0, kind),))
