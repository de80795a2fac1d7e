"""The messages of the handshake: who a process is, packed and parsed without any I/O."""

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Self

from cobre.comm.backends.tcp.wire.fields import FieldReader, ProtocolError, pack_text

MAGIC = b"COBRE-TCP"
PROTOCOL_VERSION = 5
NONCE_BYTES = 32
INSTANCE_BYTES = 16


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
