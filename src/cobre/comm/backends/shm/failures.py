"""From what the native world found to the errors of the contract."""

import errno
import os
import socket

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
from cobre.comm.shm_space import no_shm_space
from cobre.comm.types import Operation

ERRORS: dict[str, type[CollectiveFailedError]] = {
    "died": PeerLostError,
    "left": PeerLostError,
    "silent": PeerTimeoutError,
    "overdue": PeerTimeoutError,
    "aborted": AbortedError,
    "mismatch": MismatchedCallError,
}


def world_failed(error: CollectiveFailure, operation: Operation, sequence: int) -> CollectiveFailedError:
    """Name the failure: who, where, in which call."""
    kind, culprits, text = error.args
    host = socket.gethostname()
    peers = tuple(Peer(rank, host, pid, status) for rank, pid, status in culprits)
    return ERRORS[kind](operation.title, 0, text_of(kind, peers, text), sequence, peers)


def text_of(kind: str, peers: tuple[Peer, ...], text: str) -> str:
    """Say what happened; `text` is the native side's own words, where it has any."""
    if kind == "mismatch":
        return f"ranks made different calls: {text}"
    if kind == "aborted":
        return f"aborted by {text}" if text else "aborted"
    names = "; ".join(map(str, peers))
    return f"{names} (waited {text}, the limit for one operation)" if kind == "overdue" and text else names


def allocation_failed(nbytes: int, error: OSError) -> AllocationFailedError:
    """Say how much was asked for, how much there is, and what to do about it."""
    return AllocationFailedError(nbytes, _no_memory(nbytes, error))


def no_window(config: ShmConfig, error: OSError) -> InitializationFailedError:
    """The segment that the ranks meet in could not be made or opened."""
    if error.errno in (errno.ENOSPC, errno.ENOMEM, errno.EFBIG):
        nbytes = segment_bytes(config.size, config.window_bytes)
        return SharedMemoryExhaustedError("shm", nbytes, _no_memory(nbytes, error))
    if error.errno == errno.EACCES:
        return InitializationFailedError("shm", f"the segment {config.segment_name} belongs to another user")
    return InitializationFailedError("shm", f"the segment {config.segment_name}: {error}")


def _no_memory(nbytes: int, error: OSError) -> str:
    return no_shm_space(nbytes, os.strerror(error.errno or 0))
