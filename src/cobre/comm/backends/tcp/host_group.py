"""The ranks of one host: the memory that they share, and how a failure that one of them finds there is reported."""

import base64
import binascii
import math
import socket
from collections.abc import Callable, Sequence
from dataclasses import replace

from cobre._native import CallGuard, CollectiveFailure, ShmSegment, ShmTransport
from cobre.comm.backends.tcp.fields import ProtocolError
from cobre.comm.backends.tcp.progress import Progress
from cobre.comm.backends.tcp.protocol import FailureKind, Verdict
from cobre.comm.backends.tcp.transport import Transport
from cobre.comm.config import TcpConfig
from cobre.comm.cores import cgroup_quota
from cobre.comm.errors import Peer

KINDS = {
    "died": FailureKind.DIED,
    "left": FailureKind.LEFT,
    "silent": FailureKind.SILENT,
    "overdue": FailureKind.OVERDUE,
    "mismatch": FailureKind.MISMATCH,
    "aborted": FailureKind.ABORTED,
}
MAX_TEXT_BYTES, MAX_STATUS_BYTES, MAX_CULPRITS = 400, 180, 2  # what fits into the host's memory


class HostGroup:
    """This rank among those of its host, and the shared memory between them.

    ranks: all ranks of the host, ascending, by their numbers in the world; the first one leads. local_rank: this one's
    position among them. shm: the native side, which barriers and copies inside the host.
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
            names=list(ranks),
            timeout_s=config.timeout_s,
            connect_timeout_s=config.connect_timeout_s,
            operation_timeout_s=config.operation_timeout_s or 0.0,
            quota_cores=0 if quota is None else math.ceil(quota),
            guard=guard,
            on_wait=on_wait,
        )

    @property
    def is_leader(self) -> bool:
        """Whether this rank exchanges with other hosts for all ranks of this one."""
        return self.local_rank == 0

    def abort(self, verdict: Verdict) -> None:
        """End the present calls of all ranks of the host, which then raise this verdict."""
        self.shm.abort(_to_text(verdict))

    def close(self) -> None:
        """Unmap the memory."""
        self.shm.close()


def verdict_of(error: CollectiveFailure, transport: Transport) -> Verdict:
    """The verdict about a failure that was found in the host's memory; reports it to the whole world."""
    settled, sequence = transport.monitor.verdict, transport.progress.serving
    if settled is not None and settled.sequence <= sequence:
        return settled  # the coordinator was quicker; what the host's memory says is a consequence
    kind, culprits, text = error.args
    if kind == "aborted":
        found = _from_text(text)
        # Reported again: this rank's own abort, which follows, may reach the coordinator before the report of the rank
        # that found the failure, and would then become the verdict.
        return Verdict(FailureKind.ABORTED, sequence, (), text) if found is None else transport.monitor.report(found)
    host = socket.gethostname()
    peers = tuple(Peer(rank, host, pid, status) for rank, pid, status in culprits)
    return transport.monitor.report(Verdict(KINDS[kind], sequence, peers, text))


def wake_host(host: HostGroup, progress: Progress, verdict: Verdict) -> None:
    """Listener of verdicts: if this one spoils the present call, end the wait of all ranks of this host.

    Runs in the monitor's thread. Ranks that wait in the host's memory look at no connection.
    """
    if progress.serving != progress.completed and progress.serving >= verdict.sequence:
        host.abort(verdict)


def awaited_ranks(transport: Transport, missing: Sequence[str]) -> Sequence[str]:
    """The names of the ranks that a host waits for: its own or, when they have all come, the coordinator's missing."""
    beat, progress = transport.monitor.heartbeats.get(0), transport.progress
    here = [name.replace("(pid", f"(host {socket.gethostname()}, pid", 1) for name in missing]
    if beat is None or progress.waits_for_host or not beat.in_call or beat.sequence < progress.serving:
        return here
    return [f"rank {rank}" for rank in beat.missing] or here


def _to_text(verdict: Verdict) -> bytes:
    """A verdict as text that fits into the host's memory; long reasons are cut. Base64: the memory holds a C string."""
    culprits = [replace(peer, status=_cut(peer.status, MAX_STATUS_BYTES)) for peer in verdict.culprits[:MAX_CULPRITS]]
    short = replace(verdict, culprits=tuple(culprits), text=_cut(verdict.text, MAX_TEXT_BYTES))
    return base64.b64encode(short.pack())


def _from_text(text: str) -> Verdict | None:
    try:
        return Verdict.parse(base64.b64decode(text, validate=True))
    except (binascii.Error, ProtocolError, ValueError):
        return None


def _cut(text: str, limit: int) -> str:
    return text.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")
