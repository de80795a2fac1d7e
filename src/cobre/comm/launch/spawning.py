"""The start of a rank: its environment variables, its pipes, and its interpreter (`fork_server` forks one instead)."""

import contextlib
import operator
import os
import platform
import secrets
import site
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import cobre
from cobre.comm import variables
from cobre.comm.config import MAX_RANKS, LocalConfig, ShmConfig, TcpConfig
from cobre.comm.errors import BackendNotAvailableError, InitializationFailedError, InvalidBackendError
from cobre.comm.factory import rank_variables_of, registered_names
from cobre.comm.launch.child_program import RANK
from cobre.comm.launch.messages import MESSAGE_VARIABLE, MESSAGES, Stream
from cobre.comm.types import BackendKind

THREAD_VARIABLES = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    # Arrow's jemalloc, which is not used by default, starts a thread when it is loaded; the fork server must have none.
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}

Environment = dict[str, str]


def check_size(backend: str, size: object) -> int:
    """Return the number of ranks as an int; raise `InitializationFailedError` if it is not an integer in range."""
    try:
        ranks = operator.index(size)  # type: ignore[arg-type]  # raises TypeError if it is not an integer
    except TypeError:
        ranks = 0
    if isinstance(size, bool) or not 1 <= ranks <= MAX_RANKS:
        raise InitializationFailedError(
            backend,
            f"expected a number of ranks from 1 to {MAX_RANKS}, got {size!r}",
        )
    return ranks


def rank_environments(backend: str, size: int, extra: Mapping[str, str]) -> list[Environment]:
    """Return the environment of every rank: this process's, without its world, with `extra` and the new world."""
    base = _inherited(os.environ)
    base.update(extra)
    return [base | world for world in rank_variables(backend, size, extra)]


def rank_variables(backend: str, size: int, options: Mapping[str, str]) -> list[Environment]:
    """Return the variables by which each rank joins a new world; `options` configure it (`COBRE_SHM_WAIT`, ...).

    Raises `BackendNotAvailableError` for mpi, whose worlds only an MPI launcher can start, and `InvalidBackendError`.
    """
    kind = _own_backend(backend)
    if kind is None and str(backend).strip().lower() in registered_names():
        return rank_variables_of(backend, size, options)
    if kind is None:
        raise InvalidBackendError(str(backend), (*launchable_backends(), *registered_names()))
    make_world = _WORLDS.get(kind)
    if make_world is None:
        raise BackendNotAvailableError(
            kind.value,
            f"only an MPI launcher can start MPI ranks: mpiexec -n {size} python script.py, where the script calls "
            f"create_communicator(). This launcher supports {', '.join(launchable_backends())}",
        )
    return make_world(size, options)


def launchable_backends() -> tuple[str, ...]:
    """Return the backends whose worlds this launcher can start."""
    return tuple(kind.value for kind in _WORLDS if kind is not BackendKind.AUTO)


def segment_name(environment: Mapping[str, str]) -> str | None:
    """Return the name of the shared memory segment that the ranks attach to; None on other backends.

    If all ranks are killed before they have attached, it is left behind, and must be unlinked by name.
    """
    return environment.get(variables.SHM_NAME)


def _own_backend(backend: str) -> BackendKind | None:
    """Return the kind of a backend of this package, or auto; None for another name, which may be registered."""
    try:
        return BackendKind(str(backend).strip().lower())
    except ValueError:
        return None


def _shm_world(size: int, options: Mapping[str, str]) -> list[Environment]:
    # Random: no other run has this name, and no other user can take it first.
    name = f"cobre-{secrets.token_hex(8)}"
    world = {**options, variables.SHM_NAME: name, variables.SHM_SIZE: str(size)}
    # Through the config, so that a wrong option is rejected here and not by every rank.
    return [ShmConfig.from_env({**world, variables.SHM_RANK: str(rank)}).to_env() for rank in range(size)]


def _tcp_world(size: int, options: Mapping[str, str]) -> list[Environment]:
    """Return a world on the loopback interface.

    The secret is in the ranks' environment, which other users cannot read.
    """
    coordinator, port = _free_loopback()
    world = {
        variables.TCP_COORDINATOR: coordinator,
        variables.TCP_PORT: str(port),
        variables.TCP_SECRET: secrets.token_hex(32),
        variables.TCP_RUN_ID: secrets.token_hex(8),
        # The caller may replace all of these, but not the number of ranks.
        **options,
        variables.TCP_SIZE: str(size),
    }
    return [TcpConfig.from_env({**world, variables.TCP_RANK: str(rank)}).to_env() for rank in range(size)]


