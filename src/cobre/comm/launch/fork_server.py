"""The fork server: one process that imports what all ranks need, and forks them (as in `multiprocessing`).

This is the launcher's side; `fork_server_process` is the program. The ranks are children of the fork server, which
reaps them only on request: until then their pids are not reused.
"""

import contextlib
import json
import logging
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from cobre.comm.launch.fork_protocol import MESSAGE_BYTES
from cobre.comm.launch.messages import Output
from cobre.comm.launch.payload import ending_of
from cobre.comm.launch.spawning import RankPipes, RankSpec, SharedDescriptors, interpreter_command, with_import_path
from cobre.comm.types import MAX_SELECT_S

logger = logging.getLogger("cobre.comm")

PROGRAM = Path(__file__).with_name("fork_server_process.py")
REPLY_S = 30.0  # far longer than a fork takes: only a fork server that is stopped or stuck does not reply in time
EXIT_S = 1.0  # from the end of its connection to the end of the process
SHUTDOWN_S = 5.0  # for the fork server to end by itself, before it is killed


class ForkServerGoneError(Exception):
    """The fork server was killed, or does not reply."""


def can_fork() -> bool:
    """Whether ranks can be forked here. They are not children of this process, which needs pidfds to see them exit."""
    if not sys.platform.startswith("linux") or not hasattr(os, "pidfd_open"):
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:  # an old kernel, or a sandbox that forbids it
        return False
    return True


class ForkServer:
    """The launcher's handle on the fork server. Its `with` block leaves neither the server nor a rank behind."""

    def __init__(
        self, environment: Mapping[str, str], shared: SharedDescriptors, pipes: RankPipes, modules: Sequence[str]
    ) -> None:
        """Start the process. pipes: those of rank 0; what modules print while imported appears as its output."""
        # SEQPACKET, so that a request is one read; a Unix socket, because requests carry descriptors.
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._environment = environment
        self._is_loaded = False
        self._requests = 0
        with contextlib.ExitStack() as failing:
            failing.callback(self._socket.close)  # only if the start fails: `pop_all` below cancels it
            # Our copy of its end is closed once it runs: from then on its death is end of file here.
            with theirs:
                numbers = (os.getpid(), shared.task, shared.lifeline, theirs.fileno())
                self._process = subprocess.Popen(
                    [*interpreter_command(PROGRAM), *map(str, numbers), *modules],
                    env=with_import_path(environment),
                    stdin=subprocess.DEVNULL,
                    stdout=pipes.writing["stdout"],
                    stderr=pipes.writing["stderr"],
                    pass_fds=(shared.task, shared.lifeline, theirs.fileno()),
                    process_group=0,
                )
            failing.pop_all()

    @property
    def pid(self) -> int:
        """The pid of the fork server, and of its process group, which the ranks do not belong to."""
        return self._process.pid

    def wait_until_loaded(self, pipes: RankPipes, output: Output, deadline: float | None) -> bool:
        """Wait until it has imported everything; False if ranks cannot be forked by it.

        It may have been killed, or a library may have started a thread: a fork would have the thread's locks, but not
        the thread. output: called with what is printed meanwhile. Raises `TimeoutError` at the deadline.
        """
        # Its output is read meanwhile: a module that prints more than a pipe holds would block for ever otherwise.
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            for stream in pipes.streams:
                selector.register(stream.descriptor, selectors.EVENT_READ, stream)
            while True:
                remaining = MAX_SELECT_S if deadline is None else deadline - time.monotonic()
                if remaining <= 0:
                    raise TimeoutError
                for key, _ in selector.select(min(remaining, MAX_SELECT_S)):
                    if key.data is None:  # the connection: a report, or end of file
                        return self._has_loaded()
                    key.data.read(output)

    def _has_loaded(self) -> bool:
        try:
            threads = json.loads(self._socket.recv(MESSAGE_BYTES))["threads"]
        except (OSError, ValueError):  # an empty message: it has died
            logger.info("the fork server died while it was loading; each rank imports modules by itself")
            return False
        self._is_loaded = len(threads) == 1
        if not self._is_loaded:
            logger.info(
                "libraries have started threads (%s); each rank imports modules by itself", ", ".join(threads[1:])
            )
        return self._is_loaded

    def fork(self, spec: RankSpec) -> "ForkedChild":
        """Fork a rank; raises `OSError` if the system has no process or descriptor left for it."""
        # Only the difference: the fork server already has what the environments of all ranks have in common.
        own = {name: value for name, value in spec.environment.items() if self._environment.get(name) != value}
        request = {"fork": spec.rank, "environment": own, "streams": list(spec.pipes.writing)}
        reply = self._request(request, [spec.result, *spec.pipes.writing.values()])
        if "error" in reply:
            raise OSError(reply["error"], os.strerror(reply["error"]))
        return ForkedChild(self, reply["pid"])

    def collect(self, pid: int) -> int:
        """Reap a rank that has ended: its exit code. May be repeated."""
        return int(self._request({"collect": pid})["exit_code"])

    def _request(self, request: Mapping[str, Any], descriptors: Sequence[int] = ()) -> dict[str, Any]:
        # Numbered, because a signal handler may raise between a request and its reply: the next request must then skip
        # the stale reply.
        self._requests += 1
        number = self._requests
        try:
            self._socket.settimeout(REPLY_S)
            socket.send_fds(self._socket, [json.dumps({"number": number, **request}).encode()], descriptors)
            while (reply := json.loads(self._socket.recv(MESSAGE_BYTES)))["number"] != number:
                pass
        except (ValueError, TimeoutError, ConnectionError) as error:  # ValueError: an empty reply, at end of file
            raise ForkServerGoneError(self.exit_reason()) from error
        return dict(reply)

    def exit_reason(self) -> str:
        """How the fork server ended, for error messages; called if it does not reply. One that still runs is killed."""
        who = f"the fork server of the ranks (pid {self.pid})"
        try:
            # Its end of the connection is closed before it is a zombie.
            return f"{who} {ending_of(self._process.wait(EXIT_S))}"
        except subprocess.TimeoutExpired:
            self._kill()
            self._process.wait()
        return f"{who} did not reply within {REPLY_S:g} s, and was killed"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._socket.close()
            # The closed socket tells it to end. It gets some time for that, because it alone knows of a rank that was
            # forked while this process was interrupted, and kills it.
            if self._is_loaded:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(SHUTDOWN_S)
        finally:
            self._kill()
            self._process.wait()

    def _kill(self) -> None:
        """Kill the fork server's process group, and with it what modules have started while they were imported."""
        if self._process.returncode is None:  # not reaped: the pid is still its own
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)


class ForkedChild:
    """A rank that is a child of the fork server: a pidfd shows its exit, the fork server knows its exit code."""

    def __init__(self, fork_server: ForkServer, pid: int) -> None:
        self._fork_server = fork_server
        self.pid = pid
        self.exit_reason = ""

    def has_exited(self) -> bool:
        """Whether it is a zombie; used only if there were too many open files for a pidfd."""
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text()
        except OSError:
            return True
        return stat.rpartition(")")[2].split()[0] in "ZX"

    def wait(self) -> int:
        """Have it reaped; its exit code, or that of SIGKILL if the fork server has died, which kills its ranks."""
        try:
            return self._fork_server.collect(self.pid)
        except ForkServerGoneError as error:
            self.exit_reason = f"was killed because {error}"
            return -signal.SIGKILL
