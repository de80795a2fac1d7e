"""What a rank is started with, and how it is spawned as an interpreter of its own (the other way is `template`)."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from cobre.comm.launch.interpreter import with_import_path, worker_command
from cobre.comm.launch.messages import MESSAGE_VARIABLE
from cobre.comm.launch.output import MESSAGES
from cobre.comm.launch.rank_pipes import RankPipes


@dataclass(frozen=True, slots=True)
class SharedDescriptors:
    """Descriptors that all ranks of a run inherit.

    task: the anonymous file with the task. lifeline: the reading end of a pipe whose writing end only the launcher has;
    end of file there is the launcher's death.
    """

    task: int
    lifeline: int


@dataclass(frozen=True, slots=True)
class RankSpec:
    """What is one rank's own: `environment` is the whole of it, `result` the descriptor of its result file."""

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
        """Of the interpreter."""
        return self._process.pid

    def has_exited(self) -> bool:
        """Whether the process has ended, without collecting it where the platform can tell."""
        if not hasattr(os, "waitid"):
            return self._process.poll() is not None
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:  # collected by somebody else's wait for any child
            return True

    def wait(self) -> int:
        """Its exit code."""
        return self._process.wait()


def spawn(spec: RankSpec, shared: SharedDescriptors) -> SpawnedChild:
    """Start an interpreter that imports what the rank needs."""
    numbers = (os.getpid(), shared.task, spec.result, shared.lifeline)
    environment, descriptors = spec.environment, [shared.task, spec.result, shared.lifeline]
    if (messages := spec.pipes.writing.get(MESSAGES)) is not None:
        environment = {**environment, MESSAGE_VARIABLE: str(messages)}
        descriptors.append(messages)
    process = subprocess.Popen(
        [*worker_command(), *map(str, numbers)],
        env=with_import_path(environment),
        stdin=subprocess.DEVNULL,
        stdout=spec.pipes.writing["stdout"],
        stderr=spec.pipes.writing["stderr"],
        pass_fds=descriptors,
        process_group=0,
    )
    return SpawnedChild(process)
