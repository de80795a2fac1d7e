"""The command `cobre` as a shell starts it: with a pipe, or on a terminal of a given size."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from dataclasses import dataclass
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
QUICK_CASE = EXAMPLES / "two_reservoirs"
LIMIT_S = 100.0
COMMAND = (sys.executable, "-m", "cobre.cli")
ONE_PROCESS = ("--backend", "local", "--threads", "1")


def cobre(*words, timeout=LIMIT_S, **environ):
    """Run a command to its end, without a terminal."""
    return subprocess.run(
        [*COMMAND, *map(str, words)],
        check=False,
        capture_output=True,
        text=True,
        timeout=timeout,
        stdin=subprocess.DEVNULL,
        env=_environment(environ),
    )


def _environment(changes):
    return {**os.environ, "COLUMNS": "", "LINES": "", "NO_COLOR": "", **changes}


@dataclass
class Screen:
    """Output of a command on its terminal, and its exit code."""

    code: int
    raw: str

    @property
    def text(self):
        """Return the text without control sequences for cursor and colours."""
        return re.sub(r"\x1b(\[[0-9;?]*[A-Za-z]|[()][A-Z0-9]|[=>])", "", self.raw).replace("\r", "")

    @property
    def has_colours(self):
        return re.search(r"\x1b\[[0-9;]*(3[0-7]|9[0-7]|38)[;m]", self.raw) is not None


class TerminalRun:
    """A command on a pseudo-terminal."""

    def __init__(self, *words, columns=100, rows=30, term="xterm-256color", **environ):
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = subprocess.Popen(
            [*COMMAND, *map(str, words)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=_environment({"TERM": term, **environ}),
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - so that Ctrl-C is a signal
        )
        os.close(slave)
        self._written = bytearray()

    def type(self, keys):
        os.write(self._master, keys.encode())

    def wait_for(self, pattern, limit_s=LIMIT_S):
        """Read until the screen has shown a text."""
        deadline = time.monotonic() + limit_s
        while not re.search(pattern, self._screen().text):
            if not self._read(deadline):
                self.process.kill()
                self.process.wait()
                raise AssertionError(f"{pattern!r} was never shown: {self._screen().text[-2000:]}")

    def end(self, limit_s=LIMIT_S):
        """Read until the command ends by itself."""
        deadline = time.monotonic() + limit_s
        while self._read(deadline):
            pass
        try:
            self.process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"it did not end: {self._screen().text[-2000:]}") from None
        finally:
            os.close(self._master)
        return self._screen()

    def _screen(self):
        return Screen(self.process.returncode, self._written.decode("utf-8", "replace"))

    def _read(self, deadline):
        """Read once; return whether more may follow."""
        ready, _, _ = select.select([self._master], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return False
        try:
            content = os.read(self._master, 65536)
        except OSError:  # the other side is closed
            return False
        self._written += content
        return bool(content)


def on_terminal(*words, **settings):
    """Run a command to its end on a terminal."""
    return TerminalRun(*words, **settings).end()
