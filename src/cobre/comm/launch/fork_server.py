"""The fork server: one process that imports what all ranks need, and forks them (as in `multiprocessing`).

`ForkServer` is the launcher's side, `serve_launcher` the server's own. The ranks are children of the fork server, which
reaps them only on request: until then their pids are not reused.
"""

import contextlib
import errno
import gc
import importlib
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
from typing import Any, NoReturn, Self

from cobre._native import PARENT_DEATH_SIGNAL, kill_group_with_parent, kill_process_group
from cobre.comm.launch.child_program import FORK_SERVER
from cobre.comm.launch.messages import MESSAGE_VARIABLE, MESSAGES, Output
from cobre.comm.launch.orphan_reaper import state_of, unlink_segments
from cobre.comm.launch.payload import TaskReader, ending_of
from cobre.comm.launch.rank_main import RankDescriptors, end_silently_on_interrupt, remember_open_files, run_as_rank
from cobre.comm.launch.spawning import (
    RankPipes,
    RankSpec,
    SharedDescriptors,
    child_command,
    segment_name,
    with_import_path,
)
from cobre.comm.types import MAX_SELECT_S

logger = logging.getLogger("cobre.comm")

REPLY_S = 30.0  # far longer than a fork takes: only a fork server that is stopped or stuck does not reply in time
EXIT_S = 1.0  # from the end of its connection to the end of the process
MESSAGE_BYTES = 1 << 16  # the largest message; the socket keeps message boundaries, and would cut off a longer one
MAX_DESCRIPTORS = 8  # the most that one request carries
STANDARD = {"stdout": 1, "stderr": 2}
SHUTDOWN_S = 5.0  # for the fork server to end by itself, before it is killed


class ForkServerGoneError(Exception):
    """The fork server was killed, or does not reply."""


def can_fork() -> bool:
    """Return whether ranks can be forked here.

    They are not children of this process, which needs pidfds to see exits.
    """
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
        """Start the process. pipes: of rank 0, whose output includes what modules print while imported."""
        # SEQPACKET, so that a request is one read; a Unix socket, because requests carry descriptors.
        self._socket, server_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._environment = environment
        self._is_loaded = False
        self._requests = 0
        with contextlib.ExitStack() as on_failure:
            on_failure.callback(self._socket.close)  # only if the start fails: `pop_all` below cancels it
            # Our copy of the server's end is closed once it runs: from then on its death is end of file here.
            with server_end:
                numbers = (os.getpid(), shared.task, shared.lifeline, server_end.fileno())
                self._process = subprocess.Popen(
                    [*child_command(FORK_SERVER), *map(str, numbers), *modules],
                    env=with_import_path(environment),
                    stdin=subprocess.DEVNULL,
                    stdout=pipes.writing["stdout"],
                    stderr=pipes.writing["stderr"],
                    pass_fds=(shared.task, shared.lifeline, server_end.fileno()),
                    process_group=0,
                )
            on_failure.pop_all()

    @property
    def pid(self) -> int:
        """The pid of the fork server, and of its process group, which the ranks do not belong to."""
        return self._process.pid

    def wait_until_loaded(self, pipes: RankPipes, output: Output, deadline: float | None) -> bool:
        """Wait until it has imported everything; return False if it cannot fork ranks.

        It may have been killed, or a library may have started a thread: a fork would have the thread's locks, but not
        the thread. output: called with what is printed in the meantime. Raises `TimeoutError` at the deadline.
        """
        # Its output is read in the meantime: a module that prints more than a pipe holds would block forever otherwise.
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
        # Only the difference: the fork server already has the variables that all ranks have in common.
        overrides = {name: value for name, value in spec.environment.items() if self._environment.get(name) != value}
        request = {"fork": spec.rank, "environment": overrides, "streams": list(spec.pipes.writing)}
        reply = self._request(request, [spec.result, *spec.pipes.writing.values()])
        if "error" in reply:
            raise OSError(reply["error"], os.strerror(reply["error"]))
        return ForkedChild(self, reply["pid"])

    def collect(self, pid: int) -> int:
        """Reap a rank that has ended, and return its exit code. May be repeated."""
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
        """Describe the end of a fork server that does not reply, for error messages; kill it if it still runs."""
        server = f"the fork server of the ranks (pid {self.pid})"
        try:
            # Its end of the connection is closed before it is a zombie.
            return f"{server} {ending_of(self._process.wait(EXIT_S))}"
        except subprocess.TimeoutExpired:
            self._kill()
            self._process.wait()
        return f"{server} did not reply within {REPLY_S:g} s, and was killed"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._socket.close()
            # The closed socket tells it to end. It gets some time for that, because only it knows of a rank that was
            # forked while this process was interrupted, and kills it.
            if self._is_loaded:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(SHUTDOWN_S)
        finally:
            self._kill()
            self._process.wait()

    def _kill(self) -> None:
        """Kill the fork server's process group, including processes that modules started while they were imported."""
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
        """Return whether it is a zombie; used only if there were too many open files for a pidfd."""
        return state_of(self.pid) in ("", "Z", "X")

    def wait(self) -> int:
        """Reap the rank and return its exit code: -SIGKILL if the fork server has died, which kills its ranks."""
        try:
            return self._fork_server.collect(self.pid)
        except ForkServerGoneError as error:
            self.exit_reason = f"was killed because {error}"
            return -signal.SIGKILL


