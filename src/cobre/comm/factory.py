"""The factory of communicators, from a name, a config or the environment; borrows those that a caller hands over."""

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Self

from cobre.comm import variables
from cobre.comm.backends.base import Backend
from cobre.comm.config import BACKEND_VARIABLE, LocalConfig, MpiConfig, ShmConfig, TcpConfig
from cobre.comm.detection import detect, installed_backends, require_installed
from cobre.comm.endpoint import logger
from cobre.comm.errors import BackendNotAvailableError, InvalidBackendError, MissingConfigurationError
from cobre.comm.exit_report import ExitReport, attach_exit_report, exit_report_of
from cobre.comm.types import BackendKind

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

# Backends of other distributions: found by an entry point, chosen by name.
#
# A distribution registers a configuration class under the name of its backend:
#
#     [project.entry-points."cobre.comm.backends"]
#     folder = "folder_backend:FolderConfig"
#
# `COBRE_COMM_BACKEND=folder`, `create_communicator("folder")`, `cobre.train(case, backend="folder", num_workers=4)`,
# `cobre run --backend folder` and `python -m cobre.comm.testing --backend folder` then use it. "auto" never chooses it:
# finding out who is registered takes longer than reading the environment. Names of our own backends cannot be replaced.

GROUP = "cobre.comm.backends"
"""The group of entry points, whose values are subclasses of `RegisteredConfig`."""


class RegisteredConfig(ABC):
    """Configuration by which a rank of a registered backend finds its world; usually a frozen dataclass.

    kind: the name of the backend and of its entry point. rank_variables: the variables that a rank needs; all or none
    of them must be set, or each process would start a separate world. Raise `InitializationFailedError` for an invalid
    value, `MissingConfigurationError` for a missing or malformed variable.
    """

    kind: ClassVar[str]
    rank_variables: ClassVar[tuple[str, ...]] = ()

    @classmethod
    @abstractmethod
    def from_env(cls, environ: Mapping[str, str] = os.environ) -> Self:
        """Read the variables by which a process joins as a rank."""

    @abstractmethod
    def to_env(self) -> dict[str, str]:
        """Return the variables that make another process read the same config."""

    @abstractmethod
    def connect(self) -> Backend:
        """Join the world, and return this rank's communicator once all ranks have joined."""

    @classmethod
    def new_world(cls, size: int, options: Mapping[str, str]) -> list[Self]:
        """Return the configs of all ranks of a new world on this machine, for launchers and the conformance kit.

        options: variables that the caller set for all ranks. By default the backend has a separate launcher.
        """
        raise BackendNotAvailableError(
            cls.kind, f"its ranks are started by its own launcher; each calls create_communicator('{cls.kind}')"
        )

    @classmethod
    def is_rank(cls, environ: Mapping[str, str]) -> bool:
        """Return whether the variables make this process a rank.

        By default, whether one of `rank_variables` is set; without these, whether `from_env` finds what it needs.
        """
        if cls.rank_variables:
            return any(environ.get(name) for name in cls.rank_variables)
        try:
            cls.from_env(environ)
        except MissingConfigurationError:
            return False
        return True


BackendConfig = LocalConfig | ShmConfig | MpiConfig | TcpConfig | RegisteredConfig


def registered_names() -> tuple[str, ...]:
    """Return the names of registered backends, in alphabetical order."""
    return tuple(sorted(_entry_points()))


def registered_config(name: str, variable: str = "") -> type[RegisteredConfig]:
    """Return the configuration class that is registered under a name.

    variable: the source of the name, for the error.

    Raises `InvalidBackendError` if there is none, and `BackendNotAvailableError` if it cannot be loaded.
    """
    entry = _entry_points().get(name.strip().lower())
    if entry is None:
        names = [*(member.value for member in BackendKind), *registered_names()]
        raise InvalidBackendError(name, names, variable)
    registration = f"{entry.value}, which {entry.dist.name if entry.dist else 'a distribution'} registers"
    try:
        config_type = entry.load()
    except Exception as error:  # a third-party module may raise anything when it is imported
        raise BackendNotAvailableError(entry.name, f"{registration}, cannot be loaded: {error}") from error
    if (
        not (isinstance(config_type, type) and issubclass(config_type, RegisteredConfig))
        or config_type.kind != entry.name
    ):
        raise BackendNotAvailableError(
            entry.name, f"{registration}, must be a subclass of RegisteredConfig whose kind is '{entry.name}'"
        )
    return config_type


