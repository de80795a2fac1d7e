"""Standard streams that tolerate closed descriptors, full disks and broken pipes, so that a run does not fail.

Without this, a file that a run opens would get the number of a closed stream, and whatever is printed with it.
"""

import errno
import io
import json
import os
import sys
import traceback
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import IO, Any, Self, TextIO

import click

from cobre.text import printable

STDOUT = 1
STDERR = 2


class TolerantStream(io.FileIO):
    """Standard output or error. The first failed write is reported; later writes are dropped."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self.error_stream: TolerantStream | None = None
        """The stream on which a loss is reported: not `sys.stderr`, which may share a terminal with a live table."""
        self.is_result = True
        """Whether the output is the result of the command, as for `cobre version`, and not just progress."""
        self.is_lost = False

    def write(self, data: Any, /) -> int:
        """Write the data and return its length even if writing fails; raise for a broken pipe if it is a result."""
        try:
            return super().write(data)
        except OSError as error:
            self._discard_later_writes()
            if error.errno != errno.EPIPE:
                self._report_loss(error)
            elif self.is_result:
                raise
            return memoryview(data).nbytes

    def _discard_later_writes(self) -> None:
        """Redirect the stream to /dev/null, so that buffered data does not fail again when the process ends."""
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, self.fileno())
        os.close(null)

    def _report_loss(self, error: OSError) -> None:
        self.is_lost = True
        if self.error_stream is not None:
            cause = " is closed" if error.errno == errno.EBADF else f": {error.strerror}"
            self.error_stream.write(f"cobre: printed output is lost: standard output{cause}\n".encode())


class StandardStreams:
    """A block in which `sys.stdout` and `sys.stderr` are tolerant, and no standard stream is closed."""

    def __enter__(self) -> Self:
        self._previous = (sys.stdin, sys.stdout, sys.stderr)
        if sys.stdin is None:
            sys.stdin = open(_open_null(os.O_RDONLY), closefd=False)
        # In the order of their numbers. Standard output is opened for reading, so that writing fails as if closed.
        self._output = _tolerant_stream(sys.stdout, STDOUT, os.O_RDONLY)
        error_stream = _tolerant_stream(sys.stderr, STDERR, os.O_WRONLY)
        if self._output is not None:
            self._output.error_stream = error_stream
            sys.stdout = _text(self._output, sys.stdout)
        if error_stream is not None:
            sys.stderr = _text(error_stream, sys.stderr)
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (sys.stdout, sys.stderr):
            with suppress(BrokenPipeError):
                stream.flush()
        sys.stdin, sys.stdout, sys.stderr = self._previous

    @property
    def has_lost_result(self) -> bool:
        """Whether a result of the command could not be written."""
        return self._output is not None and self._output.is_lost and self._output.is_result


def mark_output_as_optional() -> None:
    """Declare standard output as progress: the command continues if it cannot be written."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    if isinstance(raw, TolerantStream):
        raw.is_result = False


def _open_null(flags: int) -> int:
    """Open /dev/null as the lowest free descriptor, that of a closed stream; children inherit standard streams."""
    descriptor = os.open(os.devnull, flags)
    os.set_inheritable(descriptor, descriptor <= STDERR)
    return descriptor


def _tolerant_stream(stream: TextIO | None, number: int, flags: int) -> TolerantStream | None:
    """Return a tolerant stream in place of a standard one; None if a test or notebook has replaced that."""
    if stream is None:
        return TolerantStream(_open_null(flags))
    try:
        return TolerantStream(number) if isinstance(stream, io.TextIOWrapper) and stream.fileno() == number else None
    except (OSError, ValueError):  # in memory, or closed
        return None


def _text(raw: TolerantStream, replaced: TextIO | None) -> TextIO:
    if not isinstance(replaced, io.TextIOWrapper):
        return io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", "backslashreplace", line_buffering=True)
    with suppress(OSError):
        replaced.flush()
    is_line_buffered = replaced.line_buffering or replaced.write_through
    return io.TextIOWrapper(io.BufferedWriter(raw), replaced.encoding, replaced.errors, line_buffering=is_line_buffered)


# Printed text: names and messages from untrusted files are escaped for the terminal.


def echo(text: object, *, err: bool = False, file: IO[str] | None = None) -> None:
    """Print text (one line or more) with control characters escaped."""
    click.echo(printable(str(text)), err=err, file=file)


def echo_json(content: object) -> None:
    """Print a JSON object on one line, with control characters escaped."""
    click.echo(json.dumps(content).replace("\x7f", "\\u007f"))


def as_error(message: str, exit_code: int, details: Mapping[str, object] | None = None) -> dict[str, object]:
    """Return the JSON object that `--json` prints for an error, as the last line of standard output.

    details: of the error (`CobreError.details`).
    """
    fields = {"kind": "", "remedy": ""} | dict(details or {})
    return {"error": message.removeprefix("cobre: "), "exit_code": int(exit_code)} | fields


def echo_label(label: str, value: object, file: IO[str] | None = None) -> None:
    """Print a value in bold after its label."""
    click.echo(f"{label} {click.style(printable(str(value)), bold=True)}", file=file)


def show_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print a traceback with control characters escaped: the message may quote a case."""
    sys.stderr.write(printable("".join(traceback.format_exception(kind, error, trace))))
