"""Somebody who outlives us: a small process that ends the ranks' process groups when this one is killed.

On Linux each rank does so by itself, by a signal that the kernel sends (`kill_group_with_parent`). The keeper also
reaches ranks that are stopped, what crashed ranks have started, and does the work on every other platform.
"""

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import Self

from cobre.comm.launch.keeper_process import start_of

PROGRAM = Path(__file__).with_name("keeper_process.py")


class Keeper:
    """Knows the process groups that are alive; acts on them only when this process has gone."""

    def __init__(self) -> None:
        # Isolated and without site-packages: it needs nothing of them, and starts at once.
        command = [sys.executable, "-I", "-S", str(PROGRAM)]
        null = subprocess.DEVNULL
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=null, stderr=null, bufsize=0, process_group=0
        )

    def guard(self, leader: int) -> None:
        """End this process's group when this one dies; say so while it cannot be collected yet."""
        self._tell(f"+{leader} {start_of(leader)}\n")

    def release(self, leader: int) -> None:
        """Forget the group, of which nobody is left."""
        self._tell(f"-{leader}\n")

    def guard_segment(self, name: str) -> None:
        """Take this name out of shared memory when this process dies."""
        self._tell(f"={name}\n")

    def _tell(self, line: str) -> None:
        pipe = self._process.stdin
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):  # somebody has killed it: the ranks run on without it
                pipe.write(line.encode())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
