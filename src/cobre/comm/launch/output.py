"""What the ranks print, line by line, marked with the rank."""

import os
import sys
from collections import deque
from collections.abc import Callable
from typing import TextIO, TypeAlias

Output: TypeAlias = Callable[[int, str, str], None]
"""Takes a rank, "stdout" or "stderr", and text made of whole lines, each with its newline."""

MESSAGES = "messages"
"""The name of the stream that carries what a rank tells its parent's program, not a person."""

CHUNK_BYTES = 1 << 16
MAX_LINE_BYTES = 1 << 26
PIPE_BYTES = 1 << 20
TAIL_LINES = 20
TAIL_CHARACTERS = 500


def forward(rank: int, stream: str, text: str) -> None:
    """Print the lines on this process's own stream, each with the rank in front."""
    # Looked up at every call: a notebook or a test may have put its own object there.
    target: TextIO | None = getattr(sys, stream)
    if target is not None:
        marked = "".join(f"[rank {rank}] {line}\n" for line in text[:-1].split("\n"))
        _write(target, marked)
        target.flush()


def discard(rank: int, stream: str, text: str) -> None:
    """Print nothing."""


def _write(target: TextIO, text: str) -> None:
    try:
        target.write(text)
    except UnicodeEncodeError:  # a terminal that does not know every character
        target.write(text.encode(target.encoding, "replace").decode(target.encoding))


class LineBuffer:
    """Cuts a stream of bytes into whole lines."""

    def __init__(self) -> None:
        self._partial = bytearray()

    def feed(self, data: bytes) -> str:
        """The lines that `data` completes, "" when it completes none."""
        # Only the new bytes are searched, so a line of many megabytes costs no more than its length.
        end = data.rfind(b"\n") + 1
        if end == 0 and len(self._partial) + len(data) <= MAX_LINE_BYTES:
            self._partial += data
            return ""
        lines = bytes(self._partial) + data[:end]
        self._partial = bytearray(data[end:])
        return _text(lines)

    def finish(self) -> str:
        """The last line, where it has no newline."""
        lines, self._partial = bytes(self._partial), bytearray()
        return _text(lines) if lines else ""


def _text(lines: bytes) -> str:
    text = lines.decode("utf-8", "replace")
    return text if text.endswith("\n") else text + "\n"


class Stream:
    """The parent's end of one rank's stdout or stderr. Never blocks."""

    def __init__(self, rank: int, name: str, descriptor: int) -> None:
        self.descriptor = descriptor
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._has_ended = False
        self._rank = rank
        self._name = name
        self._lines = LineBuffer()
        os.set_blocking(descriptor, False)

    def has_ended(self) -> bool:
        """Whether nothing more can come."""
        return self._has_ended

    def read(self, output: Output) -> bool:
        """Forward what has come; False when there was nothing."""
        try:
            data = os.read(self.descriptor, CHUNK_BYTES)
        except BlockingIOError:
            return False
        self._has_ended = not data
        self._emit(self._lines.feed(data) if data else self._lines.finish(), output)
        return bool(data)

    def finish(self, output: Output) -> None:
        """Forward what the rank has left in the pipe.

        Not until the end of the stream: a process that the rank left behind may hold the pipe open, and may
        even go on writing, hence the bound.
        """
        for _ in range(PIPE_BYTES // CHUNK_BYTES):
            if self._has_ended or not self.read(output):
                break
        self._has_ended = True
        self._emit(self._lines.finish(), output)

    def _emit(self, text: str, output: Output) -> None:
        if text:
            last = text[-TAIL_LINES * TAIL_CHARACTERS :].splitlines()[-TAIL_LINES:]
            self.tail.extend(line[:TAIL_CHARACTERS] for line in last)
            output(self._rank, self._name, text)