# The fork server's own side: import what ranks need, check that no other thread runs, fork a rank for every request.
#
# Forking is safe only while there is one thread: the child has a copy of every lock, but only of the thread that
# forked. A lock that another thread held would stay locked forever.


def serve_launcher(signal_mask: set[int]) -> None:
    """Serve the launcher until it closes the connection. In a forked rank, run its task and exit.

    signal_mask: for the ranks; the fork server itself blocks more signals.
    """
    parent_pid, task, lifeline, control = map(int, sys.argv[1:5])
    modules = sys.argv[5:]
    kill_group_with_parent(parent_pid, "")  # first: the launcher may die while modules are being imported
    # Modules may start processes while they are imported: these must not keep lifeline or connection open.
    for descriptor in (task, lifeline, control):
        os.set_inheritable(descriptor, False)
    connection = socket.socket(fileno=control)
    TaskReader(task).startup().apply()  # before the imports: modules may be found only through the launcher's sys.path
    _load(modules)
    connection.send(json.dumps({"threads": _threads()}).encode())
    fork_server = os.getpid()
    result = _Server(connection, signal_mask).serve()
    run_as_rank(RankDescriptors(fork_server, task, result, lifeline))


def _load(modules: Sequence[str]) -> None:
    """Import what ranks need. A module that cannot be imported is not an error here: the rank will raise."""
    for module in modules:
        with contextlib.suppress(Exception):
            importlib.import_module(module)
    # Exclude what was imported from garbage collection: a collection in a rank would write to the objects' headers, and
    # so copy pages that are shared until then.
    gc.collect()
    remember_open_files()
    gc.freeze()


def _threads() -> list[str]:
    """Return the names of all threads of this process, native ones included, the main one first."""
    # Not `threading.enumerate`, which does not list the threads of native libraries.
    tasks = sorted(Path("/proc/self/task").iterdir(), key=lambda task: int(task.name))
    return [(task / "comm").read_text().strip() for task in tasks]


