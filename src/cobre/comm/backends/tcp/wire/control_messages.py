"""The messages of the control connection: heartbeats, goodbyes and failures, packed and parsed without any I/O."""

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Self

from cobre.comm.backends.tcp.wire.fields import FieldReader, ProtocolError, pack_text
from cobre.comm.errors import Peer

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
