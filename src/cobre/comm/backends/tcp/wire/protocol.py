"""The wire format: frames, and the headers of data frames, packed and parsed without any I/O.

A frame is the length of the payload (4 bytes, big-endian), a tag (1 byte), and the payload. Numbers in payloads are
big-endian too. The data of collectives is sent in the native byte order, which must be the same on all ranks: HELLO
carries it.

There are two connections per worker. On the *data* connection, after the handshake, every collective exchanges CALL
from the worker (the signature of its call, with a small payload in the same frame), DATA from the worker (a piece of a
large payload), GO from the coordinator (all calls agree, with a small result in the same frame) and PART from the
coordinator (a piece of a rank's data). On the *control* connection, after the handshake, there are HEARTBEAT, GOODBYE,
ABORT and FAILURE. A failure therefore gets through while a payload is stuck halfway, and no heartbeat ever lands inside
a payload.

Large payloads may travel between hosts instead, on connections between neighbours in a *ring*, as RING frames. Then the
data connection carries CALL, GO, and in the end DONE: the host has received and passed on everything.

The payloads of the handshake and of the control connection are in `messages`.

Every frame is checked against the limit of its tag before memory is allocated for it.
"""

import hashlib
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Any, Self

from cobre.comm.types import Dtype, Operation, ReduceOp

# Reads and writes the fields of a payload, with every length checked.

MAX_TEXT_BYTES = 120


class ProtocolError(Exception):
    """The peer sent bytes that violate the wire format."""


def truncated(text: str, limit: int) -> str:
    """Cut the text at a character boundary so that its UTF-8 form has at most `limit` bytes."""
    return text.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")


def pack_text(text: str, limit: int = MAX_TEXT_BYTES) -> bytes:
    """Pack a UTF-8 string with its length in front, truncated to the limit at a character boundary."""
    data = truncated(text, limit).encode()
    return struct.pack(">H", len(data)) + data


class FieldReader:
    """Reader of fields from the front of a payload; missing and surplus bytes raise `ProtocolError`."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        self._at = 0

    def take(self, nbytes: int) -> bytes:
        """Return the next `nbytes` bytes."""
        start, end = self._at, self._at + nbytes
        if end > len(self._payload):
            raise ProtocolError(f"payload truncated: {len(self._payload)} bytes, expected at least {end}")
        self._at = end
        return self._payload[start:end]

    def numbers(self, layout: struct.Struct) -> tuple[Any, ...]:
        """Return the next numbers, read by the layout."""
        return layout.unpack(self.take(layout.size))

    def text(self, limit: int = MAX_TEXT_BYTES) -> str:
        """Return the next string, of at most `limit` bytes."""
        (length,) = struct.unpack(">H", self.take(2))
        if length > limit:
            raise ProtocolError(f"string of {length} bytes exceeds the limit of {limit}")
        try:
            return self.take(length).decode("utf-8")
        except UnicodeDecodeError:
            raise ProtocolError("string is not valid UTF-8") from None

    def end(self) -> None:
        """Raise if bytes are left over."""
        if self._at != len(self._payload):
            raise ProtocolError(f"{len(self._payload) - self._at} unexpected bytes at the end of the payload")


PROOF_BYTES = 32
MAX_UNAUTHENTICATED_BYTES = 1024  # the most that a stranger can make us buffer
MAX_FRAME_DATA_BYTES = 1 << 28  # a larger payload is split into several frames
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
    RING = 0x14
    DONE = 0x15
    HEARTBEAT = 0x20
    GOODBYE = 0x21
    ABORT = 0x22
    FAILURE = 0x23


HANDSHAKE_LIMITS: Mapping[int, int] = {
    Tag.HELLO: 768 + PROOF_BYTES,
    Tag.CHALLENGE: 512,
    Tag.PROOF: PROOF_BYTES,
    Tag.WELCOME: PROOF_BYTES,
    Tag.REFUSED: 2048,
    Tag.START: 8,
}

CONTROL_LIMITS: Mapping[int, int] = {Tag.HEARTBEAT: 1024, Tag.GOODBYE: 8, Tag.ABORT: 8192, Tag.FAILURE: 16384}


def frame(tag: int, payload: bytes = b"") -> bytes:
    """Pack one complete frame."""
    return PREFIX.pack(len(payload), tag) + payload


class FrameParser:
    """Parser of a byte stream into frames; rejects a frame as soon as its five-byte prefix has arrived.

    limits: the longest payload in bytes, by expected tag.
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
        """Number of bytes that complete the prefix or the frame; a reader that reads no more stays within the frame."""
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


PART_HEADER = struct.Struct(">IBIQ")  # prefix, then the rank whose data it is, and its offset in that rank's part


def part_header(source: int, offset: int, nbytes: int) -> bytes:
    """Pack the first bytes of a PART frame; the data follows straight from the caller's buffer."""
    return PART_HEADER.pack(nbytes + PART_HEADER.size - PREFIX_BYTES, Tag.PART, source, offset)


def parse_part_header(header: bytes | bytearray, sizes: Sequence[int]) -> tuple[int, int, int]:
    """Return source, offset and length of a PART, checked against the size of every rank's part."""
    length, tag, source, offset = PART_HEADER.unpack(header)
    nbytes = length - (PART_HEADER.size - PREFIX_BYTES)
    if tag != Tag.PART or nbytes <= 0 or source >= len(sizes) or offset + nbytes > sizes[source]:
        raise ProtocolError(f"expected a PART frame, got tag {tag:#04x} with {length} bytes")
    return source, offset, nbytes


def data_header(nbytes: int) -> bytes:
    """Pack the first bytes of a DATA frame; `nbytes` of payload follow."""
    return PREFIX.pack(nbytes, Tag.DATA)


