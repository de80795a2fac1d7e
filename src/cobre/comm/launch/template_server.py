"""The template's own side: import what ranks need, make sure that no thread runs, fork a rank for every request.

Forking is safe only while there is one thread: the fork has a copy of every lock, but only of the thread that called.
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
from cobre.comm.launch.messages import MESSAGE_VARIABLE
from cobre.comm.launch.orphan_reaper_process import unlink_segments
from cobre.comm.launch.output import MESSAGES
from cobre.comm.launch.payload import TaskReader
from cobre.comm.launch.worker import RankDescriptors, perform_as_rank, take_no_interrupts_yet

MESSAGE_BYTES = 1 << 16
MAX_DESCRIPTORS = 8
STANDARD = {"stdout": 1, "stderr": 2}


def main(signal_mask: set[int]) -> None:
    """Serve the launcher until it closes the connection. Returns in ranks only, when they are done.

    signal_mask: of a rank; the template itself holds back more.
    """
    parent_pid, task, lifeline, control = map(int, sys.argv[1:5])
    modules = sys.argv[5:]
    kill_group_with_parent(parent_pid, "")
    for descriptor in (task, lifeline, control):
        os.set_inheritable(descriptor, False)
    connection = socket.socket(fileno=control)
    TaskReader(task).startup().apply()
    _load(modules)
    connection.send(json.dumps({"threads": _threads()}).encode())
    template = os.getpid()
    result = _Server(connection, signal_mask).serve()
    perform_as_rank(RankDescriptors(template, task, result, lifeline))


def _load(modules: Sequence[str]) -> None:
    """Import what ranks need. A module that cannot be loaded is not told here: the rank that needs it fails on it."""
    for module in modules:
        with contextlib.suppress(Exception):
            importlib.import_module(module)
    # Objects that live as long as the process: the ranks' garbage collectors leave them alone, and their pages shared.
    gc.collect()
    gc.freeze()


def _threads() -> list[str]:
    """The names of all threads of this process, whoever has started them, the main one first."""
    tasks = sorted(Path("/proc/self/task").iterdir(), key=lambda task: int(task.name))
    return [(task / "comm").read_text().strip() for task in tasks]


class _Server:
    """Serves the launcher's requests, one at a time: fork a rank, collect a rank that has ended."""

    def __init__(self, connection: socket.socket, signal_mask: set[int]) -> None:
        self._connection = connection
        self._signal_mask = signal_mask
        # Ranks that were not collected yet, dead ones included: until then the kernel gives their numbers to nobody
        # else, so that signalling their groups cannot hit a stranger.
        self._running: set[int] = set()
        self._exit_codes: dict[int, int] = {}

    def serve(self) -> int:
        """Returns in a rank only: the descriptor of its result file."""
        # As the end of the connection, which somebody else may hold open: a fork of the launcher's process.
        signal.signal(PARENT_DEATH_SIGNAL, lambda *_: self._end())
        while True:
            content, descriptors, _, _ = socket.recv_fds(self._connection, MESSAGE_BYTES, MAX_DESCRIPTORS)
            if not content:
                self._end()
            request = json.loads(content)
            is_fork = "fork" in request
            answer = self._fork(request, descriptors) if is_fork else self._collect(request["collect"])
            if answer is None:
                return descriptors[0]
            self._connection.send(json.dumps({"number": request["number"], **answer}).encode())

    def _fork(self, request: dict[str, Any], descriptors: list[int]) -> dict[str, int] | None:
        """The new rank's pid, or why there is none; None in the rank."""
        if len(descriptors) != 1 + len(request["streams"]):  # the kernel leaves out what exceeds the limit
            return {"error": errno.EMFILE}
        try:
            pid = os.fork()
        except OSError as error:
            return {"error": error.errno or errno.EAGAIN}
        if pid == 0:
            self._become_rank(request, descriptors)
            return None
        # By parent and child, whoever comes first: from the answer on the launcher signals groups.
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)
        for descriptor in descriptors:
            os.close(descriptor)
        self._running.add(pid)
        return {"pid": pid}

    def _become_rank(self, request: dict[str, Any], descriptors: list[int]) -> None:
        """In the fork: a group, streams, variables, random numbers and signals of its own."""
        os.setpgid(0, 0)
        # Python must know of no handler: it would take away the rank's own, which is native, when the interpreter ends.
        signal.signal(PARENT_DEATH_SIGNAL, signal.SIG_DFL)
        self._connection.close()
        os.environ.update(request["environment"])
        for name, descriptor in zip(request["streams"], descriptors[1:], strict=True):
            if name == MESSAGES:
                os.environ[MESSAGE_VARIABLE] = str(descriptor)
            else:
                os.dup2(descriptor, STANDARD[name])
                os.close(descriptor)
        _reseed()
        # Last: a signal that was held back since the template began arrives with the new mask.
        take_no_interrupts_yet()
        signal.pthread_sigmask(signal.SIG_SETMASK, self._signal_mask)

    def _collect(self, pid: int) -> dict[str, int]:
        """The exit code of a rank that has ended; kept, because the answer may be lost and asked for again."""
        if pid in self._running:
            _, status = os.waitpid(pid, 0)
            self._running.discard(pid)
            self._exit_codes[pid] = os.waitstatus_to_exitcode(status)
        return {"exit_code": self._exit_codes[pid]}

    def _end(self) -> NoReturn:
        """Nobody asks any more: end the ranks that were not collected, dead or alive, with what they have started.

        The launcher and its orphan reaper may both have been killed. May be called again while it runs, by the signal.
        """
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
    """NumPy's own generator would draw the same numbers on all ranks; Python's is seeded anew by `os.fork` itself."""
    if (random := sys.modules.get("numpy.random")) is not None:
        random.seed()
