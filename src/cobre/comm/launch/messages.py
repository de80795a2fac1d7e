"""Messages from a rank to the program that started it, apart from stdout and stderr: whole lines, in order."""

import os
import sys
from collections import deque
from collections.abc import Callable
from typing import TextIO, TypeAlias

# Output of the ranks: split into lines, prefixed with the rank, and forwarded.

Output: TypeAlias = Callable[[int, str, str], None]
"""Takes a rank, "stdout" or "stderr", and text made of whole lines, each with its newline."""


MESSAGES = "messages"
"""The name of the stream that carries messages for the parent's program (`send_to_parent`)."""


CHUNK_BYTES = 1 << 16
MAX_LINE_BYTES = 1 << 26  # a longer line is forwarded in pieces: a rank must not fill the launcher's memory
PIPE_BYTES = 1 << 20  # the most that a pipe holds (/proc/sys/fs/pipe-max-size, by default)
TAIL_LINES = 20
TAIL_CHARACTERS = 500


def forward(rank: int, stream: str, text: str) -> None:
    """Print the lines on this process's stream of the same name, each prefixed with "[rank N] "."""
    # Looked up at every call: a notebook or a test may have replaced sys.stdout.
    target: TextIO | None = getattr(sys, stream)
    if target is not None:
        # One write for all lines, so that lines of several ranks do not mix.
        marked = "".join(f"[rank {rank}] {line}\n" for line in text[:-1].split("\n"))
        _write(target, marked)
        target.flush()


def discard(rank: int, stream: str, text: str) -> None:
    """Print nothing; an `output`."""


def _write(target: TextIO, text: str) -> None:
    try:
        target.write(text)
    except UnicodeEncodeError:  # the terminal's encoding lacks a character
        target.write(text.encode(target.encoding, "replace").decode(target.encoding))


class LineBuffer:
    """Splitter of a byte stream into whole lines."""

    def __init__(self) -> None:
        self._partial = bytearray()

    def feed(self, data: bytes) -> str:
        """Return the lines that `data` completes; "" if it completes none."""
        # Only the new bytes are searched, so that a line of many megabytes takes linear time.
        end = data.rfind(b"\n") + 1
        if end == 0 and len(self._partial) + len(data) <= MAX_LINE_BYTES:
            self._partial += data
            return ""
        lines = bytes(self._partial) + data[:end]
        self._partial = bytearray(data[end:])
        return _text(lines)

    def finish(self) -> str:
        """Return the last line if it has no newline, otherwise an empty string."""
        lines, self._partial = bytes(self._partial), bytearray()
        return _text(lines) if lines else ""


def _text(lines: bytes) -> str:
    text = lines.decode("utf-8", "replace")
    return text if text.endswith("\n") else text + "\n"


class Stream:
    """The parent's end of one rank's stdout, stderr or message pipe; nonblocking."""

    def __init__(self, rank: int, name: str, descriptor: int) -> None:
        self.descriptor = descriptor
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._has_ended = False
        self._rank = rank
        self._name = name
        self._lines = LineBuffer()
        os.set_blocking(descriptor, False)

    def has_ended(self) -> bool:
        """Return whether it has reached end of file, or has been finished."""
        return self._has_ended

    def read(self, output: Output) -> bool:
        """Forward what has arrived; False if there was nothing."""
        try:
            data = os.read(self.descriptor, CHUNK_BYTES)
        except BlockingIOError:
            return False
        self._has_ended = not data
        self._emit(self._lines.feed(data) if data else self._lines.finish(), output)
        return bool(data)

    def finish(self, output: Output) -> None:
        """Forward what a rank that has ended left in the pipe.

        Does not wait for end of file: a process that the rank left behind may hold the pipe open, and may even keep
        writing, hence the bound.
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


OnMessage: TypeAlias = Callable[[int, str], None]
"""Takes a rank and a line, without its newline."""


MESSAGE_VARIABLE = "COBRE_LAUNCH_MESSAGES"


def send_to_parent(line: str) -> None:
    """Send a line to the `on_message` of the `launch.run` that started this rank; does nothing if there is none.

    Blocks while the pipe is full. A parent that has died is not an error here: this process ends with it. Raises
    `ValueError` for a line with a newline in it.
    """
    descriptor = os.environ.get(MESSAGE_VARIABLE)
    if descriptor is None:
        return
    if "\n" in line:
        raise ValueError("a message must be a single line")
    data = memoryview(f"{line}\n".encode())
    try:
        # In a loop: a message may be longer than the pipe holds, and os.write() then takes only a part of it.
        while data:
            data = data[os.write(int(descriptor), data) :]
    except BrokenPipeError:
        return


def message_descriptors() -> tuple[int, ...]:
    """Return the writing end of the message pipe that this rank inherited, if any."""
    descriptor = os.environ.get(MESSAGE_VARIABLE)
    return () if descriptor is None else (int(descriptor),)


def with_messages(output: Output, on_message: OnMessage | None) -> Output:
    """Return an output that also dispatches messages to `on_message`, which is not called again once it has raised.

    Its exception stops the run; messages that arrive while ranks are being stopped must not raise a second time.
    """
    if on_message is None:
        return output
    is_listening = True

    def take(rank: int, stream: str, text: str) -> None:
        nonlocal is_listening
        if stream != MESSAGES:
            output(rank, stream, text)
        elif is_listening:
            is_listening = False  # stays so if `on_message` raises
            for line in text.removesuffix("\n").split("\n"):
                on_message(rank, line)
            is_listening = True

    return take
