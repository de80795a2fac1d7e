"""A template: one process that loads what all ranks need, and from which they are forked.

This is the launcher's side; `template_process` is its program. The ranks are children of the template, which collects
them when it is told to: their numbers stay theirs until then.
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

from cobre.comm.launch.interpreter import interpreter_command, with_import_path
from cobre.comm.launch.output import Output
from cobre.comm.launch.rank_pipes import RankPipes
from cobre.comm.launch.spawning import RankSpec, SharedDescriptors

logger = logging.getLogger("cobre.comm")

PROGRAM = Path(__file__).with_name("template_process.py")
ANSWER_S = 30.0
END_S = 5.0
MAX_SELECT_S = 3600.0
MESSAGE_BYTES = 1 << 16


class TemplateGoneError(Exception):
    """The template was killed, or does not answer."""


def can_fork() -> bool:
    """Whether ranks can be forked here: their parent is not this process, which then only sees them by a pidfd."""
    if not sys.platform.startswith("linux") or not hasattr(os, "pidfd_open"):
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:  # an old kernel, or a sandbox that forbids it
        return False
    return True


class Template:
    """The launcher's handle on the template process. Its `with` block leaves neither it nor one of its ranks behind."""

    def __init__(
        self, environment: Mapping[str, str], shared: SharedDescriptors, pipes: RankPipes, modules: Sequence[str]
    ) -> None:
        """pipes: those of rank 0; what modules print while they are loaded is shown as its output."""
        # Packets, so that a request is one read; a Unix socket, because descriptors travel with the requests.
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._environment = environment
        self._is_loaded = False
        self._requests = 0
        with contextlib.ExitStack() as failing:
            failing.callback(self._socket.close)  # only where the start fails: `pop_all` below cancels it
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
        """Of the template; also the number of its process group, which the ranks are not in."""
        return self._process.pid

    def wait_until_loaded(self, pipes: RankPipes, output: Output, deadline: float | None) -> bool:
        """Whether ranks can be forked from it; what it prints meanwhile goes to `output`.

        Not when it was killed or could not be loaded, and not when a library has started a thread: a fork would
        have the thread's locks, but not the thread. Raises `TimeoutError` at the deadline.
        """
        # Its output is read while it loads: a module that prints more than a pipe holds would block for ever otherwise.
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            for stream in pipes.streams:
                selector.register(stream.descriptor, selectors.EVENT_READ, stream)
            while True:
                remaining = MAX_SELECT_S if deadline is None else deadline - time.monotonic()
                if remaining <= 0:
                    raise TimeoutError
                for key, _ in selector.select(min(remaining, MAX_SELECT_S)):
                    if key.data is None:
                        return self._has_loaded()
                    key.data.read(output)

    def _has_loaded(self) -> bool:
        try:
            threads = json.loads(self._socket.recv(MESSAGE_BYTES))["threads"]
        except (OSError, ValueError):  # an empty message: it has gone
            logger.info("the template of the ranks ended while it was loading; each rank loads by itself")
            return False
        self._is_loaded = len(threads) == 1
        if not self._is_loaded:
            logger.info("libraries have started threads (%s); each rank loads by itself", ", ".join(threads[1:]))
        return self._is_loaded

    def fork(self, spec: RankSpec) -> "ForkedChild":
        """Fork a rank; raises `OSError` where the system has no process or descriptor left for it."""
        # Only what differs: the template already has what all ranks' environments have in common.
        own = {name: value for name, value in spec.environment.items() if self._environment.get(name) != value}
        request = {"fork": spec.rank, "environment": own, "streams": list(spec.pipes.writing)}
        answer = self._ask(request, [spec.result, *spec.pipes.writing.values()])
        if "error" in answer:
            raise OSError(answer["error"], os.strerror(answer["error"]))
        return ForkedChild(self, answer["pid"])

    def collect(self, pid: int) -> int:
        """The exit code of a rank that has ended; asking again gives it again."""
        return int(self._ask({"collect": pid})["exit_code"])

    def _ask(self, request: Mapping[str, Any], descriptors: Sequence[int] = ()) -> dict[str, Any]:
        # Numbered, because a signal handler may raise between a request and its answer: the next request must then skip
        # the answer that nobody waited for.
        self._requests += 1
        number = self._requests
        try:
            self._socket.settimeout(ANSWER_S)
            socket.send_fds(self._socket, [json.dumps({"number": number, **request}).encode()], descriptors)
            while (answer := json.loads(self._socket.recv(MESSAGE_BYTES)))["number"] != number:
                pass
        except (ValueError, TimeoutError, ConnectionError) as error:
            raise TemplateGoneError(self.exit_reason()) from error
        return dict(answer)

    def exit_reason(self) -> str:
        """How the template ended, for error messages. It is killed first: this is called where it does not answer."""
        self._kill()
        code = self._process.wait()
        how = f"was killed by {signal.Signals(-code).name} (signal {-code})" if code < 0 else f"exited with code {code}"
        return f"the process that ranks are forked from (pid {self.pid}) {how}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._socket.close()
            # The closed socket is its order to end. It is given time for that, because it alone knows of a rank that
            # was forked while this process was interrupted, and ends it.
            if self._is_loaded:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(END_S)
        finally:
            self._kill()
            self._process.wait()

    def _kill(self) -> None:
        """Kill the template's group: with it the processes that modules have started while they were loaded."""
        if self._process.returncode is None:  # not collected: the number is still its own
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)


class ForkedChild:
    """A rank that is a child of the template: its exit is seen by a pidfd, its exit code comes from the template."""

    def __init__(self, template: Template, pid: int) -> None:
        self._template = template
        self.pid = pid
        self.exit_reason = ""

    def has_exited(self) -> bool:
        """Asked only where there are too many open files for a pidfd. A dead rank is there until it is collected."""
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text()
        except OSError:
            return True
        return stat.rpartition(")")[2].split()[0] in "ZX"

    def wait(self) -> int:
        """Its exit code; where the template has gone the rank was killed with it."""
        try:
            return self._template.collect(self.pid)
        except TemplateGoneError as error:
            self.exit_reason = f"was ended: {error}"
            return -signal.SIGKILL
