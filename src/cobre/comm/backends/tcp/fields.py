"""Reading and writing the fields of a payload, with every length checked."""

import struct
from typing import Any

MAX_TEXT_BYTES = 120


class ProtocolError(Exception):
    """What arrived is not what the wire format allows."""


def pack_text(text: str, limit: int = MAX_TEXT_BYTES) -> bytes:
    """A text with its length in front, cut to the limit at a character's border."""
    data = text.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore").encode()
    return struct.pack(">H", len(data)) + data


class FieldReader:
    """Takes fields from the front of a payload; too few bytes or bytes left over are errors."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        self._at = 0

    def take(self, nbytes: int) -> bytes:
        """The next bytes."""
        start, end = self._at, self._at + nbytes
        if end > len(self._payload):
            raise ProtocolError(f"a payload of {len(self._payload)} bytes ends before its fields do")
        self._at = end
        return self._payload[start:end]

    def numbers(self, layout: struct.Struct) -> tuple[Any, ...]:
        """The next numbers."""
        return layout.unpack(self.take(layout.size))

    def text(self, limit: int = MAX_TEXT_BYTES) -> str:
        """The next text."""
        (length,) = struct.unpack(">H", self.take(2))
        if length > limit:
            raise ProtocolError(f"a text of {length} bytes, at most {limit} are allowed")
        try:
            return self.take(length).decode("utf-8")
        except UnicodeDecodeError:
            raise ProtocolError("a text that is not UTF-8") from None

    def end(self) -> None:
        """Nothing may follow."""
        if self._at != len(self._payload):
            raise ProtocolError(f"{len(self._payload) - self._at} bytes follow where the payload should end")
