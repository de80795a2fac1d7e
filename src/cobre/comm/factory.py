"""Creates communicators, from a name, a config or the environment."""

import os
from collections.abc import Collection, Mapping

from cobre.comm.backends.base import Backend
from cobre.comm.config import BACKEND_VARIABLE, BackendConfig, LocalConfig, MpiConfig, ShmConfig, TcpConfig
from cobre.comm.detection import detect, installed_backends, require_installed
from cobre.comm.endpoint import logger
from cobre.comm.errors import InvalidBackendError
from cobre.comm.types import BackendKind

_CONFIGS: Mapping[BackendKind, type[BackendConfig]] = {
    BackendKind.MPI: MpiConfig,
    BackendKind.TCP: TcpConfig,
    BackendKind.SHM: ShmConfig,
    BackendKind.LOCAL: LocalConfig,
}


def create_communicator(kind: BackendKind | BackendConfig | str | None = None) -> Backend:
    """Join the world that `kind` or the environment describes, and return this rank's communicator.

    kind: a config (`ShmConfig(...)`) is used as it is; a name reads that backend's variables; None reads
    `COBRE_COMM_BACKEND`. "auto", its default, takes the first of mpi, tcp, shm and local whose launcher
    or variables are found in the environment.

    Blocks until all ranks have joined, for `connect_timeout_s` at most. Raises `BackendError`:
    `BackendNotAvailableError` (not installed; the message says how to), `InvalidBackendError` (unknown name),
    `MissingConfigurationError` (a variable is missing or malformed), `InitializationFailedError` (a value is invalid,
    or not all ranks have joined).

        with create_communicator() as comm:
            comm.barrier()

    The `with` block closes the communicator; leaving it by an exception aborts the other ranks (clause 5).
    """
    if kind is None or isinstance(kind, str):
        config, reason = select_backend(kind, os.environ)
        logger.info("backend %s: %s; %s overrides this", config.kind.value, reason, BACKEND_VARIABLE)
        return _connect(config)
    if isinstance(kind, BackendConfig):
        require_installed(kind.kind, installed_backends())
        return _connect(kind)
    raise InvalidBackendError(repr(kind), [member.value for member in BackendKind])


def available_backends() -> tuple[str, ...]:
    """The names of the backends that this installation has, in the order of preference of "auto"."""
    return tuple(kind.value for kind in installed_backends())


def select_backend(
    kind: str | None, environ: Mapping[str, str], installed: Collection[BackendKind] | None = None
) -> tuple[BackendConfig, str]:
    """The config of the backend to use, and the reason for the choice. Only reads the environment, imports nothing.

    installed: the backends to choose from; None: those of this installation.
    """
    present = installed_backends() if installed is None else installed
    named = kind or environ.get(BACKEND_VARIABLE) or BackendKind.AUTO
    reason = "requested by the caller" if kind else f"{BACKEND_VARIABLE}={named}"
    choice = _parse(named)
    if choice is BackendKind.AUTO:
        choice, reason = detect(environ, present)
    require_installed(choice, present)
    return _CONFIGS[choice].from_env(environ), reason


def _parse(name: str) -> BackendKind:
    try:
        return BackendKind(name.strip().lower())
    except ValueError:
        raise InvalidBackendError(name, [member.value for member in BackendKind]) from None


def _connect(config: BackendConfig) -> Backend:
    if isinstance(config, MpiConfig):
        from cobre.comm.backends.mpi.communicator import MpiCommunicator  # noqa: PLC0415 - only when chosen

        return MpiCommunicator(config)
    if isinstance(config, TcpConfig):
        from cobre.comm.backends.tcp.communicator import TcpCommunicator  # noqa: PLC0415 - only when chosen

        return TcpCommunicator(config)
    if isinstance(config, ShmConfig):
        from cobre.comm.backends.shm.communicator import ShmCommunicator  # noqa: PLC0415 - only when chosen

        return ShmCommunicator(config)
    from cobre.comm.backends.local import LocalCommunicator  # noqa: PLC0415 - only when chosen

    return LocalCommunicator()
