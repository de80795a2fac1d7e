"""The parent's handle on one rank: its process, exit, output and result."""

import signal
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Protocol, Self

from cobre.comm.launch.environment import Environment
from cobre.comm.launch.fork_server import ForkServer, can_fork
from cobre.comm.launch.messages import Output, Stream
from cobre.comm.launch.orphan_reaper import OrphanReaper
from cobre.comm.launch.orphan_reaper_process import ProcessGroup, start_ticks_of
from cobre.comm.launch.payload import ResultReader
from cobre.comm.launch.signals import interrupts_blocked
from cobre.comm.launch.spawning import RankPipes, RankSpec, SharedDescriptors, spawn


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


# Starts the ranks of a run, one after the other: forked by a fork server, or each as an interpreter of its own.
#
# A fork server is used if it can be (Linux with pidfds, several ranks, no thread after loading); otherwise each rank
# is spawned, with the same result and a slower start.


class RankStarter:
    """Starts the ranks of one run. environments, results: by rank. Its `with` block ends the fork server."""

    def __init__(
        self,
        environments: Sequence[Environment],
        results: Sequence[IO[bytes]],
        shared: SharedDescriptors,
        *,
        has_messages: bool,
    ) -> None:
        self._environments = environments
        self._results = results
        self._shared = shared
        self._has_messages = has_messages
        self._first_pipes: RankPipes | None = None
        self._fork_server: ForkServer | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        if self._first_pipes is not None:
            self._first_pipes.close()

    def load(self, modules: Sequence[str], reaper: OrphanReaper, output: Output, deadline: float | None) -> None:
        """Start the fork server and let it import `modules`, if ranks can be forked; a single rank gains nothing by it.

        output: called with what is printed meanwhile. Raises `TimeoutError` at the deadline.
        """
        if len(self._environments) == 1 or not can_fork():
            return
        # What is the same for all ranks; the rest is sent with each fork. Thread limits must be set before BLAS is
        # loaded.
        common = dict(set.intersection(*(set(variables.items()) for variables in self._environments)))
        self._first_pipes = RankPipes(0, has_messages=self._has_messages)
        # Ctrl-C between the start and the registration would leave a process that nobody kills.
        with interrupts_blocked():
            fork_server = self._stack.enter_context(ForkServer(common, self._shared, self._first_pipes, modules))
            reaper.register(fork_server.pid)
            # Runs before the fork server is reaped, as an ExitStack closes in reverse order: once it is reaped, its pid
            # may belong to another process, which the reaper must not kill.
            self._stack.callback(reaper.unregister, fork_server.pid)
        if fork_server.wait_until_loaded(self._first_pipes, output, deadline):
            self._fork_server = fork_server
        else:
            self._stack.close()  # end the fork server now: it would only hold memory while ranks load by themselves

    def start(self, rank: int) -> RankProcess:
        """Start this rank; to be called for 0, 1, 2, ... in turn. Raises `OSError` and `ForkServerGoneError`."""
        # Rank 0 gets the pipes that the fork server has used for its own output while it was loading.
        pipes = self._take_first_pipes() or RankPipes(rank, has_messages=self._has_messages)
        try:
            spec = RankSpec(rank, self._environments[rank], self._results[rank].fileno(), pipes)
            child = self._fork_server.fork(spec) if self._fork_server is not None else spawn(spec, self._shared)
        except BaseException:
            pipes.close()
            raise
        pipes.close_writing_ends()
        return RankProcess(rank, child, pipes, ResultReader(self._results[rank]))

    def _take_first_pipes(self) -> RankPipes | None:
        pipes, self._first_pipes = self._first_pipes, None
        return pipes
