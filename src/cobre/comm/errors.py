"""Exceptions of `cobre.comm`, named by cause and by what the caller may still do.

There are two families. `BackendError`: no communicator could be created. `CommError`: a call on one failed.

Every error of a call is one of these, or a subclass of one:

- `InvalidBufferSizeError`, `InvalidRootError`: a bad argument. Nothing was sent, and the communicator stays usable.
- `AllocationFailedError`: not enough memory for a region, on every rank alike. The communicator stays usable.
- `CollectiveFailedError`: a call failed after it had started. The communicator is broken on every rank.
- `InvalidCommunicatorError`: this object cannot be used: it is closed, broken, busy, or belongs to another process.

All of them can be pickled, so that a launcher can send a rank's error to its parent.
"""

import os
import re
import signal
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from cobre.errors import CobreError


@dataclass(frozen=True, slots=True)
class Peer:
    """A rank that an error is about: its host and pid (0: unknown), and `status`, what is known about its failure."""

    rank: int
    host: str = "?"
    pid: int = 0
    status: str = ""

    @classmethod
    def of_this_process(cls, rank: int) -> Self:
        """Return this process as a rank of its world, with its host and pid."""
        return cls(rank, socket.gethostname(), os.getpid())

    def __str__(self) -> str:
        where = f"rank {self.rank} (host {self.host}, pid {self.pid})" if self.pid else f"rank {self.rank}"
        return f"{where} {self.status}" if self.status else where


class CommError(CobreError):
    """Base class: a call on a communicator failed."""

    remedy = "start the run again; its checkpoints, if there are any, are kept (--resume)"


