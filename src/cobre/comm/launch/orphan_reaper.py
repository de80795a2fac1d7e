"""The orphan reaper: a small process that outlives the launcher, and kills the ranks' process groups if that dies.

On Linux each rank also does so by itself, at a signal from the kernel (`kill_group_with_parent`). The reaper covers
ranks that are stopped and processes that crashed ranks have left, and does all of the work on other platforms.
"""

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import Self

from cobre.comm.launch.orphan_reaper_process import start_ticks_of

PROGRAM = Path(__file__).with_name("orphan_reaper_process.py")


class OrphanReaper:
    """The launcher's handle on the reaper, which acts only once the launcher is gone.

    The pipe to the reaper's stdin carries registrations, and is the trigger as well: when this process dies, by
    whatever cause, the kernel closes the writing end, and end of file is what the reaper waits for.
    """

    def __init__(self) -> None:
        # Isolated and without site-packages: it needs none of them, and starts faster.
        command = [sys.executable, "-I", "-S", str(PROGRAM)]
        null = subprocess.DEVNULL
        # In its own process group: a terminal's Ctrl-C, or a kill of the launcher's group, must not end it first.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=null, stderr=null, bufsize=0, process_group=0
        )

    def register(self, leader: int) -> None:
        """Have the process group of `leader` killed if this process dies; to be called before `leader` is reaped."""
        self._send(f"+{leader} {start_ticks_of(leader)}\n")

    def unregister(self, leader: int) -> None:
        """Forget a group that has no members left."""
        self._send(f"-{leader}\n")

    def register_segment(self, name: str) -> None:
        """Have this shared memory segment unlinked if this process dies."""
        self._send(f"={name}\n")

    def _send(self, line: str) -> None:
        pipe = self._process.stdin
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):  # it was killed: the ranks run on without it
                pipe.write(line.encode())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # Killed before the pipe is closed: at end of file it would assume that the launcher is dead.
        self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
