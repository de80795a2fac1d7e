"""The messages of handshakes and of the control connection."""

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Self

from cobre.comm.backends.tcp.wire.protocol import FieldReader, ProtocolError, pack_text
from cobre.comm.errors import Peer

# The messages of the control connection: heartbeats, goodbyes and failures, packed and parsed without any I/O.

MAX_PEERS = 16
MAX_REASON_BYTES = 4000
MAX_STATUS_BYTES = 400
MAX_LABEL_BYTES = 64


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A sign of life: the last call, whether it is under way and, from the coordinator, which ranks it waits for."""

    sequence: int
    operation: int
    in_call: bool
    missing: tuple[int, ...] = ()
    label: str = ""

    _FIXED = struct.Struct(">QBBB")

    def pack(self) -> bytes:
        """Pack the payload of a HEARTBEAT frame."""
        missing = self.missing[:MAX_PEERS]
        numbers = self._FIXED.pack(self.sequence, self.operation, self.in_call, len(missing))
        return numbers + struct.pack(f">{len(missing)}I", *missing) + pack_text(self.label, MAX_LABEL_BYTES)

    @classmethod
    def parse(cls, payload: bytes) -> Self:
        """Parse a HEARTBEAT; raises `ProtocolError`."""
        reader = FieldReader(payload)
        sequence, operation, in_call, count = reader.numbers(cls._FIXED)
        _check_peer_count(count)
        missing, label = reader.numbers(struct.Struct(f">{count}I")), reader.text(MAX_LABEL_BYTES)
        reader.end()
        return cls(sequence, operation, bool(in_call), missing, label)


_GOODBYE = struct.Struct(">Q")


def pack_goodbye(completed: int) -> bytes:
    """Pack the payload of a GOODBYE frame: the last call that the rank has completed."""
    return _GOODBYE.pack(completed)


def parse_goodbye(payload: bytes) -> int:
    """Parse a GOODBYE; raises `ProtocolError`."""
    if len(payload) != _GOODBYE.size:
        raise ProtocolError(f"GOODBYE frame of {len(payload)} bytes, expected {_GOODBYE.size}")
    return int(_GOODBYE.unpack(payload)[0])


class FailureKind(IntEnum):
    """Reason why a world has failed; the numbers are sent over the wire.

    DIED: the process ended. LEFT: the rank closed or broke its communicator. SILENT: no heartbeat for the timeout.
    OVERDUE: alive, but later than the hard limit for one operation. ABORTED: the rank called `abort`, or left its
    `with` block by an exception. MISMATCH: ranks made different calls.
    """

    DIED = 0
    LEFT = 1
    SILENT = 2
    OVERDUE = 3
    ABORTED = 4
    MISMATCH = 5


@dataclass(frozen=True, slots=True)
class FailureRecord:
    """The first failure of a world, as the coordinator declares it to all ranks; every rank raises it.

    sequence: the first call that it affects; data of earlier calls may still be in flight and is good. peers: the ranks
    that it is about. text: the reason for an abort, or the two calls of a mismatch.
    """

    kind: FailureKind
    sequence: int
    peers: tuple[Peer, ...] = ()
    text: str = ""

    _FIXED = struct.Struct(">BQB")
    _PEER = struct.Struct(">IQ")

    def pack(self) -> bytes:
        """Pack the payload of a FAILURE or ABORT frame; it names at most MAX_PEERS ranks."""
        # Frames are bounded: if a thousand ranks are lost with a switch, the first sixteen are named.
        peers = self.peers[:MAX_PEERS]
        parts = [self._FIXED.pack(self.kind, self.sequence, len(peers)), pack_text(self.text, MAX_REASON_BYTES)]
        for peer in peers:
            parts += [
                self._PEER.pack(peer.rank, peer.pid),
                pack_text(peer.host),
                pack_text(peer.status, MAX_STATUS_BYTES),
            ]
        return b"".join(parts)

    @classmethod
    def parse(cls, payload: bytes) -> Self:
        """Parse a FAILURE or ABORT; raises `ProtocolError`."""
        reader = FieldReader(payload)
        kind, sequence, count = reader.numbers(cls._FIXED)
        if kind not in FailureKind._value2member_map_:
            raise ProtocolError(f"unknown kind of failure {kind}")
        _check_peer_count(count)
        text = reader.text(MAX_REASON_BYTES)
        peers = tuple(_read_peer(reader, cls._PEER) for _ in range(count))
        reader.end()
        return cls(FailureKind(kind), sequence, peers, text)


def _read_peer(reader: FieldReader, numbers: struct.Struct) -> Peer:
    rank, pid = reader.numbers(numbers)
    return Peer(rank, reader.text(), pid, reader.text(MAX_STATUS_BYTES))


def _check_peer_count(count: int) -> None:
    if count > MAX_PEERS:
        raise ProtocolError(f"{count} ranks named, at most {MAX_PEERS} are allowed")


# The messages of the handshake: the identity of a process, packed and parsed without any I/O.

MAGIC = b"COBRE-TCP"
PROTOCOL_VERSION = 6
NONCE_BYTES = 32
INSTANCE_BYTES = 16
RING_OFFER_BYTES = 1024
MAX_PROBLEM_BYTES = 400


class Link(IntEnum):
    """The purpose of a connection: the two between a worker and the coordinator, and that between two hosts."""

    DATA = 0
    CONTROL = 1
    RING = 2


@dataclass(frozen=True, slots=True)
class Hello:
    """The first message of a worker. The proofs that follow authenticate everything in it.

    instance: random bytes, the same on both connections of one process, by which the coordinator pairs them.
    """

    rank: int
    size: int
    run_id: str
    host: str
    pid: int
    package_version: str
    byte_order: str
    link: Link
    instance: bytes
    nonce: bytes
    protocol_version: int = PROTOCOL_VERSION

    _FIXED = struct.Struct(">HIIQB")

    def pack(self) -> bytes:
        """Pack the payload of a HELLO frame."""
        numbers = self._FIXED.pack(self.protocol_version, self.rank, self.size, self.pid, self.link)
        texts = b"".join(map(pack_text, (self.package_version, self.byte_order, self.run_id, self.host)))
        return MAGIC + numbers + texts + self.instance + self.nonce

    @classmethod
    def parse(cls, payload: bytes) -> Self:
        """Parse a HELLO. Raises `VersionError` for another protocol version, whatever follows it; `ProtocolError`."""
        reader = _after_magic(payload)
        # The version is the first field in all versions; what follows it may be laid out differently in others.
        version, rank, size, pid, link = reader.numbers(cls._FIXED)
        if version != PROTOCOL_VERSION:
            raise VersionError(version)
        package, order, run_id, host = (reader.text() for _ in range(4))
        instance, nonce = reader.take(INSTANCE_BYTES), reader.take(NONCE_BYTES)
        reader.end()
        if link not in Link._value2member_map_:
            raise ProtocolError(f"unknown link {link}")
        return cls(rank, size, run_id, host, pid, package, order, Link(link), instance, nonce, version)


@dataclass(frozen=True, slots=True)
class Challenge:
    """The coordinator's reply to a HELLO."""

    nonce: bytes
    host: str
    pid: int
    package_version: str
    protocol_version: int = PROTOCOL_VERSION

    _FIXED = struct.Struct(">HQ")

    def pack(self) -> bytes:
        """Pack the payload of a CHALLENGE frame."""
        numbers = self._FIXED.pack(self.protocol_version, self.pid)
        return MAGIC + numbers + pack_text(self.package_version) + pack_text(self.host) + self.nonce

    @classmethod
    def parse(cls, payload: bytes) -> Self:
        """Parse a CHALLENGE. Raises `VersionError` for another protocol version, or `ProtocolError`."""
        reader = _after_magic(payload)
        version, pid = reader.numbers(cls._FIXED)
        if version != PROTOCOL_VERSION:
            raise VersionError(version)
        package, host = reader.text(), reader.text()
        nonce = reader.take(NONCE_BYTES)
        reader.end()
        return cls(nonce, host, pid, package, version)


