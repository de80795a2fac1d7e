"""What a rank is started with, and how it is spawned as an interpreter of its own (the other way is `fork_server`)."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from cobre.comm.launch.interpreter import rank_command, with_import_path
from cobre.comm.launch.messages import MESSAGE_VARIABLE
from cobre.comm.launch.output import MESSAGES
from cobre.comm.launch.rank_pipes import RankPipes


@dataclass(frozen=True, slots=True)
class SharedDescriptors:
    """Descriptors that all ranks of a run inherit.

    task: the anonymous file with the task. lifeline: the reading end of a pipe whose writing end only the launcher
    holds; end of file means that the launcher is dead.
    """

    task: int
    lifeline: int


@dataclass(frozen=True, slots=True)
class RankSpec:
    """What differs between ranks. environment: the complete one. result: descriptor of the rank's result file."""

    rank: int
    environment: Mapping[str, str]
    result: int
    pipes: RankPipes


class SpawnedChild:
    """A rank that is a direct child of this process."""

    exit_reason = ""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        """The pid of the interpreter, and of its process group."""
        return self._process.pid

    def has_exited(self) -> bool:
        """Whether the process has ended, without reaping it if the platform allows that."""
        if not hasattr(os, "waitid"):
            return self._process.poll() is not None
        try:
            # WNOWAIT: reaping it here would free the pid before the rest of its group has been killed.
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:  # reaped by a wait for any child elsewhere in the program
            return True

    def wait(self) -> int:
        """Reap the process; its exit code, negative for a signal."""
        return self._process.wait()


def spawn(spec: RankSpec, shared: SharedDescriptors) -> SpawnedChild:
    """Start a rank as a new interpreter, which imports what it needs."""
    numbers = (os.getpid(), shared.task, spec.result, shared.lifeline)
    environment, descriptors = spec.environment, [shared.task, spec.result, shared.lifeline]
    if (messages := spec.pipes.writing.get(MESSAGES)) is not None:
        environment = {**environment, MESSAGE_VARIABLE: str(messages)}
        descriptors.append(messages)
    # No stdin: ranks would compete for the terminal's input. A process group for each rank: Ctrl-C then reaches the
    # launcher only, which decides how ranks end, and a signal to the group reaches what the rank has started.
    process = subprocess.Popen(
        [*rank_command(), *map(str, numbers)],
        env=with_import_path(environment),
        stdin=subprocess.DEVNULL,
        stdout=spec.pipes.writing["stdout"],
        stderr=spec.pipes.writing["stderr"],
        pass_fds=descriptors,
        process_group=0,
    )
    return SpawnedChild(process)
