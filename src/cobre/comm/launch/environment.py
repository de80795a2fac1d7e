"""Environment variables of new processes: how a rank finds its world, and what it must not inherit from this one."""

import operator
import os
import platform
import secrets
import socket
from collections.abc import Callable, Mapping

from cobre.comm.config import BACKEND_VARIABLE, MAX_SHM_RANKS, LocalConfig, ShmConfig, TcpConfig
from cobre.comm.errors import BackendNotAvailableError, InitializationFailedError, InvalidBackendError
from cobre.comm.launch.interpreter import with_import_path
from cobre.comm.types import BackendKind

WORLD_PREFIXES = ("COBRE_SHM_", "COBRE_TCP_")
RANK_VARIABLES = ("COBRE_SHM_RANK", "COBRE_TCP_RANK")
THREAD_VARIABLES = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    # Arrow's second allocator, which it does not use unless told to, starts a thread as soon as it is loaded.
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}

Environment = dict[str, str]


def check_size(backend: str, size: object) -> int:
    """The number of ranks, or an error that says what is wrong with it."""
    try:
        ranks = operator.index(size)  # type: ignore[arg-type]  # what is no integer raises
    except TypeError:
        ranks = 0
    if isinstance(size, bool) or not 1 <= ranks <= MAX_SHM_RANKS:
        raise InitializationFailedError(
            backend,
            f"size must be a number of ranks from 1 to {MAX_SHM_RANKS}, got {size!r}; nothing was started",
        )
    return ranks


def rank_environments(backend: str, size: int, extra: Mapping[str, str]) -> list[Environment]:
    """The whole environment of every rank: ours without our own world, then `extra`, then the new world."""
    base = _inherited(os.environ)
    base.update(extra)
    return [base | world for world in world_environments(backend, size, extra)]


def world_environments(backend: str, size: int, options: Mapping[str, str]) -> list[Environment]:
    """The variables by which each rank joins a new world; `options` may tune it (`COBRE_SHM_WAIT`, ...)."""
    kind = _parse(backend)
    make_world = _WORLDS.get(kind)
    if make_world is None:
        raise BackendNotAvailableError(
            kind.value,
            f"ranks of an MPI world are started by MPI's own launcher: mpiexec -n {size} python script.py, where the "
            f"script calls create_communicator(); this one starts {', '.join(launchable_backends())} worlds",
        )
    return make_world(size, options)


def launchable_backends() -> tuple[str, ...]:
    """The backends whose worlds can be started from here."""
    return tuple(kind.value for kind in _WORLDS if kind is not BackendKind.AUTO)


def segment_name(environment: Mapping[str, str]) -> str | None:
    """The name of the segment that the ranks attach to, which outlives them if all are killed before they have.

    None where the ranks do not share memory by name.
    """
    return environment.get("COBRE_SHM_NAME")


def _parse(backend: str) -> BackendKind:
    try:
        return BackendKind(str(backend).strip().lower())
    except ValueError:
        raise InvalidBackendError(str(backend), launchable_backends()) from None


def _shm_world(size: int, options: Mapping[str, str]) -> list[Environment]:
    name = f"cobre-{secrets.token_hex(8)}"
    world = {**options, "COBRE_SHM_NAME": name, "COBRE_SHM_SIZE": str(size)}
    # Through the config, so that a wrong option is refused here and not by every rank.
    return [ShmConfig.from_env({**world, "COBRE_SHM_RANK": str(rank)}).to_env() for rank in range(size)]


def _tcp_world(size: int, options: Mapping[str, str]) -> list[Environment]:
    """A world on this machine's loopback; the secret travels in the children's environment, which is theirs alone."""
    coordinator, port = _free_loopback()
    world = {
        "COBRE_TCP_COORDINATOR": coordinator,
        "COBRE_TCP_PORT": str(port),
        "COBRE_TCP_SECRET": secrets.token_hex(32),
        "COBRE_TCP_RUN_ID": secrets.token_hex(8),
        **options,
        "COBRE_TCP_SIZE": str(size),
    }
    return [TcpConfig.from_env({**world, "COBRE_TCP_RANK": str(rank)}).to_env() for rank in range(size)]


def _free_loopback() -> tuple[str, int]:
    """An address and a port that nobody uses: a listener on all addresses has its port on each of them.

    On Linux all of 127.0.0.0/8 is this machine. One of millions of addresses makes it unlikely that somebody takes the
    port before rank 0 does.
    """
    numbers = (secrets.randbelow(254) + 1 for _ in range(3))
    address = ".".join(map(str, (127, *numbers))) if platform.system() == "Linux" else "127.0.0.1"
    with socket.socket() as probe:
        probe.bind((address, 0))
        return address, probe.getsockname()[1]


def _local_world(size: int, options: Mapping[str, str]) -> list[Environment]:  # noqa: ARG001 - nothing to tune
    if size != 1:
        raise InitializationFailedError("local", f"a local world has one rank, not {size}; use backend 'shm'")
    return [LocalConfig().to_env()]


# One more backend is one more function here.
_WORLDS: dict[BackendKind, Callable[[int, Mapping[str, str]], list[Environment]]] = {
    BackendKind.AUTO: _shm_world,
    BackendKind.SHM: _shm_world,
    BackendKind.TCP: _tcp_world,
    BackendKind.LOCAL: _local_world,
}


def without_world(environ: Mapping[str, str]) -> Environment:
    """The variables except those that make a process a rank of a world (`COBRE_SHM_*`, `COBRE_TCP_*`, the backend).

    A child that inherited them would claim its parent's place.
    """
    return {
        name: value
        for name, value in environ.items()
        if not name.startswith(WORLD_PREFIXES) and name != BACKEND_VARIABLE
    }


def new_process_environment(extra: Mapping[str, str]) -> Environment:
    """The whole environment of a process that is no rank of this one's world, and can import `cobre` as this one can.

    extra: further variables, which win. Example: `subprocess.Popen(command, env=new_process_environment({}))`.
    """
    return with_import_path({**without_world(os.environ), **extra})


def _inherited(environ: Mapping[str, str]) -> Environment:
    # The ranks are the parallelism: threads of BLAS on top of them would only compete.
    return THREAD_VARIABLES | without_world(environ) | {"PYTHONUNBUFFERED": "1"}
