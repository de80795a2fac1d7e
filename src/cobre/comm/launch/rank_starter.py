"""Starts the ranks of a run, one after the other: forked by a fork server, or each as an interpreter of its own.

A fork server is used if it can be (Linux with pidfds, several ranks, no thread after loading); otherwise each rank is
spawned, with the same result and a slower start.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import IO, Self

from cobre.comm.launch.environment import Environment
from cobre.comm.launch.fork_server import ForkServer, can_fork
from cobre.comm.launch.orphan_reaper import OrphanReaper
from cobre.comm.launch.output import Output
from cobre.comm.launch.payload import ResultReader
from cobre.comm.launch.rank_pipes import RankPipes
from cobre.comm.launch.rank_process import RankProcess
from cobre.comm.launch.signals import interrupts_blocked
from cobre.comm.launch.spawning import RankSpec, SharedDescriptors, spawn


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
