"""What can go wrong, named by cause and by what the caller may still do.

Two families. `BackendError`: the communicator could not be made. `CommError`: a call on it failed.

Five `CommError` classes catch everything; finer causes are their subclasses:

- `InvalidBufferSizeError`, `InvalidRootError`: a bad argument. Nothing was sent, the communicator is usable.
- `AllocationFailedError`: no memory for a region, on every rank alike. The communicator is usable.
- `CollectiveFailedError`: a call failed half-way. The communicator is broken on every rank.
- `InvalidCommunicatorError`: this object cannot be used (closed, broken, busy, forked).

All of them pickle, so that a launcher can hand a rank's error to its parent.
"""

import signal
from collections.abc import Sequence
from dataclasses import dataclass

from cobre.errors import CobreError


@dataclass(frozen=True, slots=True)
class Peer:
    """A rank that a message is about: where it runs (pid 0: not known), and `status`, what is known of its end."""

    rank: int
    host: str = "?"
    pid: int = 0
    status: str = ""

    def __str__(self) -> str:
        where = f"rank {self.rank} (host {self.host}, pid {self.pid})" if self.pid else f"rank {self.rank}"
        return f"{where} {self.status}" if self.status else where


class CommError(CobreError):
    """A call on a communicator failed."""


class CollectiveFailedError(CommError):
    """A collective failed after it had started; the communicator is broken (clause 4).

    operation: the method's name. sequence: the call's number. mpi_error_code: MPI's, 0 on other backends. peers: the
    ranks that the failure is about.
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
        """The ranks that the failure is about."""
        return tuple(peer.rank for peer in self.peers)

    def __str__(self) -> str:
        code = f" (MPI error code {self.mpi_error_code})" if self.mpi_error_code else ""
        return f"{self.operation} call #{self.sequence} failed: {self.message}{code}"


class PeerLostError(CollectiveFailedError):
    """A rank died, closed its communicator or broke off, and the others needed it."""


class PeerTimeoutError(CollectiveFailedError):
    """A rank has given no sign of life for the timeout, or an operation passed its hard limit."""


class MismatchedCallError(CollectiveFailedError):
    """Ranks made different calls; no data was delivered (clause 2)."""


class AbortedError(CollectiveFailedError):
    """Another rank called `abort`, or left its `with` block by an exception."""


class InvalidBufferSizeError(CommError):
    """A buffer, count or displacement does not fit the call; nothing was sent."""

    def __init__(self, operation: str, expected: object, actual: object) -> None:
        super().__init__(operation, expected, actual)
        self.operation = operation
        self.expected = expected
        self.actual = actual

    def __str__(self) -> str:
        return f"{self.operation}: expected {self.expected}, got {self.actual}"


class UnsupportedBufferError(InvalidBufferSizeError):
    """A buffer that cannot be sent at all: strided, read-only, object dtype, foreign byte order."""


class UnsupportedReductionError(InvalidBufferSizeError):
    """No such reduction, or none for this dtype."""


class InvalidRootError(CommError):
    """The root is not a rank of this communicator; nothing was sent."""

    def __init__(self, root: object, size: int) -> None:
        super().__init__(root, size)
        self.root = root
        self.size = size

    def __str__(self) -> str:
        return f"root must be a rank from 0 to {self.size - 1}, got {self.root!r}"


class InvalidCommunicatorError(CommError):
    """This communicator cannot take the call."""


class CommunicatorClosedError(InvalidCommunicatorError):
    """This rank has closed the communicator."""


class CommunicatorBrokenError(InvalidCommunicatorError):
    """Broken by an earlier failure, which is the `__cause__`."""


class CommunicatorBusyError(InvalidCommunicatorError):
    """Another thread is in a collective of this communicator (clause 6)."""


class ForkedCommunicatorError(InvalidCommunicatorError):
    """This process is a fork of the one that owns the communicator (clause 6)."""


class NotLeaderError(InvalidCommunicatorError):
    """Only the leader of a node may write a whole shared region; others name their slice."""


class RegionClosedError(InvalidCommunicatorError):
    """This rank has closed the shared region."""


class AllocationFailedError(CommError):
    """No memory for a shared region, on every rank alike; the communicator stays usable."""

    def __init__(self, requested_bytes: int, message: str) -> None:
        super().__init__(requested_bytes, message)
        self.requested_bytes = requested_bytes
        self.message = message

    def __str__(self) -> str:
        return self.message


class BackendError(CobreError):
    """A communicator could not be made."""


class BackendNotAvailableError(BackendError):
    """The backend is known but cannot be used here; the message says what would make it usable."""

    def __init__(self, backend: str, reason: str) -> None:
        super().__init__(backend, reason)
        self.backend = backend
        self.reason = reason

    def __str__(self) -> str:
        return f"backend '{self.backend}' is not available: {self.reason}"


class InvalidBackendError(BackendError):
    """There is no backend of that name."""

    def __init__(self, requested: str, available: Sequence[str]) -> None:
        super().__init__(requested, tuple(available))
        self.requested = requested
        self.available = tuple(available)

    def __str__(self) -> str:
        return f"there is no backend '{self.requested}'; choose one of {', '.join(self.available)}"


class InitializationFailedError(BackendError):
    """The backend was chosen and configured, but its ranks could not form a world."""

    def __init__(self, backend: str, message: str) -> None:
        super().__init__(backend, message)
        self.backend = backend
        self.message = message

    def __str__(self) -> str:
        return f"{self.backend}: {self.message}"


class SharedMemoryExhaustedError(InitializationFailedError, AllocationFailedError):
    """No shared memory even for the collectives' own window; belongs to both families."""

    def __init__(self, backend: str, requested_bytes: int, message: str) -> None:
        Exception.__init__(self, backend, requested_bytes, message)
        self.backend = backend
        self.requested_bytes = requested_bytes
        self.message = message


class MissingConfigurationError(BackendError):
    """A variable that the backend needs is absent or makes no sense."""

    def __init__(self, backend: str, variable: str, message: str) -> None:
        super().__init__(backend, variable, message)
        self.backend = backend
        self.variable = variable
        self.message = message

    def __str__(self) -> str:
        return f"{self.backend}: {self.variable} {self.message}"


class TerminatedError(KeyboardInterrupt):
    """SIGTERM, to be obeyed at once. Goes all the way that Ctrl-C goes, but ends with the code of its own signal."""


def end_at_once(signum: int) -> KeyboardInterrupt:
    """The exception by which a signal handler ends the program at once: `TerminatedError` for SIGTERM."""
    return TerminatedError() if signum == signal.SIGTERM else KeyboardInterrupt()
