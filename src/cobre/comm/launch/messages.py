"""Messages from a rank to the program that started it, apart from stdout and stderr: whole lines, in order."""

import os
from collections.abc import Callable
from typing import TypeAlias

from cobre.comm.launch.output import MESSAGES, Output

OnMessage: TypeAlias = Callable[[int, str], None]
"""Takes a rank and a line, without its newline."""

MESSAGE_VARIABLE = "COBRE_LAUNCH_MESSAGES"


def send_to_parent(line: str) -> None:
    """Send a line to the `on_message` of the `launch.run` that started this rank; does nothing if there is none.

    Blocks while the pipe is full. A parent that has died is no error here: this process ends with it. Raises
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
    """The writing end of the message pipe that this rank inherited, if any."""
    descriptor = os.environ.get(MESSAGE_VARIABLE)
    return () if descriptor is None else (int(descriptor),)


def with_messages(output: Output, on_message: OnMessage | None) -> Output:
    """An output that also dispatches messages to `on_message`, which is not called again once it has raised.

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