class _Server:
    """Server of the launcher's requests, one at a time: fork a rank, reap a rank that has ended."""

    def __init__(self, connection: socket.socket, signal_mask: set[int]) -> None:
        self._connection = connection
        self._signal_mask = signal_mask
        # Ranks that have not been reaped, zombies included: until then the kernel does not reuse their pids, so that
        # signalling their groups cannot hit another process.
        self._running: set[int] = set()
        self._exit_codes: dict[int, int] = {}

    def serve(self) -> int:
        """Serve requests; returns only in a forked rank: the descriptor of its result file."""
        # The launcher's death ends it too: a fork of the launcher may hold the other end of the connection open.
        signal.signal(PARENT_DEATH_SIGNAL, lambda *_: self._end())
        while True:
            content, descriptors, _, _ = socket.recv_fds(self._connection, MESSAGE_BYTES, MAX_DESCRIPTORS)
            if not content:
                self._end()
            request = json.loads(content)
            is_fork = "fork" in request
            reply = self._fork(request, descriptors) if is_fork else self._collect(request["collect"])
            if reply is None:  # in the rank
                return descriptors[0]
            self._connection.send(json.dumps({"number": request["number"], **reply}).encode())

    def _fork(self, request: dict[str, Any], descriptors: list[int]) -> dict[str, int] | None:
        """Fork a rank; return its pid or the errno, and None in the rank itself."""
        if len(descriptors) != 1 + len(request["streams"]):  # the kernel drops descriptors beyond our limit
            return {"error": errno.EMFILE}
        try:
            pid = os.fork()
        except OSError as error:
            return {"error": error.errno or errno.EAGAIN}
        if pid == 0:
            self._become_rank(request, descriptors)
            return None
        # Both parent and child do this, whichever comes first: after the reply the launcher may signal the group.
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)
        # The rank has its own copies; ours would keep its pipes open after its death.
        for descriptor in descriptors:
            os.close(descriptor)
        self._running.add(pid)
        return {"pid": pid}

    def _become_rank(self, request: dict[str, Any], descriptors: list[int]) -> None:
        """Give the child, which runs this, its own process group, streams, variables, random numbers and signals."""
        os.setpgid(0, 0)
        # Python must have no handler here: when the interpreter exits, it would replace the rank's own, a native one.
        signal.signal(PARENT_DEATH_SIGNAL, signal.SIG_DFL)
        # A copy in a rank would hide the fork server's death from the launcher, which waits for end of file.
        self._connection.close()
        os.environ.update(request["environment"])
        for name, descriptor in zip(request["streams"], descriptors[1:], strict=True):
            if name == MESSAGES:
                os.environ[MESSAGE_VARIABLE] = str(descriptor)
            else:
                os.dup2(descriptor, STANDARD[name])
                os.close(descriptor)
        _reseed()
        # Last: a signal that has been pending since the fork server started is delivered with the new mask.
        end_silently_on_interrupt()
        signal.pthread_sigmask(signal.SIG_SETMASK, self._signal_mask)

    def _collect(self, pid: int) -> dict[str, int]:
        """Return the exit code of a rank that has ended; kept, because the reply may be lost and requested again."""
        # Returns at once: the launcher requests it only after the rank has exited.
        if pid in self._running:
            _, status = os.waitpid(pid, 0)
            self._running.discard(pid)
            self._exit_codes[pid] = os.waitstatus_to_exitcode(status)
        return {"exit_code": self._exit_codes[pid]}

    def _end(self) -> NoReturn:
        """Kill the groups of all ranks that have not been reaped, dead or alive, and exit: the launcher is gone.

        The orphan reaper may have been killed too. May be entered a second time while it runs, by the signal handler.
        """
        # All are killed before the first is waited for: they end concurrently.
        for pid in self._running:
            with contextlib.suppress(OSError):
                os.killpg(pid, signal.SIGKILL)
        for pid in self._running:
            with contextlib.suppress(OSError):
                os.waitpid(pid, 0)
        if (name := segment_name(os.environ)) is not None:
            unlink_segments({name})
        kill_process_group()


def _reseed() -> None:
    """Reseed NumPy's global generator, which would draw the same numbers on all ranks; `os.fork` reseeds Python's."""
    if (random := sys.modules.get("numpy.random")) is not None:
        random.seed()
