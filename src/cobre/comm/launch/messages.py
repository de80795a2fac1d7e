"""A way from a rank's program to its parent's program, beside stdout and stderr: whole lines, in order."""

import os
from collections.abc import Callable
from typing import TypeAlias

from cobre.comm.launch.output import MESSAGES, Output

OnMessage: TypeAlias = Callable[[int, str], None]
"""Takes a rank and a line, without its newline."""

MESSAGE_VARIABLE = "COBRE_LAUNCH_MESSAGES"


def tell_parent(line: str) -> None:
    """Send a line to the `on_message` of the `launch.run` that started this rank; nothing happens where there is none.

    Waits when the parent is slow to read. A parent that has gone is no error here: this process goes with it.
    """
    descriptor = os.environ.get(MESSAGE_VARIABLE)
    if descriptor is None:
        return
    if "\n" in line:
        raise ValueError("a message is one line")
    data = memoryview(f"{line}\n".encode())
    try:
        while data:
            data = data[os.write(int(descriptor), data) :]
    except BrokenPipeError:
        return


def message_descriptors() -> tuple[int, ...]:
    """The writing end that this rank inherited, if any."""
    descriptor = os.environ.get(MESSAGE_VARIABLE)
    return () if descriptor is None else (int(descriptor),)


def with_messages(output: Output, on_message: OnMessage | None) -> Output:
    """An output that knows messages as well. A listener that has raised is told no more while the ranks are ended."""
    if on_message is None:
        return output
    listens = True

    def take(rank: int, stream: str, text: str) -> None:
        nonlocal listens
        if stream != MESSAGES:
            output(rank, stream, text)
        elif listens:
            listens = False
            for line in text.removesuffix("\n").split("\n"):
                on_message(rank, line)
            listens = True

    return take
