"""The ranks of one node: the memory that they share, and how a failure that is found there is reported."""

import base64
import binascii
import hashlib
import math
import os
import secrets
import socket
import struct
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cobre._native import CallGuard, CollectiveFailure, ShmSegment, ShmTransport
from cobre.comm.backends.tcp.liveness import Progress
from cobre.comm.backends.tcp.transport.ring import MIN_HOSTS, RING_BYTES
from cobre.comm.backends.tcp.transport.star import StarTransport
from cobre.comm.backends.tcp.wire.messages import FailureKind, FailureRecord
from cobre.comm.backends.tcp.wire.protocol import ProtocolError, call_header, truncated
from cobre.comm.config import TcpConfig
from cobre.comm.cores import cgroup_quota, memory_limit_bytes
from cobre.comm.endpoint import PROGRESS_S, logger
from cobre.comm.errors import Peer
from cobre.comm.types import Operation

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
        """End the current calls of all ranks of the node; they raise this failure."""
        self.shm.abort(failure_to_text(failure))

    def close(self) -> None:
        """Leave the shared memory and unmap it."""
        self.shm.close()


def failure_record_of(error: CollectiveFailure, transport: StarTransport) -> FailureRecord:
    """Return the record of a failure that was found in the node's memory, and report it to the whole world."""
    recorded, sequence = transport.monitor.failure, transport.progress.started
    if recorded is not None and recorded.sequence <= sequence:
        return recorded  # the coordinator was faster; the failure in the node's memory is a consequence
    kind, failed_ranks, text = error.args
    if kind == "aborted":
        recorded_failure = failure_from_text(text)
        # Reported again, although the rank that found the failure has done so: this rank's own abort, which follows,
        # may reach the coordinator before that report, and would then be declared instead of the cause.
        return (
            FailureRecord(FailureKind.ABORTED, sequence, (), text)
            if recorded_failure is None
            else transport.monitor.report_failure(recorded_failure)
        )
    host = socket.gethostname()
    peers = tuple(Peer(rank, host, pid, status) for rank, pid, status in failed_ranks)
    return transport.monitor.report_failure(FailureRecord(FailureKind[kind.upper()], sequence, peers, text))


def wake_node(node: NodeGroup, progress: Progress, failure: FailureRecord) -> None:
    """Wake all ranks of this node if the failure affects the current call; the monitor's `on_failure` callback.

    Runs in the monitor's thread. Ranks that wait in shared memory poll no connection, and would not notice it.
    """
    if progress.started != progress.completed and progress.started >= failure.sequence:
        node.abort(failure)


def awaited_ranks(transport: StarTransport, missing: Sequence[str]) -> Sequence[str]:
    """Name the ranks that a node waits for, for progress lines.

    They are on this node, or the coordinator's heartbeats name them.
    """
    beat, progress = transport.monitor.heartbeats.get(0), transport.progress
    names = [name.replace("(pid", f"(host {socket.gethostname()}, pid", 1) for name in missing]
    if beat is None or progress.waits_inside_node or not beat.in_call or beat.sequence < progress.started:
        return names
    return [f"rank {rank}" for rank in beat.missing] or names


def failure_to_text(failure: FailureRecord) -> bytes:
    """Pack a failure to fit into shared memory; long texts are truncated. Base64, as it is stored as a C string."""
    peers = [replace(peer, status=truncated(peer.status, MAX_STATUS_BYTES)) for peer in failure.peers[:MAX_PEERS]]
    short = replace(failure, peers=tuple(peers), text=truncated(failure.text, MAX_TEXT_BYTES))
    return base64.b64encode(short.pack())


def failure_from_text(text: str) -> FailureRecord | None:
    """Return the failure that `failure_to_text` packed; None for any other text."""
    try:
        return FailureRecord.parse(base64.b64decode(text, validate=True))
    except (binascii.Error, ProtocolError, ValueError):
        return None


# Which ranks can share memory: a guess from where they run, proved by opening what one of them created.
#
# Host names prove nothing: containers of one machine may have the same name and separate memory, or the other way
# round. So ranks that seem to be on one host (same kernel, same namespaces, same user) try it: the lowest of them
# creates an unnamed memory object (memfd), and the others open it through that process's descriptor. If any of them
# fails to, no rank of the world shares memory.

IDENTITY_BYTES = 16
RING_UNSET = 2**64 - 1  # `ring_bytes` is not configured: the threshold depends on the number of nodes
NO_RING = sys.maxsize
_RING_BYTES = struct.Struct(">Q")
_OFFER = struct.Struct(">QIQ")  # pid, descriptor, inode; all 0: there is nothing to open