def _free_loopback() -> tuple[str, int]:
    """Return a loopback address and a port that are free.

    The port is found by binding and closing, so another process could take it before rank 0 does. On Linux all of
    127.0.0.0/8 is loopback: a random address makes that unlikely. Binding also finds conflicts with listeners on all
    addresses, which occupy their port on each of them.
    """
    numbers = (secrets.randbelow(254) + 1 for _ in range(3))
    address = ".".join(map(str, (127, *numbers))) if platform.system() == "Linux" else "127.0.0.1"
    with socket.socket() as probe:
        probe.bind((address, 0))
        return address, probe.getsockname()[1]


def _local_world(size: int, options: Mapping[str, str]) -> list[Environment]:  # noqa: ARG001 - nothing to tune
    if size != 1:
        raise InitializationFailedError("local", f"backend local has one rank, got {size}; use backend shm")
    return [LocalConfig().to_env()]


# A new backend that this launcher can start adds a function here.
_WORLDS: dict[BackendKind, Callable[[int, Mapping[str, str]], list[Environment]]] = {
    BackendKind.AUTO: _shm_world,
    BackendKind.SHM: _shm_world,
    BackendKind.TCP: _tcp_world,
    BackendKind.LOCAL: _local_world,
}


def without_rank_variables(environ: Mapping[str, str]) -> Environment:
    """Return the variables without those that make a process a rank (`COBRE_SHM_*`, `COBRE_TCP_*`, the backend).

    A child that inherited them would claim its parent's rank.
    """
    return {
        name: value
        for name, value in environ.items()
        if not name.startswith(variables.PREFIXES) and name != variables.BACKEND
    }


def new_process_environment(extra: Mapping[str, str]) -> Environment:
    """Return the environment for a process that can import `cobre` as this one can, and is not a rank of its world.

    extra: more variables, which take precedence. Example:

        subprocess.Popen(command, env=new_process_environment({"OMP_NUM_THREADS": "1"}))
    """
    return with_import_path({**without_rank_variables(os.environ), **extra})


def _inherited(environ: Mapping[str, str]) -> Environment:
    # The ranks are the parallelism: BLAS threads on top of them would compete for the same cores. Unbuffered, for
    # Python programs that ranks start: what one of them has printed before it is killed should be seen.
    return THREAD_VARIABLES | without_rank_variables(environ) | {"PYTHONUNBUFFERED": "1"}


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
                reading, self.writing[name] = os.pipe()
                self.streams.append(Stream(self.rank, name, reading))
        except OSError:  # too many open files: close those that were opened, or the error could not even be reported
            self.close()
            raise

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

PROGRAM = Path(__file__).with_name("child_program.py")

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


def child_command(kind: str) -> list[str]:
    """Return the command that runs `child_program` as `kind` (a rank, a fork server) under this interpreter."""
    # -u: what a dying rank has printed must not be lost in a buffer. -P: a file in the current directory must not
    # shadow a library before the rank has taken over its parent's sys.path.
    return [sys.executable, *interpreter_flags(), "-u", "-P", str(PROGRAM), kind]


def interpreter_flags() -> list[str]:
    """Return the command-line options that this interpreter was started with, without -i and -q."""
    flags = [option for name, option in FLAGS.items() for _ in range(getattr(sys.flags, name))]
    flags += [f"-W{option}" for option in sys.warnoptions]
    for name, value in sys._xoptions.items():
        flags += ["-X", name if value is True else f"{name}={value}"]
    return flags


def with_import_path(environment: Mapping[str, str]) -> dict[str, str]:
    """Extend PYTHONPATH if `cobre` can only be imported through this process's `sys.path`.

    Returns a copy of the environment.
    """
    root = Path(cobre.__file__).parent.parent
    python_path = environment.get("PYTHONPATH", "")
    importable = [*python_path.split(os.pathsep), *site.getsitepackages(), site.getusersitepackages()]
    if root in map(_absolute, importable) or root not in map(_absolute, sys.path):
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
    """Parameters that differ between ranks. environment: the complete one. result: descriptor of the result file."""

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
        """Return whether the process has ended, without reaping it if the platform allows that."""
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
        [*child_command(RANK), *map(str, numbers)],
        env=with_import_path(environment),
        stdin=subprocess.DEVNULL,
        stdout=spec.pipes.writing["stdout"],
        stderr=spec.pipes.writing["stderr"],
        pass_fds=descriptors,
        process_group=0,
    )
    return SpawnedChild(process)
