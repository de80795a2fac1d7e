"""Ranks as processes: start them, forward their output, reap them, and stop all of them at the first failure."""

import contextlib
import logging
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Protocol, Self

from cobre.comm.launch.fork_server import ForkServer, can_fork
from cobre.comm.launch.messages import Output, Stream, discard
from cobre.comm.launch.orphan_reaper import ProcessGroup, start_ticks_of, state_of
from cobre.comm.launch.payload import ResultReader
from cobre.comm.launch.signals import interrupts_blocked
from cobre.comm.launch.spawning import Environment, RankPipes, RankSpec, SharedDescriptors, spawn
from cobre.comm.types import MAX_SELECT_S


class Child(Protocol):
    """A started process, spawned by this one or forked by the fork server."""

    @property
    def pid(self) -> int:
        """The process id; not reused before `wait` has returned."""

    @property
    def exit_reason(self) -> str:
        """Reason for its end, for error messages, if the exit code does not give it; else empty."""

    def has_exited(self) -> bool:
        """Return whether the process has ended, without reaping it if the platform allows that."""

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
        """Whether it was stopped by a signal or a debugger when it was told to end, and so could not."""
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
        """Return whether the process has ended, without reaping it if the platform allows that."""
        return self._child.has_exited()

    def stop(self, signum: signal.Signals) -> None:
        """Signal the group so that the rank ends: from now on its failure is a consequence, not the cause."""
        self.was_stopped = True
        self.was_frozen = self.was_frozen or state_of(self.pid) in ("T", "t")
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
        """Reason for its end, for error messages, if the exit code does not give it; else empty."""
        return self._child.exit_reason

    @property
    def stderr_tail(self) -> str:
        """The last lines that the rank wrote to stderr, for error reports."""
        return "\n".join(self._errors.tail)


# The orphan reaper: a small process that outlives the launcher, and kills the ranks' process groups if that dies.
#
# On Linux each rank also does so by itself, at a signal from the kernel (`kill_group_with_parent`). The reaper covers
# ranks that are stopped and processes that crashed ranks have left, and does all of the work on other platforms.

REAPER_PROGRAM = Path(__file__).with_name("orphan_reaper.py")


class OrphanReaper:
    """The launcher's handle on the reaper, which acts only once the launcher is gone.

    The pipe to the reaper's stdin carries registrations, and is the trigger as well: when this process dies, by
    whatever cause, the kernel closes the writing end, and end of file is what the reaper waits for.
    """

    def __init__(self) -> None:
        # Isolated and without site-packages: it needs none of them, and starts faster.
        command = [sys.executable, "-I", "-S", str(REAPER_PROGRAM)]
        null = subprocess.DEVNULL
        # In its own process group: a terminal's Ctrl-C, or a kill of the launcher's group, must not end it first.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=null, stderr=null, bufsize=0, process_group=0
        )

    def register(self, leader: int) -> None:
        """Register the process group of `leader` to be killed if this process dies; call before `leader` is reaped."""
        self._send(f"+{leader} {start_ticks_of(leader)}\n")

    def unregister(self, leader: int) -> None:
        """Forget a group that has no members left."""
        self._send(f"-{leader}\n")

    def register_segment(self, name: str) -> None:
        """Register a shared memory segment to be unlinked if this process dies."""
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


# Starting the ranks of a run, one after the other: forked by a fork server, or each as a separate interpreter.
#
# A fork server is used if it can be (Linux with pidfds, several ranks, no thread after loading); otherwise each rank
# is spawned, with the same result and a slower start.