def parse_data_header(header: bytes | bytearray, remaining: int) -> int:
    """Return the length of a DATA frame, checked against the bytes that are still missing."""
    length, tag = PREFIX.unpack(header)
    if tag != Tag.DATA or not 0 < length <= remaining:
        raise ProtocolError(
            f"expected a DATA frame of at most {remaining} bytes, got tag {tag:#04x} with {length} bytes"
        )
    return int(length)


RING_HEADER = struct.Struct(">IBQ")  # prefix, then the sequence number of the call
DONE_BYTES = PREFIX_BYTES + 8


def ring_header(sequence: int, nbytes: int) -> bytes:
    """Pack the first bytes of a RING frame; `nbytes` of a host's data follow."""
    return RING_HEADER.pack(nbytes + RING_HEADER.size - PREFIX_BYTES, Tag.RING, sequence)


def done_frame(sequence: int) -> bytes:
    """Pack the DONE frame of a host that has received and passed on everything of a call."""
    return frame(Tag.DONE, sequence.to_bytes(8))


GO_HEADER = struct.Struct(">IBQ")  # prefix, then the sequence number of the call
_GO = int(Tag.GO)


def go_header(sequence: int, nbytes: int) -> bytes:
    """Pack the first bytes of a GO frame; a small result follows in the same frame."""
    return GO_HEADER.pack(nbytes + 8, _GO, sequence)


# The header of a CALL frame: the signature that all ranks must agree on before any data is delivered (clause 2).

DTYPE_TEXT_BYTES = 40
OWN = struct.Struct(">Q")  # what may differ between ranks: how many elements this one sends

# What must be equal: sequence, operation, reduction, root, total, hash of the counts, dtype as hash and as text.
SIGNATURE = struct.Struct(f">QBBIQQ8s{DTYPE_TEXT_BYTES}s")
CALL_BYTES = OWN.size + SIGNATURE.size
HEADER_BYTES = PREFIX_BYTES + CALL_BYTES
HEADER = struct.Struct(f"{PREFIX.format}{OWN.format[1:]}{SIGNATURE.format[1:]}")  # all three at once
SIGNATURE_AT = PREFIX_BYTES + OWN.size
_CALL = int(Tag.CALL)  # a plain int: looking up an enum member costs as much as packing the header


@dataclass(frozen=True, slots=True)
class CallHeader:
    """One rank's call, parsed from its header for an error message."""

    sequence: int
    operation: int
    reduction: int
    root: int
    count: int
    total: int
    counts_hash: int
    dtype: str

    @classmethod
    def parse(cls, header: bytes | bytearray | memoryview) -> Self:
        """Parse the header of a CALL frame; raises `ProtocolError` for any other frame."""
        length, tag = PREFIX.unpack_from(header)
        if tag != Tag.CALL or length < CALL_BYTES:
            raise ProtocolError(f"expected a CALL frame, got tag {tag:#04x} with {length} bytes")
        (count,) = OWN.unpack_from(header, PREFIX_BYTES)
        sequence, operation, reduction, root, total, counts, _, dtype = SIGNATURE.unpack_from(header, SIGNATURE_AT)
        name = dtype.rstrip(b"\0").decode("utf-8", "replace")
        return cls(sequence, operation, reduction, root, count, total, counts, name)

    def __str__(self) -> str:
        return f"{title_of(self.operation)}{self._details()}"

    def _details(self) -> str:
        if self.operation == Operation.ALLGATHERV:
            return f" ({self.dtype}, {self.count} of {self.total}, counts {self.counts_hash & 0xFFFF:x})"
        if self.operation == Operation.ALLREDUCE:
            return f" ({self.dtype}, {self.total}, {ReduceOp(self.reduction % len(ReduceOp)).name})"
        if self.operation == Operation.BROADCAST:
            return f" ({self.dtype}, {self.total}, root {self.root})"
        if self.operation == Operation.CREATE_SHARED_REGION:
            return f" ({self.dtype}, {self.total})"
        return ""


def title_of(operation: int) -> str:
    """Return the name of an operation, or its number if unknown: an error message must not raise in turn."""
    try:
        return Operation(operation).title
    except ValueError:
        return f"operation {operation}"


NO_DTYPE = (b"", b"")


def call_header(
    sequence: int,
    operation: int,
    *,
    inline_bytes: int = 0,
    count: int = 0,
    total: int = 0,
    dtype: tuple[bytes, bytes] = NO_DTYPE,
    counts_hash: int = 0,
    root: int = 0,
    reduction: int = 0,
) -> bytes:
    """Pack the first bytes of a CALL frame; a payload of `inline_bytes` follows in the same frame."""
    digest, name = dtype
    return HEADER.pack(
        CALL_BYTES + inline_bytes, _CALL, count, sequence, operation, reduction, root, total, counts_hash, digest, name
    )


@lru_cache(maxsize=256)
def describe_dtype(dtype: Dtype) -> tuple[bytes, bytes]:
    """Return a dtype's hash, which ranks compare, and its name, which error messages show."""
    # A structured dtype's layout is more than its name: offsets and padding decide what the bytes mean.
    layout = f"{dtype!r} {dtype.itemsize} {dtype.fields!r}"
    digest = hashlib.blake2b(layout.encode(), digest_size=8).digest()
    name = str(dtype).encode()
    return digest, name if len(name) <= DTYPE_TEXT_BYTES else name[: DTYPE_TEXT_BYTES - 3] + b"..."


@lru_cache(maxsize=64)
def hash_counts(counts: Sequence[int]) -> int:
    """Hash all counts, with the same result in every process, unlike Python's own `hash`."""
    packed = struct.pack(f">{len(counts)}Q", *counts)
    return int.from_bytes(hashlib.blake2b(packed, digest_size=8).digest())