@dataclass(frozen=True, slots=True)
class RingOffer:
    """Address at which a host listens for its neighbour in the ring, sent to all hosts through the coordinator.

    token: random bytes, which the neighbour returns in its HELLO: it has dialled this listener and no other.
    certificate: SHA-256 of the TLS certificate that it will present; empty without TLS.
    problem: why this host cannot take part; empty if it can.
    """

    rank: int
    host: str
    pid: int
    address: str = ""
    port: int = 0
    token: bytes = b""
    certificate: bytes = b""
    problem: str = ""

    _FIXED = struct.Struct(">IQHBB")

    def pack(self) -> bytes:
        """Pack the offer with padding: all hosts send the same number of bytes."""
        numbers = self._FIXED.pack(self.rank, self.pid, self.port, len(self.token), len(self.certificate))
        texts = pack_text(self.host) + pack_text(self.address) + pack_text(self.problem, MAX_PROBLEM_BYTES)
        return (numbers + self.token + self.certificate + texts).ljust(RING_OFFER_BYTES, b"\0")

    @classmethod
    def parse(cls, payload: bytes) -> Self:
        """Parse an offer; raises `ProtocolError`."""
        if len(payload) != RING_OFFER_BYTES:
            raise ProtocolError(f"offer of {len(payload)} bytes, expected {RING_OFFER_BYTES}")
        reader = FieldReader(payload)
        rank, pid, port, token_bytes, certificate_bytes = reader.numbers(cls._FIXED)
        token, certificate = reader.take(token_bytes), reader.take(certificate_bytes)
        host, address, problem = reader.text(), reader.text(), reader.text(MAX_PROBLEM_BYTES)
        return cls(rank, host, pid, address, port, token, certificate, problem)


class VersionError(ProtocolError):
    """The peer speaks another version of this protocol."""

    def __init__(self, version: int) -> None:
        super().__init__(f"the peer speaks protocol version {version}, this process version {PROTOCOL_VERSION}")
        self.version = version


def _after_magic(payload: bytes) -> FieldReader:
    reader = FieldReader(payload)
    if reader.take(len(MAGIC)) != MAGIC:
        raise ProtocolError("the peer does not speak the Cobre protocol")
    return reader
