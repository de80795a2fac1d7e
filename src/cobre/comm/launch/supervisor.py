"""The event loop, in the calling thread, that forwards the ranks' output, reaps ranks, and stops the rest."""

import logging
import os
import selectors
import signal
import time
from collections.abc import Callable
from typing import Self

from cobre.comm.launch.orphan_reaper import OrphanReaper
from cobre.comm.launch.output import Output, Stream, discard
from cobre.comm.launch.rank_process import RankProcess
from cobre.comm.select_limit import MAX_SELECT_S

logger = logging.getLogger("cobre.comm")

POLL_S = 0.05  # between two looks at processes that have no pidfd
FAILURE_GRACE_S = 2.0  # for the other ranks to raise errors of their own, which name the cause
HURRY_GRACE_S = 15.0  # for ranks that were told twice to end, and may have a large policy to write
INTERRUPT_GRACE_S = 5.0  # for ranks to clean up after Ctrl-C, SIGTERM or the timeout
KILL_GRACE_S = 30.0  # SIGKILL cannot be ignored, but it does not reach a process in an uninterruptible sleep


class Supervisor:
    """Supervises ranks until all have ended. Its `with` block leaves no process and no descriptor behind."""

    def __init__(self, output: Output, has_failed: Callable[[RankProcess], bool], reaper: OrphanReaper) -> None:
        self._output = output
        self._has_failed = has_failed
        self._reaper = reaper
        self._selector = selectors.DefaultSelector()
        self._running: list[RankProcess] = []
        self._any_failed = False
        self._is_hurried = False
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

        After `hurry` until all ranks have ended, in whatever way; those that do not are killed.
        """

        def is_done() -> bool:
            return not self._running or self._any_failed or self._is_hurried

        if not self._handle_events_until(is_done, deadline):
            return False
        if self._is_hurried and not self._handle_events_for(HURRY_GRACE_S):
            self._kill()
        return True

    def hurry(self) -> None:
        """Give ranks that have been told to end HURRY_GRACE_S; called by a signal handler, while `watch` waits."""
        self._is_hurried = True
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
        """The ranks that have not ended yet."""
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
