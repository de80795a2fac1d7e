"""The fork server's own side: import what ranks need, check that no other thread runs, fork a rank for every request.

Forking is safe only while there is one thread: the child has a copy of every lock, but only of the thread that forked.
A lock that another thread held would stay locked for ever.
"""

import contextlib
import errno
import gc
import importlib
import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from cobre._native import PARENT_DEATH_SIGNAL, kill_group_with_parent, kill_process_group
from cobre.comm.launch.environment import segment_name
from cobre.comm.launch.fork_protocol import MESSAGE_BYTES
from cobre.comm.launch.messages import MESSAGE_VARIABLE, MESSAGES
from cobre.comm.launch.orphan_reaper_process import unlink_segments
from cobre.comm.launch.outcome import remember_open_files
from cobre.comm.launch.payload import TaskReader
from cobre.comm.launch.rank_main import RankDescriptors, end_silently_on_interrupt, run_as_rank

MAX_DESCRIPTORS = 8
STANDARD = {"stdout": 1, "stderr": 2}


def main(signal_mask: set[int]) -> None:
    """Serve the launcher until it closes the connection. In a forked rank, run its task and exit.

    signal_mask: that of a rank; the fork server itself blocks more signals.
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
    """Import what ranks need. A module that cannot be imported is no error here: the rank that needs it will raise."""
    for module in modules:
        with contextlib.suppress(Exception):
            importlib.import_module(module)
    # Exclude what was imported from garbage collection: a collection in a rank would write to the objects' headers, and
    # so copy pages that are shared until then.
    gc.collect()
    remember_open_files()
    gc.freeze()


def _threads() -> list[str]:
    """The names of all threads of this process, native ones included, the main one first."""
    # Not `threading.enumerate`, which does not list the threads of native libraries.
    tasks = sorted(Path("/proc/self/task").iterdir(), key=lambda task: int(task.name))
    return [(task / "comm").read_text().strip() for task in tasks]


class _Server:
    """Serves the launcher's requests, one at a time: fork a rank, reap a rank that has ended."""

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
        """Fork a rank: its pid, or the errno; None in the rank itself."""
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
        """In the child: give it its own process group, streams, variables, random numbers and signals."""
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
        """The exit code of a rank that has ended; kept, because the reply may be lost and requested again."""
        # Returns at once: the launcher asks only when it has seen the rank exit.
        if pid in self._running:
            _, status = os.waitpid(pid, 0)
            self._running.discard(pid)
            self._exit_codes[pid] = os.waitstatus_to_exitcode(status)
        return {"exit_code": self._exit_codes[pid]}

    def _end(self) -> NoReturn:
        """The launcher is gone: kill the groups of all ranks that have not been reaped, dead or alive, and exit.

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
