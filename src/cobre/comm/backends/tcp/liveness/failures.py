"""Maps failure records to the errors of the contract."""

import errno

from cobre.comm.backends.shm.failures import failed
from cobre.comm.backends.tcp.wire.control_messages import FailureRecord
from cobre.comm.errors import CollectiveFailedError
from cobre.comm.types import Operation

# What the kernel reports if packets are lost on the way: the peer itself may be alive.
UNREACHABLE = (errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTDOWN)


class WorldFailedError(Exception):
    """A collective cannot complete because the world has failed; `failure` says why. Internal to this backend."""

    def __init__(self, failure: FailureRecord) -> None:
        super().__init__(failure)
        self.failure = failure


def error_of(failure: FailureRecord, operation: Operation, sequence: int) -> CollectiveFailedError:
    """The contract's error for a failure record, worded as on shm."""
    return failed(failure.kind.name.lower(), failure.peers, failure.text, operation, sequence)


def is_unreachable(error: OSError | None) -> bool:
    """Whether the network is the problem: nothing came back at all, not even a reset from the peer's host."""
    return error is not None and error.errno in UNREACHABLE
