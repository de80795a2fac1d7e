"""Backends of other distributions: found by an entry point, chosen by name.

A distribution registers a configuration class under the name of its backend:

    [project.entry-points."cobre.comm.backends"]
    folder = "folder_backend:FolderConfig"

`COBRE_COMM_BACKEND=folder`, `create_communicator("folder")`, `cobre.train(case, backend="folder", num_workers=4)`,
`cobre run --backend folder` and `python -m cobre.comm.testing --backend folder` then use it. "auto" never chooses it:
finding out who is registered takes longer than reading the environment. Names of our own backends cannot be replaced.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from typing import ClassVar, Self

from cobre.comm import variables
from cobre.comm.backends.base import Backend
from cobre.comm.config import LocalConfig, MpiConfig, ShmConfig, TcpConfig
from cobre.comm.errors import BackendNotAvailableError, InvalidBackendError, MissingConfigurationError
from cobre.comm.types import BackendKind

GROUP = "cobre.comm.backends"
"""The group of entry points, whose values are subclasses of `RegisteredConfig`."""


class RegisteredConfig(ABC):
    """How a rank of a registered backend finds its world; usually a frozen dataclass.

    kind: the name of the backend, that of its entry point. Raise `InitializationFailedError` for a value that is
    invalid, `MissingConfigurationError` for a variable that is missing or malformed.
    """

    kind: ClassVar[str]

    @classmethod
    @abstractmethod
    def from_env(cls, environ: Mapping[str, str] = os.environ) -> Self:
        """Read the variables by which a process joins as a rank."""

    @abstractmethod
    def to_env(self) -> dict[str, str]:
        """The variables that make another process read the same config."""

    @abstractmethod
    def connect(self) -> Backend:
        """Join the world, and return this rank's communicator once all ranks have joined."""

    @classmethod
    def new_world(cls, size: int, options: Mapping[str, str]) -> list[Self]:
        """The configs of all ranks of a new world on this machine, by rank, for launchers and the conformance kit.

        options: variables that the caller set for all ranks. By default the backend has a launcher of its own.
        """
        raise BackendNotAvailableError(
            cls.kind, f"its ranks are started by its own launcher; each calls create_communicator('{cls.kind}')"
        )

    @classmethod
    def is_rank(cls, environ: Mapping[str, str]) -> bool:
        """Whether the variables make this process a rank; by default, whether `from_env` finds what it needs."""
        try:
            cls.from_env(environ)
        except MissingConfigurationError:
            return False
        return True


BackendConfig = LocalConfig | ShmConfig | MpiConfig | TcpConfig | RegisteredConfig


def registered_names() -> tuple[str, ...]:
    """The names of registered backends, in alphabetical order."""
    return tuple(sorted(_entry_points()))


def registered_config(name: str, variable: str = "") -> type[RegisteredConfig]:
    """The configuration class that is registered under a name. variable: where the name comes from, for the error.

    Raises `InvalidBackendError` if there is none, and `BackendNotAvailableError` if it cannot be loaded.
    """
    entry = _entry_points().get(name.strip().lower())
    if entry is None:
        known = [*(member.value for member in BackendKind), *registered_names()]
        raise InvalidBackendError(name, known, variable)
    owner = f"{entry.value}, which {entry.dist.name if entry.dist else 'a distribution'} registers"
    try:
        found = entry.load()
    except Exception as error:  # whatever somebody else's module raises when it is imported
        raise BackendNotAvailableError(entry.name, f"{owner}, cannot be loaded: {error}") from error
    if not (isinstance(found, type) and issubclass(found, RegisteredConfig)) or found.kind != entry.name:
        raise BackendNotAvailableError(
            entry.name, f"{owner}, must be a subclass of RegisteredConfig whose kind is '{entry.name}'"
        )
    return found


def rank_variables_of(name: str, size: int, options: Mapping[str, str]) -> list[dict[str, str]]:
    """The variables by which each rank joins a new world of a registered backend."""
    config_type = registered_config(name)
    return [config.to_env() | {variables.BACKEND: config_type.kind} for config in config_type.new_world(size, options)]


@cache
def _entry_points() -> dict[str, metadata.EntryPoint]:
    found = {entry.name.lower(): entry for entry in metadata.entry_points(group=GROUP)}
    return {name: entry for name, entry in found.items() if name not in list(BackendKind)}
