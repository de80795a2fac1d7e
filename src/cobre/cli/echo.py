"""What commands print for people: text that may hold names and messages of others, made safe for a terminal."""

import json
import sys
import traceback
from collections.abc import Mapping
from types import TracebackType
from typing import IO

import click

from cobre.printable import printable


def echo(text: object, *, err: bool = False, file: IO[str] | None = None) -> None:
    """Print text (one line or more) with control characters escaped."""
    click.echo(printable(str(text)), err=err, file=file)


def echo_json(content: object) -> None:
    """Print one JSON object, for a program; terminals find nothing in it to act on."""
    click.echo(json.dumps(content).replace("\x7f", "\\u007f"))


def as_error(words: str, exit_code: int, details: Mapping[str, object] | None = None) -> dict[str, object]:
    """Return what `--json` prints instead of an answer, in the last line of standard output.

    details: of the error (`CobreError.details`); its kind is empty where the command line itself is wrong.
    """
    facts = {"kind": "", "remedy": ""} if details is None else dict(details)
    return {"error": words.removeprefix("cobre: "), "exit_code": int(exit_code)} | facts


def echo_label(label: str, value: object, file: IO[str] | None = None) -> None:
    """Print a value in bold after its label."""
    click.echo(f"{label} {click.style(printable(str(value)), bold=True)}", file=file)


def show_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print a traceback as the interpreter does, with control characters escaped: the message may quote a case."""
    sys.stderr.write(printable("".join(traceback.format_exception(kind, error, trace))))
