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

The payloads of the handshake are in `handshake_messages`, those of the control connection in `control_messages`.

Every frame is checked against the limit of its tag before memory is allocated for it.
"""

import struct
from collections.abc import Mapping, Sequence
from enum import IntEnum

from cobre.comm.backends.tcp.wire.fields import ProtocolError

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


RING_HEADER = struct.Struct(">IBQ")  # prefix, then the sequence number of the call
DONE_BYTES = PREFIX_BYTES + 8


def ring_header(sequence: int, nbytes: int) -> bytes:
    """The first bytes of a RING frame; `nbytes` of a host's data follow."""
    return RING_HEADER.pack(nbytes + RING_HEADER.size - PREFIX_BYTES, Tag.RING, sequence)


def done_frame(sequence: int) -> bytes:
    """The DONE frame of a host that has received and passed on everything of a call."""
    return frame(Tag.DONE, sequence.to_bytes(8))


GO_HEADER = struct.Struct(">IBQ")  # prefix, then the sequence number of the call
_GO = int(Tag.GO)


def go_header(sequence: int, nbytes: int) -> bytes:
    """The first bytes of a GO frame; a small result follows in the same frame."""
    return GO_HEADER.pack(nbytes + 8, _GO, sequence)