class RankStarter:
    """Starter of the ranks of one run. environments, results: by rank. Its `with` block ends the fork server."""

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

        output: called with what is printed in the meantime. Raises `TimeoutError` at the deadline.
        """
        if len(self._environments) == 1 or not can_fork():
            return
        # What is the same for all ranks; the rest is sent with each fork. Thread limits must be set before BLAS is
        # loaded.
        common = dict(set.intersection(*(set(variables.items()) for variables in self._environments)))
        self._first_pipes = RankPipes(0, has_messages=self._has_messages)
        # Ctrl-C between the start and the registration would leave a process running.
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


# The event loop, in the calling thread, that forwards the ranks' output, reaps ranks, and stops the rest.

logger = logging.getLogger("cobre.comm")

POLL_S = 0.05  # between two looks at processes that have no pidfd
FAILURE_GRACE_S = 2.0  # for the other ranks to raise their errors, which name the cause
SECOND_SIGNAL_GRACE_S = 15.0  # after a second signal: a rank may have a large policy to write
KILL_GRACE_S = 30.0  # SIGKILL cannot be ignored, but it does not reach a process in an uninterruptible sleep


class Supervisor:
    """Supervisor of ranks until all have ended. Its `with` block leaves no process and no descriptor behind."""

    def __init__(self, output: Output, has_failed: Callable[[RankProcess], bool], reaper: OrphanReaper) -> None:
        self._output = output
        self._has_failed = has_failed
        self._reaper = reaper
        self._selector = selectors.DefaultSelector()
        self._running: list[RankProcess] = []
        self._any_failed = False
        self._kills_after_grace = False
        # A signal handler that only sets a deadline does not end a wait that has none: Python resumes it.
        self._wake_reader, self._wake_writer = os.pipe()
        self._selector.register(self._wake_reader, selectors.EVENT_READ, (self._woken, None))
        self.ended: list[RankProcess] = []
        """The ranks that have ended, in that order."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._output = discard  # it may be the output that raised
        # Ranks that have ended are gone from `_running` by now, so after an orderly run there is nothing to kill.
        while self._running:
            try:
                self._kill()
            except (KeyboardInterrupt, SystemExit):  # a second Ctrl-C must not leave processes behind
                continue
        self._selector.close()
        os.close(self._wake_reader)
        os.close(self._wake_writer)

    def add(self, process: RankProcess) -> None:
        """Supervise one more rank, which has been started."""
        # Listed first: if registering it with the reaper fails, leaving the block still kills this rank.
        self._running.append(process)
        self._reaper.register(process.pid)
        for stream in process.streams:
            self._selector.register(stream.descriptor, selectors.EVENT_READ, (self._read, stream))
        if process.exit_descriptor is not None:
            self._selector.register(process.exit_descriptor, selectors.EVENT_READ, (self._collect, process))

    def watch(self, deadline: float | None) -> bool:
        """Wait until all ranks have ended or one has failed; False if the deadline came first.

        After `kill_after_grace`, wait until all ranks have ended or have been killed.
        """

        def is_done() -> bool:
            return not self._running or self._any_failed or self._kills_after_grace

        if not self._handle_events_until(is_done, deadline):
            return False
        if self._kills_after_grace and not self._handle_events_for(SECOND_SIGNAL_GRACE_S):
            self._kill()
        return True

    def kill_after_grace(self) -> None:
        """Let `watch` kill all ranks that still run after SECOND_SIGNAL_GRACE_S; called by a signal handler."""
        self._kills_after_grace = True
        os.write(self._wake_writer, b"!")

    def stop_after_failure(self) -> None:
        """Give the other ranks FAILURE_GRACE_S to fail by themselves, which names the cause; then stop them."""
        if not self._handle_events_for(FAILURE_GRACE_S):
            self.stop(signal.SIGTERM, FAILURE_GRACE_S)

    def stop(self, signum: signal.Signals, grace_s: float) -> None:
        """Send a signal to all ranks, and kill those that are still running after `grace_s` seconds."""
        # Signal all, then wait: they end concurrently.
        self._signal_all(signum)
        if not self._handle_events_for(grace_s):
            self._kill()

    def forward(self, signum: signal.Signals) -> None:
        """Forward a signal to all ranks, which then end in their own way; none is killed."""
        for process in list(self._running):
            process.signal_group(signum)

    def running_ranks(self) -> list[int]:
        """Return the ranks that have not ended yet."""
        return [process.rank for process in self._running]

    def _kill(self) -> None:
        self._signal_all(signal.SIGKILL)
        if not self._handle_events_for(KILL_GRACE_S):
            pids = [process.pid for process in self._running]
            logger.error("processes %s did not exit within %g s of SIGKILL; giving up on them", pids, KILL_GRACE_S)
            for process in list(self._running):
                self._forget(process)

    def _signal_all(self, signum: signal.Signals) -> None:
        for process in self._running:
            process.stop(signum)

    def _handle_events_for(self, seconds: float) -> bool:
        """Handle events until all ranks have ended; False if the time was up first."""
        return self._handle_events_until(lambda: not self._running, time.monotonic() + seconds)

    def _handle_events_until(self, is_done: Callable[[], bool], deadline: float | None) -> bool:
        while not is_done():
            remaining = MAX_SELECT_S if deadline is None else deadline - time.monotonic()
            if remaining <= 0:
                return False
            self._handle_events(min(remaining, MAX_SELECT_S))
        return True

    def _handle_events(self, timeout_s: float) -> None:
        # No pidfd (another platform, or too many open files): nothing wakes the selector when these end.
        unwatched = [process for process in self._running if process.exit_descriptor is None]
        if unwatched:
            timeout_s = min(POLL_S, timeout_s)
        for key, _ in self._selector.select(timeout_s):
            handle, subject = key.data
            handle(subject)
        for process in unwatched:
            if process in self._running and process.has_exited():
                self._collect(process)

    def _woken(self, _: None) -> None:
        os.read(self._wake_reader, 1)

    def _read(self, stream: Stream) -> None:
        # A rank that was reaped earlier in the same round has finished its streams already.
        if not stream.has_ended():
            stream.read(self._output)
            if stream.has_ended():
                self._selector.unregister(stream.descriptor)

    def _collect(self, process: RankProcess) -> None:
        # Out of the poll set first: `collect` reads the rest directly, and then closes the descriptors.
        for stream in process.streams:
            if not stream.has_ended():
                self._selector.unregister(stream.descriptor)
        # In this order: should this process be killed in between, the reaper still knows the group as long as it has
        # members; and the leader is reaped last, so that the group's number is not reused before.
        process.signal_group(signal.SIGKILL)
        self._reaper.unregister(process.pid)
        try:
            process.collect(self._output)
        finally:
            self._forget(process)
            self.ended.append(process)
            self._any_failed = self._any_failed or self._has_failed(process)

    def _forget(self, process: RankProcess) -> None:
        self._running.remove(process)
        if process.exit_descriptor is not None:
            self._selector.unregister(process.exit_descriptor)
        process.close()