@dataclass(frozen=True, slots=True)
class Nodes:
    """The ranks of every node, ascending; nodes in the order of their lowest ranks, which are their leaders.

    ring_bytes: rank 0's setting of the size from which payloads travel in the ring; RING_UNSET if it has none.
    """

    groups: tuple[tuple[int, ...], ...]
    ring_bytes: int = 0

    @classmethod
    def from_identities(cls, identities: Sequence[bytes], ring_bytes: int = 0) -> "Nodes":
        """Group the ranks by identity: the same bytes, the same node."""
        groups: dict[bytes, list[int]] = {}
        for rank, identity in enumerate(identities):
            groups.setdefault(identity, []).append(rank)
        return cls(tuple(map(tuple, groups.values())), ring_bytes)

    @property
    def ring_threshold_bytes(self) -> int:
        """Smallest payload that travels in the ring, in bytes; NO_RING if none does."""
        if len(self.groups) < 2 or self.ring_bytes == 0:
            return NO_RING
        if self.ring_bytes == RING_UNSET:
            return RING_BYTES if len(self.groups) >= MIN_HOSTS else NO_RING
        return self.ring_bytes

    @property
    def any_shared(self) -> bool:
        """Whether any node has more than one rank."""
        return any(len(ranks) > 1 for ranks in self.groups)

    def node_of(self, rank: int) -> tuple[int, ...]:
        """Return the ranks of the node that this rank is on."""
        return next(ranks for ranks in self.groups if rank in ranks)


def find_nodes(transport: StarTransport, config: TcpConfig) -> tuple[Nodes, ShmSegment | None]:
    """Return the nodes of a world whose ranks have just connected, and this node's memory, or None if none is shared.

    If memory is shared, `join_memory` must follow. The caller ends the call, number 0, that begins here. A collective.
    """
    # These exchanges are a call like any other, number 0, so that the death of a rank is detected here too.
    transport.begin(0, Operation.JOIN)
    ring_bytes = RING_UNSET if config.ring_bytes is None else config.ring_bytes
    replies = _exchange(transport, config.size, _memory_identity(config) + _RING_BYTES.pack(ring_bytes))
    (ring_bytes,) = _RING_BYTES.unpack_from(replies[0], IDENTITY_BYTES)  # rank 0's: all must choose the same path
    nodes = Nodes.from_identities([reply[:IDENTITY_BYTES] for reply in replies], ring_bytes)
    memory = _share_memory(transport, config, nodes) if nodes.any_shared else None
    if memory is None:
        nodes = Nodes(tuple((rank,) for rank in range(config.size)), ring_bytes)
    return nodes, memory


def join_memory(transport: StarTransport, config: TcpConfig, shm: ShmTransport) -> None:
    """Wait until all ranks of this node have joined its memory, in which this one already has its slot."""
    # One more exchange first. The shared memory detects the death of ranks that have a slot; only its connection shows
    # that a rank died earlier, so no rank may wait in the memory until all have a slot.
    _exchange(transport, config.size, b"")
    transport.progress.waits_inside_node = True
    try:
        shm.wait_for_all()
    finally:
        transport.progress.waits_inside_node = False


def _share_memory(transport: StarTransport, config: TcpConfig, nodes: Nodes) -> ShmSegment | None:
    ranks = nodes.node_of(config.rank)
    memory, problem = _create_memory(len(ranks)) if config.rank == ranks[0] else (None, "")
    # Three exchanges: identities (above), descriptors, and which ranks could open them. Without the last, ranks would
    # wait in the memory forever for one that cannot open it.
    offer = (0, 0, 0) if memory is None else (os.getpid(), memory.descriptor, memory.inode)
    offers = _exchange(transport, config.size, _OFFER.pack(*offer))
    if config.rank != ranks[0]:
        memory, problem = _open_offered_memory(offers[ranks[0]])
    flags = _exchange(transport, config.size, bytes([memory is None]))
    failed = [rank for rank, flag in enumerate(flags) if flag[0]]
    if not failed:
        return memory
    if problem or config.rank == 0:
        reason = f": {problem}" if problem else ""
        logger.warning(
            "ranks do not share memory: ranks %s cannot open the shared memory of their host%s", failed, reason
        )
    return None


def _exchange(transport: StarTransport, size: int, local: bytes) -> list[bytes]:
    """Return every rank's bytes, by rank; all ranks must send the same number of bytes. Collective."""
    header = call_header(0, Operation.JOIN, inline_bytes=len(local))
    return [bytes(part) for part in transport.gather_inline(0, header, memoryview(local), (len(local),) * size)]


def _create_memory(size: int) -> tuple[ShmSegment | None, str]:
    try:
        return ShmSegment.create(size, memory_limit_bytes() or 0), ""
    except OSError as error:
        return None, str(error)


def _open_offered_memory(offer: bytes) -> tuple[ShmSegment | None, str]:
    pid, descriptor, inode = _OFFER.unpack(offer)
    if not pid:
        return None, "its lowest rank could not create it"
    try:
        return ShmSegment.open(pid, descriptor, inode), ""
    except OSError as error:
        return None, str(error)


def _memory_identity(config: TcpConfig) -> bytes:
    """Return bytes that are equal on ranks that may be able to share memory, and unique if that is unknown.

    Namespaces are part of it: the memory is opened through a pid, which means nothing in another pid namespace.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        spaces = [Path(f"/proc/self/ns/{name}").readlink() for name in ("pid", "net", "user")]
    except OSError:
        return secrets.token_bytes(IDENTITY_BYTES)
    # ranks_per_host splits a host into several: blocks of ranks that do not share memory with each other.
    block = config.rank // config.ranks_per_host if config.ranks_per_host else -1
    text = f"{boot} {spaces} {os.geteuid()} {block}"
    return hashlib.blake2b(text.encode(), digest_size=IDENTITY_BYTES).digest()
