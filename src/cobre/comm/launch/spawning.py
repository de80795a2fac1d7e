"""What a rank is started with, and how it is spawned as an interpreter of its own (the other way is `fork_server`)."""

import contextlib
import os
import site
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import cobre
from cobre.comm.launch.messages import MESSAGE_VARIABLE, MESSAGES, Stream

# The pipes from one rank to its parent: stdout, stderr and, if there is an `on_message`, messages.


class RankPipes:
    """The reading ends, as streams, stay in this process; the writing ends are closed here once the rank has them.

    has_messages: whether there is a pipe for messages (`send_to_parent`).
    """

    def __init__(self, rank: int, *, has_messages: bool) -> None:
        self.rank = rank
        self.streams: list[Stream] = []
        self.writing: dict[str, int] = {}
        try:
            for name in ("stdout", "stderr", *((MESSAGES,) if has_messages else ())):
                self._open(name)
        except OSError:  # too many open files: close those that were opened, or the error could not even be reported
            self.close()
            raise

    def _open(self, name: str) -> None:
        reading, self.writing[name] = os.pipe()
        self.streams.append(Stream(self.rank, name, reading))

    @property
    def errors(self) -> Stream:
        """The stream of the rank's stderr."""
        return self.streams[1]

    def close_writing_ends(self) -> None:
        """Close this process's copies of the writing ends, once the rank has them.

        As long as any process holds one, reading never reaches end of file, and the rank's death would go unnoticed.
        """
        while self.writing:
            os.close(self.writing.popitem()[1])

    def close(self) -> None:
        """Close all descriptors."""
        self.close_writing_ends()
        while self.streams:
            with contextlib.suppress(OSError):
                os.close(self.streams.pop().descriptor)


# The command that starts a new interpreter with the options of this one.


RANK_PROGRAM = Path(__file__).with_name("rank_program.py")

# By attribute of sys.flags. Without -i and -q: ranks are not interactive.
FLAGS = {
    "debug": "-d",
    "optimize": "-O",
    "dont_write_bytecode": "-B",
    "no_user_site": "-s",
    "no_site": "-S",
    "ignore_environment": "-E",
    "isolated": "-I",
    "verbose": "-v",
    "bytes_warning": "-b",
}


def rank_command() -> list[str]:
    """The command that runs the program of a rank under this interpreter, with its flags."""
    return interpreter_command(RANK_PROGRAM)


def interpreter_command(program: Path) -> list[str]:
    """The command that runs a program of this package under this interpreter, with its flags."""
    # -u: what a dying rank has printed must not be lost in a buffer. -P: a file in the current directory must not
    # shadow a library before the rank has taken over its parent's sys.path.
    return [sys.executable, *interpreter_flags(), "-u", "-P", str(program)]


def interpreter_flags() -> list[str]:
    """The command-line options that this interpreter was started with, without -i and -q."""
    flags = [option for name, option in FLAGS.items() for _ in range(getattr(sys.flags, name))]
    flags += [f"-W{option}" for option in sys.warnoptions]
    for name, value in sys._xoptions.items():
        flags += ["-X", name if value is True else f"{name}={value}"]
    return flags


def with_import_path(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment, with PYTHONPATH extended if `cobre` can only be imported through this process's `sys.path`."""
    root = Path(cobre.__file__).parent.parent
    python_path = environment.get("PYTHONPATH", "")
    known = [*python_path.split(os.pathsep), *site.getsitepackages(), site.getusersitepackages()]
    if root in map(_absolute, known) or root not in map(_absolute, sys.path):
        return dict(environment)
    # PYTHONPATH comes before the standard library and site-packages, so it is extended only if it must be.
    return {**environment, "PYTHONPATH": os.pathsep.join(filter(None, (str(root), python_path)))}


def _absolute(entry: str) -> Path:
    return Path(entry).absolute()


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
