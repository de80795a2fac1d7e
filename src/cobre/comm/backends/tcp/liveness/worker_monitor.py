"""A worker's liveness monitor: hears from the coordinator alone, which decides for all ranks."""

from cobre.comm.backends.tcp.liveness.liveness_monitor import LivenessMonitor, earlier_of
from cobre.comm.backends.tcp.wire.control_messages import FailureKind, FailureRecord
from cobre.comm.backends.tcp.wire.fields import ProtocolError
from cobre.comm.backends.tcp.wire.protocol import Tag
from cobre.comm.errors import Peer


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
