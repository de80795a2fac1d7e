"""The ranks of one node: the memory that they share, and how a failure that is found there is reported."""

import base64
import binascii
import math
import socket
from collections.abc import Callable, Sequence
from dataclasses import replace

from cobre._native import CallGuard, CollectiveFailure, ShmSegment, ShmTransport
from cobre.comm.backends.tcp.liveness.progress import Progress
from cobre.comm.backends.tcp.transport.base import Transport
from cobre.comm.backends.tcp.wire.control_messages import FailureKind, FailureRecord
from cobre.comm.backends.tcp.wire.fields import ProtocolError, truncated
from cobre.comm.config import TcpConfig
from cobre.comm.cores import cgroup_quota, memory_limit_bytes
from cobre.comm.endpoint import PROGRESS_S
from cobre.comm.errors import Peer

MAX_TEXT_BYTES, MAX_STATUS_BYTES, MAX_PEERS = 400, 180, 2  # what fits into the failure record in shared memory


class NodeGroup:
    """This rank among those of its node, and the shared memory between them.

    ranks: all ranks of the node, ascending, numbered as in the world; the first is the leader. local_rank: the index of
    this rank among them. shm: the native transport, with barriers and copies inside the node.
    """

    def __init__(
        self,
        ranks: Sequence[int],
        memory: ShmSegment,
        config: TcpConfig,
        guard: CallGuard,
        on_wait: Callable[[float, list[str]], None],
    ) -> None:
        quota = cgroup_quota()
        self.ranks = tuple(ranks)
        self.local_rank = self.ranks.index(config.rank)
        self.shm = ShmTransport(
            segment=memory,
            rank=self.local_rank,
            world_ranks=list(ranks),
            timeout_s=config.timeout_s,
            connect_timeout_s=config.connect_timeout_s,
            operation_timeout_s=config.operation_timeout_s or 0.0,
            quota_cores=0 if quota is None else math.ceil(quota),
            progress_s=PROGRESS_S,
            memory_limit_bytes=memory_limit_bytes() or 0,
            guard=guard,
            on_wait=on_wait,
        )

    @property
    def is_leader(self) -> bool:
        """Whether this rank communicates with other nodes on behalf of all ranks of this one."""
        return self.local_rank == 0

    def abort(self, failure: FailureRecord) -> None:
        """End the present calls of all ranks of the node; they raise this failure."""
        self.shm.abort(_to_text(failure))

    def close(self) -> None:
        """Leave the shared memory and unmap it."""
        self.shm.close()


def failure_record_of(error: CollectiveFailure, transport: Transport) -> FailureRecord:
    """The record of a failure that was found in the node's memory; also reports it to the whole world."""
    recorded, sequence = transport.monitor.failure, transport.progress.started
    if recorded is not None and recorded.sequence <= sequence:
        return recorded  # the coordinator was faster; what the node's memory says is a consequence
    kind, failed_ranks, text = error.args
    if kind == "aborted":
        found = _from_text(text)
        # Reported again, although the rank that found the failure has done so: this rank's own abort, which follows,
        # may reach the coordinator before that report, and would then be declared instead of the cause.
        return (
            FailureRecord(FailureKind.ABORTED, sequence, (), text)
            if found is None
            else transport.monitor.report_failure(found)
        )
    host = socket.gethostname()
    peers = tuple(Peer(rank, host, pid, status) for rank, pid, status in failed_ranks)
    return transport.monitor.report_failure(FailureRecord(FailureKind[kind.upper()], sequence, peers, text))


def wake_node(node: NodeGroup, progress: Progress, failure: FailureRecord) -> None:
    """The monitor's `on_failure`: if this failure affects the present call, wake all ranks of this node.

    Runs in the monitor's thread. Ranks that wait in shared memory look at no connection, and would not learn of it.
    """
    if progress.started != progress.completed and progress.started >= failure.sequence:
        node.abort(failure)


def awaited_ranks(transport: Transport, missing: Sequence[str]) -> Sequence[str]:
    """The ranks that a node waits for, for progress lines: its own, or those that the coordinator's heartbeats name."""
    beat, progress = transport.monitor.heartbeats.get(0), transport.progress
    here = [name.replace("(pid", f"(host {socket.gethostname()}, pid", 1) for name in missing]
    if beat is None or progress.waits_inside_node or not beat.in_call or beat.sequence < progress.started:
        return here
    return [f"rank {rank}" for rank in beat.missing] or here


def _to_text(failure: FailureRecord) -> bytes:
    """Pack a failure to fit into shared memory; long texts are truncated. Base64, as it is stored as a C string."""
    peers = [replace(peer, status=truncated(peer.status, MAX_STATUS_BYTES)) for peer in failure.peers[:MAX_PEERS]]
    short = replace(failure, peers=tuple(peers), text=truncated(failure.text, MAX_TEXT_BYTES))
    return base64.b64encode(short.pack())


def _from_text(text: str) -> FailureRecord | None:
    try:
        return FailureRecord.parse(base64.b64decode(text, validate=True))
    except (binascii.Error, ProtocolError, ValueError):
        return None
