"""The environment variables by which a rank finds its world, one constant for each.

Error messages and the documentation spell them out. Other variables are constants where they are read:
`COBRE_COMM_TRACE` in `trace.writer`, `COBRE_LAUNCH_MESSAGES` in `launch.messages`, and in native code
`COBRE_WIDE_INSTRUCTIONS` (`native/wide_instructions.hpp`).
"""

import math
from collections.abc import Mapping
from dataclasses import fields
from numbers import Integral, Real
from typing import Any

from cobre import _native
from cobre.comm.errors import InitializationFailedError, MissingConfigurationError

BACKEND = "COBRE_COMM_BACKEND"
SHM_RANK = "COBRE_SHM_RANK"
SHM_SIZE = "COBRE_SHM_SIZE"
SHM_NAME = "COBRE_SHM_NAME"
SHM_TIMEOUT = "COBRE_SHM_TIMEOUT_SECS"
SHM_CONNECT_TIMEOUT = "COBRE_SHM_CONNECT_TIMEOUT_SECS"
SHM_OPERATION_TIMEOUT = "COBRE_SHM_OPERATION_TIMEOUT_SECS"
SHM_WAIT = "COBRE_SHM_WAIT"
SHM_WINDOW_BYTES = "COBRE_SHM_WINDOW_BYTES"
SHM_RENDEZVOUS = "COBRE_SHM_RENDEZVOUS"
TCP_RANK = "COBRE_TCP_RANK"
TCP_SIZE = "COBRE_TCP_SIZE"
TCP_COORDINATOR = "COBRE_TCP_COORDINATOR"
TCP_PORT = "COBRE_TCP_PORT"
TCP_TIMEOUT = "COBRE_TCP_TIMEOUT_SECS"
TCP_CONNECT_TIMEOUT = "COBRE_TCP_CONNECT_TIMEOUT_SECS"
TCP_OPERATION_TIMEOUT = "COBRE_TCP_OPERATION_TIMEOUT_SECS"
TCP_INSECURE = "COBRE_TCP_INSECURE"
TCP_RANKS_PER_HOST = "COBRE_TCP_RANKS_PER_HOST"
TCP_RING_BYTES = "COBRE_TCP_RING_BYTES"
TCP_RING_PORTS = "COBRE_TCP_RING_PORTS"
TCP_BIND = "COBRE_TCP_BIND"
TCP_SECRET_FILE = "COBRE_TCP_SECRET_FILE"  # noqa: S105 - the name of a variable
TCP_SECRET = "COBRE_TCP_SECRET"  # noqa: S105 - the name of a variable
TCP_RUN_ID = "COBRE_TCP_RUN_ID"
TCP_TLS_CERT = "COBRE_TCP_TLS_CERT"
TCP_TLS_KEY = "COBRE_TCP_TLS_KEY"
TCP_TLS_CA = "COBRE_TCP_TLS_CA"
MPI_CHECKED = "COBRE_MPI_CHECKED"
MPI_MAX_MESSAGE_BYTES = "COBRE_MPI_MAX_MESSAGE_BYTES"
REQUIRED_BY_SHM = (SHM_NAME, SHM_RANK, SHM_SIZE)
REQUIRED_BY_TCP = (TCP_COORDINATOR, TCP_RANK, TCP_SIZE)
RANKS = (SHM_RANK, TCP_RANK)
PREFIXES = ("COBRE_SHM_", "COBRE_TCP_")
"""How the names of all variables of a launched world begin."""


# Checks of configurations, and how their values are read from the environment.
#
# `InitializationFailedError` names the variable or field whose value is invalid, `MissingConfigurationError` a
# variable that is missing or cannot be parsed.

MAX_RANKS = _native.MAX_RANKS  # the control region of shm has this many slots
SWITCHES = {"": False, "0": False, "false": False, "no": False, "1": True, "true": True, "yes": True}


# By declared type of a field: the types that it accepts, and their name in messages. A bool is not accepted as a
# number, although it is an int in Python.
_ACCEPTED: Mapping[object, tuple[tuple[type, ...], str]] = {
    str: ((str,), "a string"),
    bool: ((bool,), "True or False"),
    int: ((Integral,), "an integer"),
    float: ((Real,), "a number"),
    float | None: ((Real, type(None)), "a number or None"),
    int | None: ((Integral, type(None)), "an integer or None"),
}


