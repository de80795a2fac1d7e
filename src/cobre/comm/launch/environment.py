"""Environment variables of new processes: what makes a process a rank, and what it must not inherit from this one."""

import operator
import os
import platform
import secrets
import socket
from collections.abc import Callable, Mapping

from cobre.comm import variables
from cobre.comm.config import MAX_RANKS, LocalConfig, ShmConfig, TcpConfig
from cobre.comm.errors import BackendNotAvailableError, InitializationFailedError, InvalidBackendError
from cobre.comm.factory import rank_variables_of, registered_names
from cobre.comm.launch.spawning import with_import_path
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
    """The number of ranks as an int; raises `InitializationFailedError` if it is not an integer, or out of range."""
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
    """The environment of every rank: this process's without its own world, then `extra`, then the new world."""
    base = _inherited(os.environ)
    base.update(extra)
    return [base | world for world in rank_variables(backend, size, extra)]


def rank_variables(backend: str, size: int, options: Mapping[str, str]) -> list[Environment]:
    """The variables by which each rank joins a new world; `options` configure it (`COBRE_SHM_WAIT`, ...).

    Raises `BackendNotAvailableError` for mpi, whose worlds only an MPI launcher can start, and `InvalidBackendError`.
    """
    kind = _parse(backend)
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
    """The backends whose worlds this launcher can start."""
    return tuple(kind.value for kind in _WORLDS if kind is not BackendKind.AUTO)


def segment_name(environment: Mapping[str, str]) -> str | None:
    """The name of the shared memory segment that the ranks attach to; None on other backends.

    If all ranks are killed before they have attached, it is left behind, and must be unlinked by name.
    """
    return environment.get(variables.SHM_NAME)


def _parse(backend: str) -> BackendKind | None:
    """One of our own backends, or auto; None for another name, which may be registered."""
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
    """A world on the loopback interface. The secret is in the ranks' environment, which other users cannot read."""
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
    """A loopback address and a port that are free.

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
    """The variables without those that make a process a rank (`COBRE_SHM_*`, `COBRE_TCP_*`, the backend).

    A child that inherited them would claim its parent's rank.
    """
    return {
        name: value
        for name, value in environ.items()
        if not name.startswith(variables.PREFIXES) and name != variables.BACKEND
    }


def new_process_environment(extra: Mapping[str, str]) -> Environment:
    """The environment for a process that is not a rank of this process's world, and can import `cobre` as this one can.

    extra: more variables, which take precedence. Example:

        subprocess.Popen(command, env=new_process_environment({"OMP_NUM_THREADS": "1"}))
    """
    return with_import_path({**without_rank_variables(os.environ), **extra})


def _inherited(environ: Mapping[str, str]) -> Environment:
    # The ranks are the parallelism: BLAS threads on top of them would compete for the same cores. Unbuffered, for
    # Python programs that ranks start: what one of them has printed before it is killed should be seen.
    return THREAD_VARIABLES | without_rank_variables(environ) | {"PYTHONUNBUFFERED": "1"}
