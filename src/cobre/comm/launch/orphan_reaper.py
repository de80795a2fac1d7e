"""The orphan reaper: a small process that outlives this one and kills the ranks' process groups when this one dies.

On Linux each rank does so by itself, by a signal that the kernel sends (`kill_group_with_parent`). The reaper also gets
ranks that are stopped and what crashed ranks have started, and does all of the work on other platforms.
"""

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import Self

from cobre.comm.launch.orphan_reaper_process import start_ticks_of

PROGRAM = Path(__file__).with_name("orphan_reaper_process.py")


class OrphanReaper:
    """The launcher's end of the reaper, which knows the groups that are alive and acts only when the launcher is gone.

    The pipe to its stdin carries the registrations and is the signal at once: when this process dies, however it does,
    the kernel closes the writing end, and end of file is what the reaper waits for.
    """

    def __init__(self) -> None:
        # Isolated and without site-packages: it needs nothing of them, and starts at once.
        command = [sys.executable, "-I", "-S", str(PROGRAM)]
        null = subprocess.DEVNULL
        # A process group of its own: a terminal's Ctrl-C, or a kill of the launcher's group, must not end it first.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=null, stderr=null, bufsize=0, process_group=0
        )

    def register(self, leader: int) -> None:
        """End this process's group when this one dies; say so while it cannot be collected yet."""
        self._send(f"+{leader} {start_ticks_of(leader)}\n")

    def unregister(self, leader: int) -> None:
        """Forget the group, of which nobody is left."""
        self._send(f"-{leader}\n")

    def register_segment(self, name: str) -> None:
        """Take this name out of shared memory when this process dies."""
        self._send(f"={name}\n")

    def _send(self, line: str) -> None:
        pipe = self._process.stdin
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):  # somebody has killed it: the ranks run on without it
                pipe.write(line.encode())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # Killed before the pipe is closed: at end of file it would take the launcher for dead and kill the groups.
        self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
