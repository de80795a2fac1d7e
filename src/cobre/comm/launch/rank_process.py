"""The parent's hold on one rank: its process, its exit, its output, its result."""

import signal
from typing import Protocol

from cobre.comm.launch.orphan_reaper_process import ProcessGroup, start_ticks_of
from cobre.comm.launch.output import Output, Stream
from cobre.comm.launch.payload import ResultReader
from cobre.comm.launch.rank_pipes import RankPipes


class Child(Protocol):
    """A started process, spawned by this one or forked from the template."""

    @property
    def pid(self) -> int:
        """Nobody else has this number before `wait` has returned."""

    @property
    def exit_reason(self) -> str:
        """Why it ended, for people, where its exit code does not say; else empty."""

    def has_exited(self) -> bool:
        """Whether the process has ended, without collecting it where the platform can tell."""

    def wait(self) -> int:
        """Collect it: its exit code, negative for a signal."""


class RankProcess:
    """A started rank. It leads its own process group: a terminal's Ctrl-C reaches the parent only."""

    def __init__(self, rank: int, child: Child, pipes: RankPipes, result: ResultReader) -> None:
        """`pipes` are taken over."""
        self.rank = rank
        self.result = result
        self.exit_code: int | None = None
        self.was_stopped = False
        self.pid = child.pid
        self._group = ProcessGroup(self.pid, start_ticks_of(self.pid))
        self._child = child
        self._pipes = pipes
        self._errors = pipes.errors

    @property
    def exit_descriptor(self) -> int | None:
        """Becomes readable when the process ends; None where the platform has none, and after `close`."""
        return self._group.descriptor

    @property
    def streams(self) -> list[Stream]:
        """What the rank writes."""
        return self._pipes.streams

    def has_exited(self) -> bool:
        """Whether the process has ended, without collecting it where the platform can tell."""
        return self._child.has_exited()

    def signal_group(self, signum: signal.Signals) -> None:
        """Reach the rank and everything it has started."""
        self._group.signal(signum)

    def collect(self, output: Output) -> None:
        """Take the exit code and forward the rest of the output; when the rank and its processes have ended."""
        self.exit_code = self._child.wait()
        for stream in self.streams:
            stream.finish(output)

    def close(self) -> None:
        """Give the descriptors back."""
        self._pipes.close()
        self._group.close()

    @property
    def exit_reason(self) -> str:
        """Why it ended, for people, where its exit code does not say; else empty."""
        return self._child.exit_reason

    @property
    def stderr_tail(self) -> str:
        """The last lines that the rank wrote to stderr, for error reports."""
        return "\n".join(self._errors.tail)