class CollectiveFailedError(CommError):
    """A collective failed after it had started; the communicator is broken (clause 4).

    operation: the name of the method. sequence: the number of the call. mpi_error_code: from MPI; 0 on other backends.
    peers: the ranks that caused the failure, with host and pid. Its notes (`__notes__`) list the last calls of this
    rank.
    """

    def __init__(
        self,
        operation: str,
        mpi_error_code: int,
        message: str,
        sequence: int = 0,
        peers: Sequence[Peer] = (),
    ) -> None:
        super().__init__(operation, mpi_error_code, message, sequence, tuple(peers))
        self.operation = operation
        self.mpi_error_code = mpi_error_code
        self.message = message
        self.sequence = sequence
        self.peers = tuple(peers)

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks that caused the failure."""
        return tuple(peer.rank for peer in self.peers)

    def details(self) -> dict[str, Any]:
        """Add `operation`, `sequence`, `mpi_error_code`, and the `ranks` that caused the failure."""
        facts = {"operation": self.operation, "sequence": self.sequence, "mpi_error_code": self.mpi_error_code}
        return super().details() | facts | {"ranks": list(self.ranks)}

    def __str__(self) -> str:
        code = f" (MPI error code {self.mpi_error_code})" if self.mpi_error_code else ""
        return f"{self.operation} call #{self.sequence} failed: {self.message}{code}"


class PeerLostError(CollectiveFailedError):
    """A rank died, or closed or broke its communicator, while others still needed it."""


class PeerTimeoutError(CollectiveFailedError):
    """A rank has sent no heartbeat for the timeout, or an operation has exceeded its hard limit."""


class MismatchedCallError(CollectiveFailedError):
    """Ranks made different calls; no data was delivered (clause 2)."""

    remedy = "make the same calls in the same order on all ranks; the message names the two that differ"


class AbortedError(CollectiveFailedError):
    """Another rank called `abort`, or left its `with` block by an exception."""


class InvalidBufferSizeError(CommError):
    """A buffer, count or displacement does not fit the call; nothing was sent (clause 3)."""

    remedy = "correct the arguments and call again: nothing was sent, and the communicator stays usable"

    def __init__(self, operation: str, expected: object, actual: object) -> None:
        super().__init__(operation, expected, actual)
        self.operation = operation
        self.expected = expected
        self.actual = actual

    def __str__(self) -> str:
        return f"{self.operation}: expected {self.expected}, got {self.actual}"


class UnsupportedBufferError(InvalidBufferSizeError):
    """A buffer that cannot be used at all: not contiguous, read-only, of object dtype, in foreign byte order."""


class UnsupportedReductionError(InvalidBufferSizeError):
    """The reduction does not exist, or not for this dtype."""


class InvalidRootError(CommError):
    """The root is not a rank of this communicator; nothing was sent (clause 3)."""

    remedy = "correct the root and call again: nothing was sent, and the communicator stays usable"

    def __init__(self, root: object, size: int) -> None:
        super().__init__(root, size)
        self.root = root
        self.size = size

    def __str__(self) -> str:
        return f"root must be a rank from 0 to {self.size - 1}, got {self.root!r}"


class InvalidCommunicatorError(CommError):
    """This communicator or region cannot be used now; the subclass names the reason."""


class CommunicatorClosedError(InvalidCommunicatorError):
    """This rank has closed the communicator."""

    remedy = "create another communicator"


class CommunicatorBrokenError(InvalidCommunicatorError):
    """An earlier failure, the `__cause__`, broke the communicator (clause 4)."""


class CommunicatorBusyError(InvalidCommunicatorError):
    """Another thread is inside a call on this communicator (clause 6)."""

    remedy = "call from one thread at a time"


class ForkedCommunicatorError(InvalidCommunicatorError):
    """The communicator was inherited by a fork; it belongs to the parent process (clause 6)."""

    remedy = "create a communicator in the process that uses it"


class NotLeaderError(InvalidCommunicatorError):
    """Only the leader of a node may write a whole shared region; other ranks ask for a slice."""

    remedy = "write as the leader, or ask for a slice: as_mut_array(start, stop)"


class RegionClosedError(InvalidCommunicatorError):
    """This rank has closed the shared region."""

    remedy = "create another region"


class AllocationFailedError(CommError):
    """Not enough memory for a shared region, on every rank alike; the communicator stays usable.

    requested_bytes: the size of the region, or of what the backend needed for itself.
    """

    remedy = "give /dev/shm more room (mount -o remount,size=..., docker run --shm-size), or use fewer ranks per host"

    def __init__(self, requested_bytes: int, message: str) -> None:
        super().__init__(requested_bytes, message)
        self.requested_bytes = requested_bytes
        self.message = message

    def details(self) -> dict[str, Any]:
        """Add `requested_bytes`."""
        return super().details() | {"requested_bytes": self.requested_bytes}

    def __str__(self) -> str:
        return self.message


class BackendError(CobreError):
    """Base class: a communicator could not be created.

    backend: its name. variable: the environment variable that is missing or wrong; empty if it is not about one.
    """

    backend: str = ""
    variable: str = ""

    def details(self) -> dict[str, Any]:
        """Add `backend` and `variable`; None for what the error is not about."""
        return super().details() | {"backend": self.backend or None, "variable": self.variable or None}


class BackendNotAvailableError(BackendError):
    """The backend exists but cannot be used here; the message explains how to make it usable.

    library: the optional library that is not installed, if that is the reason.
    """

    def __init__(self, backend: str, reason: str, *, remedy: str = "", library: str = "") -> None:
        super().__init__(backend, reason)
        self.backend = backend
        self.reason = reason
        self.remedy = remedy or reason
        self.library = library

    def details(self) -> dict[str, Any]:
        """Add `library`, if one is not installed."""
        return super().details() | ({"library": self.library} if self.library else {})

    def __str__(self) -> str:
        return f"backend '{self.backend}' is not available: {self.reason}"


class InvalidBackendError(BackendError):
    """There is no backend of that name; `available` lists those that exist.

    variable: `COBRE_COMM_BACKEND` if the name comes from there.
    """

    def __init__(self, requested: str, available: Sequence[str], variable: str = "") -> None:
        super().__init__(requested, tuple(available))
        self.requested = self.backend = requested
        self.available = tuple(available)
        self.variable = variable
        self.remedy = f"choose one of {', '.join(self.available)}"

    def details(self) -> dict[str, Any]:
        """Add `available`."""
        return super().details() | {"available": list(self.available)}

    def __str__(self) -> str:
        where = f" in {self.variable}" if self.variable else ""
        return f"unknown backend '{self.requested}'{where}; {self.remedy}"


class InitializationFailedError(BackendError):
    """The ranks could not join: one is missing, was refused, or has an invalid configuration.

    variable: the one whose value is invalid; by default the first that the message names. missing: the ranks that did
    not connect, where that is the reason.
    """

    def __init__(
        self, backend: str, message: str, missing: Sequence[int] = (), *, variable: str = "", remedy: str = ""
    ) -> None:
        super().__init__(backend, message, tuple(missing))
        self.backend = backend
        self.message = message
        self.missing = tuple(missing)
        self.variable = variable or _named_variable(message)
        self.remedy = remedy or (
            f"correct {self.variable}: {message}" if self.variable else "`cobre doctor` tests the backends here"
        )

    @classmethod
    def invalid_value(cls, backend: str, variable: str, requirement: str, value: object) -> Self:
        """Make the error for a variable, or the field of a config, that "must be `requirement`, got `value`"."""
        message = f"{variable} must be {requirement}, got {value}"
        return cls(backend, message, variable=variable, remedy=f"set {variable} to {requirement}")

    def details(self) -> dict[str, Any]:
        """Add `missing`, the ranks that did not join, if any."""
        return super().details() | ({"missing": list(self.missing)} if self.missing else {})

    def __str__(self) -> str:
        return f"{self.backend}: {self.message}"


def _named_variable(message: str) -> str:
    match = re.search(r"\bCOBRE_[A-Z]+(?:_[A-Z]+)*\b", message)
    return match[0] if match else ""


class RendezvousAbandonedError(InitializationFailedError):
    """This rank has joined, but the coordinator has given up waiting for others: a consequence, not the cause."""


class SharedMemoryExhaustedError(InitializationFailedError, AllocationFailedError):
    """Not enough shared memory for the backend itself; caught as either of its base classes."""

    def __init__(self, backend: str, requested_bytes: int, message: str) -> None:
        Exception.__init__(self, backend, requested_bytes, message)
        self.backend = backend
        self.missing = ()
        self.requested_bytes = requested_bytes
        self.message = message
        self.variable = _named_variable(message)


class MissingConfigurationError(BackendError):
    """An environment variable that the backend needs is missing or malformed."""

    def __init__(self, backend: str, variable: str, message: str) -> None:
        super().__init__(backend, variable, message)
        self.backend = backend
        self.variable = variable
        self.message = message
        self.remedy = f"set {variable}, which {message}"

    def __str__(self) -> str:
        return f"{self.backend}: {self.variable} {self.message}"


class TerminatedError(KeyboardInterrupt):
    """SIGTERM, handled like Ctrl-C: a `KeyboardInterrupt` whose process exits with the code of SIGTERM."""


def stop_exception(signum: int) -> KeyboardInterrupt:
    """Return the exception that a signal handler raises to stop the program: `TerminatedError` for SIGTERM."""
    return TerminatedError() if signum == signal.SIGTERM else KeyboardInterrupt()
