"""Which ranks share a host's memory: guessed from where they run, proven by opening what one of them made.

Names of hosts prove nothing: containers of one machine may have one name and separate memory, or the other way round.
So ranks that seem to be together (one running kernel, the same namespaces, one user) try it: the first of them makes a
nameless piece of memory, the others open it through that process. If one of them cannot, nobody shares.
"""

import hashlib
import os
import secrets
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cobre._native import ShmSegment, ShmTransport
from cobre.comm.backends.tcp.calls import call_head
from cobre.comm.backends.tcp.transport import Transport
from cobre.comm.config import TcpConfig
from cobre.comm.endpoint import logger
from cobre.comm.types import Operation

IDENTITY_BYTES = 16
_OFFER = struct.Struct(">QIQ")  # process, descriptor, inode; all 0: there is nothing to open


@dataclass(frozen=True, slots=True)
class Hosts:
    """The ranks of every host, ascending; hosts in the order of their first ranks, which are their leaders."""

    groups: tuple[tuple[int, ...], ...]

    @classmethod
    def from_identities(cls, identities: Sequence[bytes]) -> "Hosts":
        """One host for each identity."""
        groups: dict[bytes, list[int]] = {}
        for rank, identity in enumerate(identities):
            groups.setdefault(identity, []).append(rank)
        return cls(tuple(map(tuple, groups.values())))

    @property
    def any_shared(self) -> bool:
        """Whether any two ranks are on one host."""
        return any(len(ranks) > 1 for ranks in self.groups)

    def of(self, rank: int) -> tuple[int, ...]:
        """The ranks on this one's host."""
        return next(ranks for ranks in self.groups if rank in ranks)


def find_hosts(transport: Transport, config: TcpConfig) -> tuple[Hosts, ShmSegment] | None:
    """The hosts of a world whose ranks have just met, and this host's memory; None: every rank is on its own.

    Where memory is shared, `join_memory` must follow: the call that begins here ends there.
    """
    # These exchanges are calls like any other, so that a rank that dies here is found: as call 0, before the first.
    transport.progress.completed = -1
    transport.begin(0, Operation.JOIN)
    hosts = Hosts.from_identities(_exchange(transport, config.size, _identity(config)))
    memory = _open_memory(transport, config, hosts) if hosts.any_shared else None
    if memory is not None:
        return hosts, memory
    transport.end(0)
    return None


def join_memory(transport: Transport, config: TcpConfig, shm: ShmTransport) -> None:
    """Wait until all ranks of this host have joined its memory, in which this one has its slot.

    After one more exchange: a rank that dies before it has a slot is seen by its connection alone.
    """
    _exchange(transport, config.size, b"")
    transport.progress.waits_for_host = True
    try:
        shm.wait_for_all()
    finally:
        transport.progress.waits_for_host = False
    transport.end(0)


def _open_memory(transport: Transport, config: TcpConfig, hosts: Hosts) -> ShmSegment | None:
    ranks = hosts.of(config.rank)
    memory, problem = _create(len(ranks)) if config.rank == ranks[0] else (None, "")
    # Three exchanges: who is where (above), what to open, who could. Only the last makes it safe to share: a rank that
    # cannot open the memory must not be waited for in it.
    offers = _exchange(transport, config.size, _offer(memory))
    if config.rank != ranks[0]:
        memory, problem = _open(offers[ranks[0]])
    without = [rank for rank, flag in enumerate(_exchange(transport, config.size, bytes([memory is None]))) if flag[0]]
    if not without:
        return memory
    if problem or config.rank == 0:
        reason = f": {problem}" if problem else ""
        logger.warning("no memory is shared between ranks: ranks %s cannot open their host's%s", without, reason)
    return None


def _exchange(transport: Transport, size: int, own: bytes) -> list[bytes]:
    """Every rank's bytes, by rank; all must give the same number of bytes."""
    head = call_head(0, Operation.JOIN, inline_bytes=len(own))
    return [bytes(part) for part in transport.gather(0, head, memoryview(own), (len(own),) * size)]


def _create(size: int) -> tuple[ShmSegment | None, str]:
    try:
        return ShmSegment.create(size), ""
    except OSError as error:
        return None, str(error)


def _offer(memory: ShmSegment | None) -> bytes:
    return _OFFER.pack(0, 0, 0) if memory is None else _OFFER.pack(os.getpid(), memory.descriptor, memory.inode)


def _open(offer: bytes) -> tuple[ShmSegment | None, str]:
    pid, descriptor, inode = _OFFER.unpack(offer)
    if not pid:
        return None, "its first rank could not make it"
    try:
        return ShmSegment.open(pid, descriptor, inode), ""
    except OSError as error:
        return None, str(error)


def _identity(config: TcpConfig) -> bytes:
    """The same bytes for ranks that may share memory; where that cannot be told, bytes that nobody else has."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        spaces = [Path(f"/proc/self/ns/{name}").readlink() for name in ("pid", "net", "user")]
    except OSError:
        return secrets.token_bytes(IDENTITY_BYTES)
    row = config.rank // config.ranks_per_host if config.ranks_per_host else -1
    text = f"{boot} {spaces} {os.geteuid()} {row}"
    return hashlib.blake2b(text.encode(), digest_size=IDENTITY_BYTES).digest()
