"""Reads and writes the fields of a payload, with every length checked."""

import struct
from typing import Any

MAX_TEXT_BYTES = 120


class ProtocolError(Exception):
    """The peer sent bytes that violate the wire format."""


def truncated(text: str, limit: int) -> str:
    """The text, cut at a character boundary so that its UTF-8 form has at most `limit` bytes."""
    return text.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")


def pack_text(text: str, limit: int = MAX_TEXT_BYTES) -> bytes:
    """A UTF-8 string with its length in front, truncated to the limit at a character boundary."""
    data = truncated(text, limit).encode()
    return struct.pack(">H", len(data)) + data


class FieldReader:
    """Takes fields from the front of a payload; missing and surplus bytes raise `ProtocolError`."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        self._at = 0

    def take(self, nbytes: int) -> bytes:
        """The next `nbytes` bytes."""
        start, end = self._at, self._at + nbytes
        if end > len(self._payload):
            raise ProtocolError(f"payload truncated: {len(self._payload)} bytes, expected at least {end}")
        self._at = end
        return self._payload[start:end]

    def numbers(self, layout: struct.Struct) -> tuple[Any, ...]:
        """The next numbers, as the layout says."""
        return layout.unpack(self.take(layout.size))

    def text(self, limit: int = MAX_TEXT_BYTES) -> str:
        """The next string, of at most `limit` bytes."""
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
