"""The wire format: every message, packed and parsed without any I/O.

A frame is the length of the payload (4 bytes, big-endian), a tag (1 byte), and the payload. Numbers in payloads are
big-endian too. The data of collectives is sent in the native byte order, which must be the same on all ranks: HELLO
carries it.

There are two connections per worker. On the *data* connection, after the handshake, every collective exchanges CALL
from the worker (the signature of its call, with a small payload in the same frame), DATA from the worker (a piece of a
large payload), GO from the coordinator (all calls agree, with a small result in the same frame) and PART from the
coordinator (a piece of a rank's data). On the *control* connection, after the handshake, there are HEARTBEAT, GOODBYE,
ABORT and FAILURE. A failure therefore gets through while a payload is stuck halfway, and no heartbeat ever lands inside
a payload.

Every frame is checked against the limit of its tag before memory is allocated for it.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Self

from cobre.comm.backends.tcp.fields import FieldReader, ProtocolError, pack_text
from cobre.comm.errors import Peer

MAGIC = b"COBRE-TCP"
PROTOCOL_VERSION = 4
NONCE_BYTES = 32
PROOF_BYTES = 32
INSTANCE_BYTES = 16
MAX_UNAUTHENTICATED_BYTES = 1024  # the most that a stranger can make us buffer
MAX_FRAME_DATA_BYTES = 1 << 28  # a larger payload is split into several frames
MAX_PEERS = 16
MAX_REASON_BYTES = 4000
MAX_STATUS_BYTES = 400
MAX_LABEL_BYTES = 64
MAX_REFUSAL_BYTES = 1500

PREFIX = struct.Struct(">IB")
PREFIX_BYTES = PREFIX.size


class Tag(IntEnum):
    """The type of a frame: 0x0_ handshake, 0x1_ data connection, 0x2_ control connection."""

    HELLO = 0x01
    CHALLENGE = 0x02
    PROOF = 0x03
    WELCOME = 0x04
    REFUSED = 0x05
    START = 0x06
    CALL = 0x10
    DATA = 0x11
    GO = 0x12
    PART = 0x13
    HEARTBEAT = 0x20
    GOODBYE = 0x21
    ABORT = 0x22
    FAILURE = 0x23


HANDSHAKE_LIMITS: Mapping[int, int] = {
    Tag.HELLO: 768,
    Tag.CHALLENGE: 512,
    Tag.PROOF: PROOF_BYTES,
    Tag.WELCOME: PROOF_BYTES,
    Tag.REFUSED: 2048,
    Tag.START: 8,
}
CONTROL_LIMITS: Mapping[int, int] = {Tag.HEARTBEAT: 1024, Tag.GOODBYE: 8, Tag.ABORT: 8192, Tag.FAILURE: 16384}


def frame(tag: int, payload: bytes = b"") -> bytes:
    """The bytes of one complete frame."""
    return PREFIX.pack(len(payload), tag) + payload


class FrameParser:
    """Splits a byte stream into frames; rejects a frame as soon as its five-byte prefix is there.

    limits: by tag that is expected here, the longest payload in bytes.
    """

    def __init__(self, limits: Mapping[int, int]) -> None:
        self._limits = limits
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[tuple[Tag, bytes]]:
        """Add bytes that have arrived and return the frames that they complete; raises `ProtocolError`."""
        self._buffer += data
        frames = []
        while (one := self._next()) is not None:
            frames.append(one)
        return frames

    @property
    def needed(self) -> int:
        """How many bytes complete the prefix or the frame; a reader that asks for no more never reads past a frame."""
        if len(self._buffer) < PREFIX_BYTES:
            return PREFIX_BYTES - len(self._buffer)
        return int(PREFIX_BYTES + PREFIX.unpack_from(self._buffer)[0] - len(self._buffer))

    def _next(self) -> tuple[Tag, bytes] | None:
        if len(self._buffer) < PREFIX_BYTES:
            return None
        # Checked as soon as the prefix is there: a peer must not make us buffer what will be rejected anyway.
        length, tag = PREFIX.unpack_from(self._buffer)
        limit = self._limits.get(tag)
        if limit is None:
            raise ProtocolError(f"unexpected frame with tag {tag:#04x}")
        if length > limit:
            raise ProtocolError(f"{Tag(tag).name} frame of {length} bytes exceeds the limit of {limit}")
        end = PREFIX_BYTES + length
        if len(self._buffer) < end:
            return None
        payload = bytes(self._buffer[PREFIX_BYTES:end])
        del self._buffer[:end]
        return Tag(tag), payload


class Link(IntEnum):
    """The two connections between a worker and the coordinator."""

    DATA = 0
    CONTROL = 1


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
        """The payload of a HELLO frame."""
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
        if link not in (Link.DATA, Link.CONTROL):
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
        """The payload of a CHALLENGE frame."""
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
        """The payload of a HEARTBEAT frame."""
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
    """The payload of a GOODBYE frame: the last call that the rank has completed."""
    return _GOODBYE.pack(completed)


def parse_goodbye(payload: bytes) -> int:
    """Parse a GOODBYE; raises `ProtocolError`."""
    if len(payload) != _GOODBYE.size:
        raise ProtocolError(f"GOODBYE frame of {len(payload)} bytes, expected {_GOODBYE.size}")
    return int(_GOODBYE.unpack(payload)[0])


class FailureKind(IntEnum):
    """Why a world has failed; the numbers are sent over the wire.

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
        """The payload of a FAILURE or ABORT frame; names at most MAX_PEERS ranks."""
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


PART_HEADER = struct.Struct(">IBIQ")  # prefix, then the rank whose data it is, and its offset in that rank's part


def part_header(source: int, offset: int, nbytes: int) -> bytes:
    """The first bytes of a PART frame; the data follows straight from the caller's buffer."""
    return PART_HEADER.pack(nbytes + PART_HEADER.size - PREFIX_BYTES, Tag.PART, source, offset)


def parse_part_header(header: bytes | bytearray, sizes: Sequence[int]) -> tuple[int, int, int]:
    """Source, offset and length of a PART, checked against the size of every rank's part."""
    length, tag, source, offset = PART_HEADER.unpack(header)
    nbytes = length - (PART_HEADER.size - PREFIX_BYTES)
    if tag != Tag.PART or nbytes <= 0 or source >= len(sizes) or offset + nbytes > sizes[source]:
        raise ProtocolError(f"expected a PART frame, got tag {tag:#04x} with {length} bytes")
    return source, offset, nbytes


def data_header(nbytes: int) -> bytes:
    """The first bytes of a DATA frame; `nbytes` of payload follow."""
    return PREFIX.pack(nbytes, Tag.DATA)


def parse_data_header(header: bytes | bytearray, remaining: int) -> int:
    """Length of a DATA frame, checked against the bytes that are still missing."""
    length, tag = PREFIX.unpack(header)
    if tag != Tag.DATA or not 0 < length <= remaining:
        raise ProtocolError(
            f"expected a DATA frame of at most {remaining} bytes, got tag {tag:#04x} with {length} bytes"
        )
    return int(length)


GO_HEADER = struct.Struct(">IBQ")  # prefix, then the sequence number of the call
_GO = int(Tag.GO)


def go_header(sequence: int, nbytes: int) -> bytes:
    """The first bytes of a GO frame; a small result follows in the same frame."""
    return GO_HEADER.pack(nbytes + 8, _GO, sequence)
