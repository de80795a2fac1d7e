"""The wire format: every message, packed and parsed without any I/O.

A frame is the payload's length in 4 bytes, big-endian, a tag of 1 byte, and the payload. Numbers in the payloads are
big-endian too; the data of collectives travels in the senders' own byte order, which must be one (the hello says it).

Two connections per worker. On the *data* connection: the handshake, then for each collective CALL from the worker
(what it calls, with a small payload in the same frame), DATA from the worker (a piece of its payload), GO from the
coordinator (all calls agree, with a small result in the same frame), PART (a piece of a rank's data). On the
*control* connection: the handshake, then HEARTBEAT, GOODBYE, ABORT, VERDICT, so that a failure gets through while a
payload is stuck half-way, and no heartbeat ever lands inside a payload.

Whatever arrives is checked before memory is set aside for it: each tag has its limit.
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
MAX_UNAUTHENTICATED_BYTES = 1024  # all that a stranger can make us keep
MAX_FRAME_DATA_BYTES = 1 << 28  # a larger payload is several frames
MAX_CULPRITS = 16
MAX_REASON_BYTES = 4000
MAX_STATUS_BYTES = 400
MAX_LABEL_BYTES = 64
MAX_REFUSAL_BYTES = 1500

PREFIX = struct.Struct(">IB")
PREFIX_BYTES = PREFIX.size


class Tag(IntEnum):
    """What a frame is."""

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
    VERDICT = 0x23


HANDSHAKE_LIMITS: Mapping[int, int] = {
    Tag.HELLO: 768,
    Tag.CHALLENGE: 512,
    Tag.PROOF: PROOF_BYTES,
    Tag.WELCOME: PROOF_BYTES,
    Tag.REFUSED: 2048,
    Tag.START: 8,
}
CONTROL_LIMITS: Mapping[int, int] = {Tag.HEARTBEAT: 1024, Tag.GOODBYE: 8, Tag.ABORT: 8192, Tag.VERDICT: 16384}


def frame(tag: int, payload: bytes = b"") -> bytes:
    """The bytes of one whole frame."""
    return PREFIX.pack(len(payload), tag) + payload


class FrameParser:
    """Cuts a stream of bytes into frames; refuses a frame by its first five bytes."""

    def __init__(self, limits: Mapping[int, int]) -> None:
        self._limits = limits
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[tuple[Tag, bytes]]:
        """Take what has arrived and give the frames that are complete."""
        self._buffer += data
        frames = []
        while (one := self._next()) is not None:
            frames.append(one)
        return frames

    @property
    def needed(self) -> int:
        """How many bytes are missing for the next step, so that nobody reads past a frame."""
        if len(self._buffer) < PREFIX_BYTES:
            return PREFIX_BYTES - len(self._buffer)
        return int(PREFIX_BYTES + PREFIX.unpack_from(self._buffer)[0] - len(self._buffer))

    def _next(self) -> tuple[Tag, bytes] | None:
        if len(self._buffer) < PREFIX_BYTES:
            return None
        length, tag = PREFIX.unpack_from(self._buffer)
        limit = self._limits.get(tag)
        if limit is None:
            raise ProtocolError(f"a frame with tag {tag:#04x} is not expected here")
        if length > limit:
            raise ProtocolError(f"a {Tag(tag).name} frame of {length} bytes, at most {limit} are allowed")
        end = PREFIX_BYTES + length
        if len(self._buffer) < end:
            return None
        payload = bytes(self._buffer[PREFIX_BYTES:end])
        del self._buffer[:end]
        return Tag(tag), payload


class Link(IntEnum):
    """What a connection is for."""

    DATA = 0
    CONTROL = 1


@dataclass(frozen=True, slots=True)
class Hello:
    """What a worker says first. Everything in it is bound by the proofs that follow.

    instance: the same random bytes on both connections of one process, so that they are paired.
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
        """Read a HELLO; another protocol version is told as such, whatever follows it."""
        reader = _after_magic(payload)
        version, rank, size, pid, link = reader.numbers(cls._FIXED)
        if version != PROTOCOL_VERSION:
            raise VersionError(version)
        package, order, run_id, host = (reader.text() for _ in range(4))
        instance, nonce = reader.take(INSTANCE_BYTES), reader.take(NONCE_BYTES)
        reader.end()
        if link not in (Link.DATA, Link.CONTROL):
            raise ProtocolError(f"there is no link {link}")
        return cls(rank, size, run_id, host, pid, package, order, Link(link), instance, nonce, version)


@dataclass(frozen=True, slots=True)
class Challenge:
    """What the coordinator answers to a hello."""

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
        """Read a CHALLENGE."""
        reader = _after_magic(payload)
        version, pid = reader.numbers(cls._FIXED)
        if version != PROTOCOL_VERSION:
            raise VersionError(version)
        package, host = reader.text(), reader.text()
        nonce = reader.take(NONCE_BYTES)
        reader.end()
        return cls(nonce, host, pid, package, version)


class VersionError(ProtocolError):
    """The other side speaks another version of this protocol."""

    def __init__(self, version: int) -> None:
        super().__init__(f"the other side speaks protocol version {version}, this one {PROTOCOL_VERSION}")