def check_types(config: Any) -> None:
    """Reject values of a wrong type before a comparison with them fails with a less helpful error."""
    for field in fields(config):
        accepted_types, type_name = _ACCEPTED[field.type]
        value = getattr(config, field.name)
        if not isinstance(value, accepted_types) or (isinstance(value, bool) and field.type is not bool):
            field_name = f"{type(config).__name__}.{field.name}"
            raise InitializationFailedError.invalid_value(
                config.kind.value, field_name, type_name, _describe_value(config, field.name)
            )


def _describe_value(config: Any, name: str) -> str:
    """Format a value for an error message; only the type of a secret, even of one that has the wrong type."""
    value = getattr(config, name)
    is_printable = next(field.repr for field in fields(config) if field.name == name)
    return f"{value!r} ({type(value).__name__})" if is_printable else f"a {type(value).__name__}"


def check_world(backend: str, rank_variable: str, rank: int, size_variable: str, size: int) -> None:
    """Require a number of ranks from 1 to MAX_RANKS, and a rank below it."""
    if not 1 <= size <= MAX_RANKS:
        requirement = f"a number of ranks from 1 to {MAX_RANKS}"
        raise InitializationFailedError.invalid_value(
            backend, size_variable, requirement, f"{size} (processes, not bytes)"
        )
    if not 0 <= rank < size:
        requirement = f"a rank from 0 to {size - 1} ({size_variable}={size})"
        raise InitializationFailedError.invalid_value(backend, rank_variable, requirement, rank)


class EnvironmentReader:
    """Reader of typed values from the environment; raises `MissingConfigurationError`, which names the variable."""

    def __init__(self, backend: str, environ: Mapping[str, str]) -> None:
        self._backend = backend
        self._environ = environ

    def text(self, variable: str, meaning: str) -> str:
        """Return the value of a variable that is required. meaning: for the error message."""
        value = self._environ.get(variable, "")
        if not value:
            raise MissingConfigurationError(self._backend, variable, f"is not set: {meaning}")
        return value

    def integer(self, variable: str, meaning: str, default: int | None = None) -> int:
        """Return the value as an integer; required unless there is a default."""
        if default is not None and not self._environ.get(variable):
            return default
        value = self.text(variable, meaning)
        try:
            return int(value)
        except ValueError:
            raise MissingConfigurationError(
                self._backend, variable, f"must be an integer ({meaning}), got {value!r}"
            ) from None

    def optional_integer(self, variable: str, meaning: str) -> int | None:
        """Return the value as an integer; None if it is not set."""
        return self.integer(variable, meaning) if self._environ.get(variable) else None

    def switch(self, variable: str) -> bool:
        """Return whether the variable is on: 1, true, yes; off: 0, false, no, empty or not set."""
        value = self._environ.get(variable, "").strip().lower()
        if value not in SWITCHES:
            raise MissingConfigurationError(self._backend, variable, f"must be 1 or 0, got {value!r}")
        return SWITCHES[value]

    def seconds(self, variable: str, default: float) -> float:
        """Return the value as a number of seconds."""
        value = self.optional_seconds(variable)
        return default if value is None else value

    def optional_seconds(self, variable: str) -> float | None:
        """Return the value as a number of seconds; None if it is not set."""
        value = self._environ.get(variable, "")
        if not value:
            return None
        try:
            return float(value)
        except ValueError:
            raise MissingConfigurationError(
                self._backend, variable, f"must be a number of seconds, got {value!r}"
            ) from None


def check_seconds(backend: str, seconds_of: Mapping[str, float | None]) -> None:
    """Require a positive, finite number of seconds for each variable; None if not set."""
    for variable, seconds in seconds_of.items():
        if seconds is not None and not (seconds > 0 and math.isfinite(seconds)):
            requirement = "a positive number of seconds"
            raise InitializationFailedError.invalid_value(backend, variable, requirement, seconds)