def rank_variables_of(name: str, size: int, options: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the variables by which each rank joins a new world of a registered backend."""
    config_type = registered_config(name)
    return [config.to_env() | {variables.BACKEND: config_type.kind} for config in config_type.new_world(size, options)]


@cache
def _entry_points() -> "dict[str, EntryPoint]":
    from importlib import metadata  # noqa: PLC0415 - it loads the parsers of mail and zip files

    entries = {entry.name.lower(): entry for entry in metadata.entry_points(group=GROUP)}
    return {name: entry for name, entry in entries.items() if name not in list(BackendKind)}


_CONFIGS: Mapping[BackendKind, type[BackendConfig]] = {
    BackendKind.MPI: MpiConfig,
    BackendKind.TCP: TcpConfig,
    BackendKind.SHM: ShmConfig,
    BackendKind.LOCAL: LocalConfig,
}


def create_communicator(kind: BackendKind | BackendConfig | str | None = None) -> Backend:
    """Join the world that `kind` or the environment describes, and return this rank's communicator.

    kind: a config (`ShmConfig(...)`) is used as it is; a name, also of a backend that another distribution registers
    (`cobre.comm.factory`), reads that backend's variables; None reads `COBRE_COMM_BACKEND`. "auto", its default, takes
    the first of mpi, tcp, shm and local whose launcher or variables are in the environment.

    Blocks until all ranks have joined, for `connect_timeout_s` at most. Raises `BackendError`:
    `BackendNotAvailableError` (not installed; the message explains how to), `InvalidBackendError` (unknown name),
    `MissingConfigurationError` (a variable is missing or malformed), `InitializationFailedError` (a value is invalid,
    or not all ranks have joined).

        with create_communicator() as comm:
            comm.barrier()

    The `with` block closes the communicator; leaving it by an exception aborts the other ranks (clause 5).
    """
    if kind is None or isinstance(kind, str):
        config, reason = select_backend(kind, os.environ)
        logger.info("backend %s: %s; %s overrides this", config.kind, reason, BACKEND_VARIABLE)
        return _connect(config)
    if isinstance(kind, BackendConfig):
        if not isinstance(kind, RegisteredConfig):
            require_installed(kind.kind, installed_backends())
        return _connect(kind)
    raise InvalidBackendError(repr(kind), [member.value for member in BackendKind])


@contextmanager
def borrowed(comm: object) -> Iterator[Backend]:
    """Use a communicator that a caller hands over; it is never closed here.

    comm: a communicator of `cobre.comm`, used as it is; or an `mpi4py.MPI.Intracomm`, which is duplicated for the
    duration of the block, a collective of its ranks. Raises TypeError for anything else.

    An exception that leaves the block reaches the other ranks (`Communicator.give_up`): their current or next call
    raises `AbortedError`. On mpi, they raise it in `check_failures`; a rank that waits in a collective cannot be
    told, and the job ends.
    """
    accepted = require_communicator(comm)
    is_owned = not isinstance(accepted, Backend)
    backend = _wrap_mpi_communicator(accepted) if is_owned else accepted
    try:
        yield backend
    except BaseException as error:
        if isinstance(error, Exception) and exit_report_of(error) is None:  # what ranks on mpi exchange
            attach_exit_report(error, ExitReport(f"{type(error).__name__}: {error}", 1, f"rank {backend.rank}"))
        backend.give_up(error)
        raise
    finally:
        if is_owned:
            backend.close()


def require_communicator(comm: object) -> Any:
    """Return the argument if it is a communicator, of ours or of mpi4py; raise TypeError if not."""
    # An mpi4py communicator exists only where mpi4py was imported: nothing is imported to find out.
    mpi = sys.modules.get("mpi4py.MPI")
    if isinstance(comm, Backend) or (mpi is not None and isinstance(comm, mpi.Comm)):
        return comm  # that it is an intracommunicator, and not MPI.COMM_NULL, is checked when it is duplicated
    raise TypeError(
        f"comm: expected a communicator of cobre.comm or an mpi4py.MPI.Intracomm, got {type(comm).__name__}; "
        "create_communicator() makes one, and a configuration (TcpConfig(...)) is given as `backend`"
    )


def _wrap_mpi_communicator(comm: Any) -> Backend:
    from cobre.comm.backends.mpi.communicator import MpiCommunicator  # noqa: PLC0415 - only when chosen

    return MpiCommunicator(MpiConfig.from_env(), comm)


def available_backends() -> tuple[str, ...]:
    """Return the names of the backends that this installation has, in the order in which "auto" prefers them.

    Those that other distributions register, which "auto" does not choose, come last.
    """
    return (*(kind.value for kind in installed_backends()), *registered_names())


def select_backend(
    kind: str | None, environ: Mapping[str, str], installed: Collection[BackendKind] | None = None
) -> tuple[BackendConfig, str]:
    """Return the config of the backend to use, and the reason. Only reads the environment, imports nothing.

    installed: the backends to choose from; None: all of this installation.
    """
    installed_kinds = installed_backends() if installed is None else installed
    name = kind or environ.get(BACKEND_VARIABLE) or BackendKind.AUTO
    reason = "requested by the caller" if kind else f"{BACKEND_VARIABLE}={name}"
    choice = _own_backend(name)
    if choice is None:
        return registered_config(name, "" if kind else BACKEND_VARIABLE).from_env(environ), reason
    if choice is BackendKind.AUTO:
        choice, reason = detect(environ, installed_kinds)
    require_installed(choice, installed_kinds)
    return _CONFIGS[choice].from_env(environ), reason


def _own_backend(name: str) -> BackendKind | None:
    """Return the kind of a backend of this package, or auto; None for another name."""
    try:
        return BackendKind(name.strip().lower())
    except ValueError:
        return None


def _connect(config: BackendConfig) -> Backend:
    if isinstance(config, RegisteredConfig):
        return config.connect()
    if isinstance(config, MpiConfig):
        from cobre.comm.backends.mpi.communicator import MpiCommunicator  # noqa: PLC0415 - only when chosen

        return MpiCommunicator(config)
    if isinstance(config, TcpConfig):
        from cobre.comm.backends.tcp.communicator import TcpCommunicator  # noqa: PLC0415 - only when chosen

        return TcpCommunicator(config)
    if isinstance(config, ShmConfig):
        from cobre.comm.backends.shm import ShmCommunicator  # noqa: PLC0415 - only when chosen

        return ShmCommunicator(config)
    from cobre.comm.backends.local import LocalCommunicator  # noqa: PLC0415 - only when chosen

    return LocalCommunicator()