def _after_magic(payload: bytes) -> FieldReader:
    reader = FieldReader(payload)
    if reader.take(len(MAGIC)) != MAGIC:
        raise ProtocolError("this is not a Cobre connection")
    return reader


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A sign of life: the last call, whether it is under way, and whom it waits for (told by the coordinator)."""

    sequence: int
    operation: int
    in_call: bool
    missing: tuple[int, ...] = ()
    label: str = ""

    _FIXED = struct.Struct(">QBBB")

    def pack(self) -> bytes:
        """The payload of a HEARTBEAT frame."""
        missing = self.missing[:MAX_CULPRITS]
        numbers = self._FIXED.pack(self.sequence, self.operation, self.in_call, len(missing))
        return numbers + struct.pack(f">{len(missing)}I", *missing) + pack_text(self.label, MAX_LABEL_BYTES)

    @classmethod
    def parse(cls, payload: bytes) -> Self:
        """Read a HEARTBEAT."""
        reader = FieldReader(payload)
        sequence, operation, in_call, count = reader.numbers(cls._FIXED)
        _check_culprits(count)
        missing, label = reader.numbers(struct.Struct(f">{count}I")), reader.text(MAX_LABEL_BYTES)
        reader.end()
        return cls(sequence, operation, bool(in_call), missing, label)


_GOODBYE = struct.Struct(">Q")


def pack_goodbye(completed: int) -> bytes:
    """The payload of a GOODBYE frame: the last call that the rank has completed."""
    return _GOODBYE.pack(completed)


def parse_goodbye(payload: bytes) -> int:
    """Read a GOODBYE."""
    if len(payload) != _GOODBYE.size:
        raise ProtocolError(f"a goodbye of {len(payload)} bytes")
    return int(_GOODBYE.unpack(payload)[0])


class FailureKind(IntEnum):
    """Why a world ended."""

    DIED = 0
    LEFT = 1
    SILENT = 2
    OVERDUE = 3
    ABORTED = 4
    MISMATCH = 5


@dataclass(frozen=True, slots=True)
class Verdict:
    """The first failure, as the coordinator tells it to all.

    sequence: calls from this number on cannot complete; what came before may still be on its way and is good.
    """

    kind: FailureKind
    sequence: int
    culprits: tuple[Peer, ...] = ()
    text: str = ""

    _FIXED = struct.Struct(">BQB")
    _CULPRIT = struct.Struct(">IQ")

    def pack(self) -> bytes:
        """The payload of a VERDICT or ABORT frame."""
        culprits = self.culprits[:MAX_CULPRITS]
        parts = [self._FIXED.pack(self.kind, self.sequence, len(culprits)), pack_text(self.text, MAX_REASON_BYTES)]
        for peer in culprits:
            parts += [
                self._CULPRIT.pack(peer.rank, peer.pid),
                pack_text(peer.host),
                pack_text(peer.status, MAX_STATUS_BYTES),
            ]
        return b"".join(parts)

    @classmethod
    def parse(cls, payload: bytes) -> Self:
        """Read a VERDICT or ABORT."""
        reader = FieldReader(payload)
        kind, sequence, count = reader.numbers(cls._FIXED)
        if kind not in FailureKind._value2member_map_:
            raise ProtocolError(f"there is no failure of kind {kind}")
        _check_culprits(count)
        text = reader.text(MAX_REASON_BYTES)
        culprits = tuple(_read_culprit(reader, cls._CULPRIT) for _ in range(count))
        reader.end()
        return cls(FailureKind(kind), sequence, culprits, text)


def _read_culprit(reader: FieldReader, numbers: struct.Struct) -> Peer:
    rank, pid = reader.numbers(numbers)
    return Peer(rank, reader.text(), pid, reader.text(MAX_STATUS_BYTES))


def _check_culprits(count: int) -> None:
    if count > MAX_CULPRITS:
        raise ProtocolError(f"{count} ranks are named, at most {MAX_CULPRITS} are allowed")


PART_HEAD = struct.Struct(">IBIQ")  # prefix, then whose data it is and where in that rank's part it starts


def part_head(source: int, offset: int, nbytes: int) -> bytes:
    """The first bytes of a PART frame; the data follows straight from the caller's buffer."""
    return PART_HEAD.pack(nbytes + PART_HEAD.size - PREFIX_BYTES, Tag.PART, source, offset)


def parse_part_head(head: bytes | bytearray, sizes: Sequence[int]) -> tuple[int, int, int]:
    """Source, offset and length of a PART, checked against what each rank has to send."""
    length, tag, source, offset = PART_HEAD.unpack(head)
    nbytes = length - (PART_HEAD.size - PREFIX_BYTES)
    if tag != Tag.PART or nbytes <= 0 or source >= len(sizes) or offset + nbytes > sizes[source]:
        raise ProtocolError(f"a frame with tag {tag:#04x} and {length} bytes where a part of the data was due")
    return source, offset, nbytes


def data_head(nbytes: int) -> bytes:
    """The first bytes of a DATA frame."""
    return PREFIX.pack(nbytes, Tag.DATA)


def parse_data_head(head: bytes | bytearray, remaining: int) -> int:
    """Length of a DATA frame, checked against what is still due."""
    length, tag = PREFIX.unpack(head)
    if tag != Tag.DATA or not 0 < length <= remaining:
        raise ProtocolError(f"a frame with tag {tag:#04x} and {length} bytes where {remaining} bytes of data were due")
    return int(length)


GO_HEAD = struct.Struct(">IBQ")  # prefix, then the call's number
_GO = int(Tag.GO)


def go_head(sequence: int, nbytes: int) -> bytes:
    """The first bytes of a GO frame; a small result follows in the same frame."""
    return GO_HEAD.pack(nbytes + 8, _GO, sequence)
