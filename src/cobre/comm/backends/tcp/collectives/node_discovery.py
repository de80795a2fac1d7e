"""Finds out which ranks can share memory: guessed from where they run, proven by opening what one of them created.

Host names prove nothing: containers of one machine may have the same name and separate memory, or the other way round.
So ranks that seem to be on one host (same kernel, same namespaces, same user) try it: the lowest of them creates
an unnamed memory object (memfd), the others open it through that process's descriptor. If any of them cannot, no rank
of the world shares memory.
"""

import hashlib
import os
import secrets
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cobre._native import ShmSegment, ShmTransport
from cobre.comm.backends.tcp.transport.base import Transport
from cobre.comm.backends.tcp.transport.ring import MIN_HOSTS, RING_BYTES
from cobre.comm.backends.tcp.wire.calls import call_header
from cobre.comm.config import TcpConfig
from cobre.comm.cores import memory_limit_bytes
from cobre.comm.endpoint import logger
from cobre.comm.types import Operation

IDENTITY_BYTES = 16
BY_HOSTS = 2**64 - 1  # stands for "not configured" in the exchange below
NO_RING = sys.maxsize
_RING_BYTES = struct.Struct(">Q")
_OFFER = struct.Struct(">QIQ")  # pid, descriptor, inode; all 0: there is nothing to open


@dataclass(frozen=True, slots=True)
class Nodes:
    """The ranks of every node, ascending; nodes in the order of their lowest ranks, which are their leaders.

    ring_bytes: from how many bytes on rank 0 wants a ring between nodes; BY_HOSTS: that depends on their number.
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
    def ring_from(self) -> int:
        """From how many bytes on a payload travels in the ring; NO_RING if none does."""
        if len(self.groups) < 2 or self.ring_bytes == 0:
            return NO_RING
        if self.ring_bytes == BY_HOSTS:
            return RING_BYTES if len(self.groups) >= MIN_HOSTS else NO_RING
        return self.ring_bytes

    @property
    def any_shared(self) -> bool:
        """Whether any node has more than one rank."""
        return any(len(ranks) > 1 for ranks in self.groups)

    def of(self, rank: int) -> tuple[int, ...]:
        """The ranks of the node that this rank is on."""
        return next(ranks for ranks in self.groups if rank in ranks)


def find_nodes(transport: Transport, config: TcpConfig) -> tuple[Nodes, ShmSegment | None]:
    """The nodes of a world whose ranks have just connected, and this node's memory; None if no memory is shared.

    If memory is shared, `join_memory` must follow. The caller ends the call, number 0, that begins here. A collective.
    """
    # These exchanges are a call like any other, number 0, so that the death of a rank is detected here too.
    transport.begin(0, Operation.JOIN)
    ring_bytes = BY_HOSTS if config.ring_bytes is None else config.ring_bytes
    said = _exchange(transport, config.size, _identity(config) + _RING_BYTES.pack(ring_bytes))
    (ring_bytes,) = _RING_BYTES.unpack_from(said[0], IDENTITY_BYTES)  # rank 0's: all must choose the same way
    nodes = Nodes.from_identities([one[:IDENTITY_BYTES] for one in said], ring_bytes)
    memory = _open_memory(transport, config, nodes) if nodes.any_shared else None
    if memory is None:
        nodes = Nodes(tuple((rank,) for rank in range(config.size)), ring_bytes)
    return nodes, memory


def join_memory(transport: Transport, config: TcpConfig, shm: ShmTransport) -> None:
    """Wait until all ranks of this node have joined its memory, in which this one already has its slot."""
    # One more exchange first. The shared memory detects the death of ranks that have a slot; a rank that dies before
    # that is only seen by its connection, so nobody may wait in the memory until all have a slot.
    _exchange(transport, config.size, b"")
    transport.progress.waits_inside_node = True
    try:
        shm.wait_for_all()
    finally:
        transport.progress.waits_inside_node = False


def _open_memory(transport: Transport, config: TcpConfig, nodes: Nodes) -> ShmSegment | None:
    ranks = nodes.of(config.rank)
    memory, problem = _create(len(ranks)) if config.rank == ranks[0] else (None, "")
    # Three exchanges: who is where (above), what to open, who could open it. Only the last makes sharing safe: a rank
    # that cannot open the memory would be waited for in it for ever.
    offers = _exchange(transport, config.size, _offer(memory))
    if config.rank != ranks[0]:
        memory, problem = _open(offers[ranks[0]])
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


def _exchange(transport: Transport, size: int, own: bytes) -> list[bytes]:
    """Every rank's bytes, by rank; all ranks must send the same number of bytes. A collective."""
    header = call_header(0, Operation.JOIN, inline_bytes=len(own))
    return [bytes(part) for part in transport.gather(0, header, memoryview(own), (len(own),) * size)]


def _create(size: int) -> tuple[ShmSegment | None, str]:
    try:
        return ShmSegment.create(size, memory_limit_bytes() or 0), ""
    except OSError as error:
        return None, str(error)


def _offer(memory: ShmSegment | None) -> bytes:
    return _OFFER.pack(0, 0, 0) if memory is None else _OFFER.pack(os.getpid(), memory.descriptor, memory.inode)


def _open(offer: bytes) -> tuple[ShmSegment | None, str]:
    pid, descriptor, inode = _OFFER.unpack(offer)
    if not pid:
        return None, "its lowest rank could not create it"
    try:
        return ShmSegment.open(pid, descriptor, inode), ""
    except OSError as error:
        return None, str(error)


def _identity(config: TcpConfig) -> bytes:
    """Equal on ranks that may be able to share memory; unique where that is unknown.

    Namespaces count: a pid of another pid namespace means nothing here, and the memory is opened through a pid.
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
