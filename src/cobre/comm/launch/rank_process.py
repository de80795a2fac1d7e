"""The parent's handle on one rank: its process, exit, output and result."""

import signal
from pathlib import Path
from typing import Protocol

from cobre.comm.launch.orphan_reaper_process import ProcessGroup, start_ticks_of
from cobre.comm.launch.output import Output, Stream
from cobre.comm.launch.payload import ResultReader
from cobre.comm.launch.rank_pipes import RankPipes


class Child(Protocol):
    """A started process, spawned by this one or forked by the fork server."""

    @property
    def pid(self) -> int:
        """The process id; not reused before `wait` has returned."""

    @property
    def exit_reason(self) -> str:
        """Why it ended, for error messages, if its exit code does not say; else empty."""

    def has_exited(self) -> bool:
        """Whether the process has ended, without reaping it if the platform allows that."""

    def wait(self) -> int:
        """Reap the process; its exit code, negative for a signal."""


class RankProcess:
    """A started rank. It leads its own process group: a terminal's Ctrl-C reaches the parent only."""

    def __init__(self, rank: int, child: Child, pipes: RankPipes, result: ResultReader) -> None:
        """Take over a started process. pipes: closed with it."""
        self.rank = rank
        self.result = result
        self.exit_code: int | None = None
        self.was_stopped = False
        self.was_frozen = False
        """Whether it was stopped by a signal or a debugger when it was told to end, and could not."""
        self.pid = child.pid
        # Now, while the process cannot have been reaped: later the pid might be that of another process.
        self._group = ProcessGroup(self.pid, start_ticks_of(self.pid))
        self._child = child
        self._pipes = pipes
        self._errors = pipes.errors  # kept for its tail, which error messages quote after the pipes are closed

    @property
    def exit_descriptor(self) -> int | None:
        """A pidfd, which becomes readable when the process ends; None if the platform has none, and after `close`."""
        return self._group.descriptor

    @property
    def streams(self) -> list[Stream]:
        """The streams that the rank writes to."""
        return self._pipes.streams

    def has_exited(self) -> bool:
        """Whether the process has ended, without reaping it if the platform allows that."""
        return self._child.has_exited()

    def stop(self, signum: signal.Signals) -> None:
        """Signal the group so that the rank ends: from now on its failure is a consequence, not the cause."""
        self.was_stopped = True
        self.was_frozen = self.was_frozen or _is_frozen(self.pid)
        self.signal_group(signum)

    def signal_group(self, signum: signal.Signals) -> None:
        """Signal the rank and everything that it has started."""
        self._group.signal(signum)

    def collect(self, output: Output) -> None:
        """Reap the process and forward the rest of its output; to be called once its process group is dead."""
        self.exit_code = self._child.wait()
        # After the exit: everything that the rank has written is in the pipes by now.
        for stream in self.streams:
            stream.finish(output)

    def close(self) -> None:
        """Close all descriptors."""
        self._pipes.close()
        self._group.close()

    @property
    def exit_reason(self) -> str:
        """Why it ended, for error messages, if its exit code does not say; else empty."""
        return self._child.exit_reason

    @property
    def stderr_tail(self) -> str:
        """The last lines that the rank wrote to stderr, for error reports."""
        return "\n".join(self._errors.tail)


def _is_frozen(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:  # it has ended, or there is no such file on this platform
        return False
    return stat.rpartition(")")[2].split()[0] in "Tt"
