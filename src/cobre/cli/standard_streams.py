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

from cobre.wording import printable

STDOUT = 1
STDERR = 2


class TolerantStream(io.FileIO):
    """Standard output or error. A failed write is reported once, and later writes are dropped."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self.error_stream: TolerantStream | None = None
        """The stream that reports a loss. Not `sys.stderr`, which may be drawn over this stream."""
        self.is_answer = True
        """Whether the command was called for what it prints here; otherwise it is called for what it does."""
        self.is_lost = False

    def write(self, data: Any, /) -> int:
        """Write the data and report all of it as written; exit on a broken pipe where the answer is lost."""
        try:
            return super().write(data)
        except OSError as error:
            self._give_up()
            if error.errno != errno.EPIPE:
                self._report_loss(error)
            elif self.is_answer:
                raise
            return memoryview(data).nbytes

    def _give_up(self) -> None:
        """Redirect the stream to /dev/null, so that buffered data does not fail again when the process ends."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.fileno())
        os.close(nowhere)

    def _report_loss(self, error: OSError) -> None:
        self.is_lost = True
        if self.error_stream is not None:
            why = " is closed" if error.errno == errno.EBADF else f": {error.strerror}"
            self.error_stream.write(f"cobre: printed output is lost: standard output{why}\n".encode())


class StandardStreams:
    """A block in which the streams of `sys` can be written to, whatever they were before."""

    def __enter__(self) -> Self:
        self._previous = (sys.stdin, sys.stdout, sys.stderr)
        if sys.stdin is None:
            sys.stdin = open(_open_null(os.O_RDONLY), closefd=False)
        # Opened for reading: to write there fails, as it does where a stream is closed. In the order of their numbers.
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
    def has_lost_answer(self) -> bool:
        """Whether output that the command was called for has been lost."""
        return self._output is not None and self._output.is_lost and self._output.is_answer


def mark_output_as_optional() -> None:
    """Declare standard output as progress messages: the command continues when they cannot be written."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    if isinstance(raw, TolerantStream):
        raw.is_answer = False


def _open_null(flags: int) -> int:
    """Open /dev/null as the lowest free descriptor, that of a closed stream; children inherit it as any other."""
    descriptor = os.open(os.devnull, flags)
    os.set_inheritable(descriptor, descriptor <= STDERR)
    return descriptor


def _tolerant_stream(stream: TextIO | None, number: int, flags: int) -> TolerantStream | None:
    """Return a tolerant stream in place of a standard one; None for a stream that a test or notebook has replaced."""
    if stream is None:
        return TolerantStream(_open_null(flags))
    try:
        return TolerantStream(number) if isinstance(stream, io.TextIOWrapper) and stream.fileno() == number else None
    except (OSError, ValueError):  # in memory, or closed
        return None


def _text(raw: TolerantStream, like: TextIO | None) -> TextIO:
    if not isinstance(like, io.TextIOWrapper):
        return io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", "backslashreplace", line_buffering=True)
    with suppress(OSError):
        like.flush()
    is_prompt = like.line_buffering or like.write_through
    return io.TextIOWrapper(io.BufferedWriter(raw), like.encoding, like.errors, line_buffering=is_prompt)


# Printed text: names and messages from untrusted files are escaped for the terminal.


def echo(text: object, *, err: bool = False, file: IO[str] | None = None) -> None:
    """Print text (one line or more) with control characters escaped."""
    click.echo(printable(str(text)), err=err, file=file)


def echo_json(content: object) -> None:
    """Print one JSON object, for a program; control characters are escaped."""
    click.echo(json.dumps(content).replace("\x7f", "\\u007f"))


def as_error(words: str, exit_code: int, details: Mapping[str, object] | None = None) -> dict[str, object]:
    """Return what `--json` prints instead of an answer, in the last line of standard output.

    details: of the error (`CobreError.details`).
    """
    facts = {"kind": "", "remedy": ""} | dict(details or {})
    return {"error": words.removeprefix("cobre: "), "exit_code": int(exit_code)} | facts


def echo_label(label: str, value: object, file: IO[str] | None = None) -> None:
    """Print a value in bold after its label."""
    click.echo(f"{label} {click.style(printable(str(value)), bold=True)}", file=file)


def show_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print a traceback as the interpreter does, with control characters escaped: the message may quote a case."""
    sys.stderr.write(printable("".join(traceback.format_exception(kind, error, trace))))
