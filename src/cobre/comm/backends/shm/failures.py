"""Maps what the native transport reports to the errors of the contract."""

import errno
import os
import resource
import socket
from collections.abc import Sequence

from cobre._native import CollectiveFailure, segment_bytes
from cobre.comm.config import ShmConfig
from cobre.comm.errors import (
    AbortedError,
    AllocationFailedError,
    CollectiveFailedError,
    InitializationFailedError,
    MismatchedCallError,
    Peer,
    PeerLostError,
    PeerTimeoutError,
    SharedMemoryExhaustedError,
)
from cobre.comm.shm_space import MIB, no_shm_space
from cobre.comm.types import Operation

# By kind of failure, as native code and the tcp protocol name them.
ERRORS: dict[str, type[CollectiveFailedError]] = {
    "died": PeerLostError,
    "left": PeerLostError,
    "silent": PeerTimeoutError,
    "overdue": PeerTimeoutError,
    "aborted": AbortedError,
    "mismatch": MismatchedCallError,
}


def error_of(error: CollectiveFailure, operation: Operation, sequence: int) -> CollectiveFailedError:
    """The contract's error for a failure that the native transport found."""
    kind, failed_ranks, text = error.args
    host = socket.gethostname()  # of all ranks: they share memory
    peers = tuple(Peer(rank, host, pid, status) for rank, pid, status in failed_ranks)
    return failed(kind, peers, text, operation, sequence)


def failed(kind: str, peers: Sequence[Peer], text: str, operation: Operation, sequence: int) -> CollectiveFailedError:
    """The contract's error for a failure of this kind, a key of ERRORS. text: what else is known, may be empty."""
    return ERRORS[kind](operation.title, 0, _message(kind, peers, text), sequence, peers)


def _message(kind: str, peers: Sequence[Peer], text: str) -> str:
    if kind == "mismatch":
        return f"ranks made different calls: {text}"
    if kind == "aborted":
        return f"aborted by {text}" if text else "aborted"
    names = "; ".join(map(str, peers))
    return f"{names} (waited {text}, the limit for one operation)" if kind == "overdue" and text else names


def allocation_failed(nbytes: int, error: OSError) -> AllocationFailedError:
    """The error for a region that does not fit: what was requested, what is free, and what to do about it."""
    return AllocationFailedError(nbytes, _no_memory(nbytes, error))


def segment_error(config: ShmConfig, error: OSError) -> InitializationFailedError:
    """The startup error for a segment that could not be created or opened."""
    # A full /dev/shm, no memory, or the limit on file sizes (ulimit -f).
    if error.errno in (errno.ENOSPC, errno.ENOMEM, errno.EFBIG):
        nbytes = segment_bytes(config.size, config.window_bytes)
        return SharedMemoryExhaustedError("shm", nbytes, _no_memory(nbytes, error))
    return InitializationFailedError("shm", f"segment {config.segment_name}: {error}")


def _no_memory(nbytes: int, error: OSError) -> str:
    if error.errno == errno.EFBIG:
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
        allowed = "" if limit == resource.RLIM_INFINITY else f" of {limit / MIB:.1f} MiB"
        return (
            f"need {nbytes / MIB:.1f} MiB of shared memory, more than the limit{allowed} on the size of a file allows: "
            "raise it (ulimit -f), it holds for shared memory, too"
        )
    return no_shm_space(nbytes, os.strerror(error.errno or 0))
