"""The shared-memory backend, for ranks on one machine; `cobre._native` does the work."""

import errno
import math
import os
import resource
import socket
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakMethod

from cobre._native import CollectiveFailure, JoinFailure, ShmRegion, ShmTransport, region_bytes, segment_bytes
from cobre.comm.backends.base import Backend
from cobre.comm.config import ShmConfig
from cobre.comm.cores import MIB, cgroup_quota, no_shm_space
from cobre.comm.endpoint import PROGRESS_S
from cobre.comm.errors import (
    AbortedError,
    AllocationFailedError,
    CollectiveFailedError,
    InitializationFailedError,
    InvalidCommunicatorError,
    MismatchedCallError,
    Peer,
    PeerLostError,
    PeerTimeoutError,
    SharedMemoryExhaustedError,
)
from cobre.comm.shared_memory import SharedRegion
from cobre.comm.types import Array, Dtype, Operation

# What shm and tcp have in common: collectives without a Python frame around them, and shared regions in native
# mappings, one mapping per rank and one copy of the data per node.


def _not_joined(*_: object) -> None:
    raise InvalidCommunicatorError("this rank has not joined its world yet")


class NativeRegionBackend(Backend):
    """Base of backends whose collectives another object runs, and whose shared regions are native mappings."""

    # Bound to methods of the other object once this rank has joined: hooks that called them would add a Python call to
    # every collective.
    _allgatherv: Any = _not_joined
    _allreduce: Any = _not_joined
    _broadcast: Any = _not_joined
    _barrier: Any = _not_joined

    def _bind_collectives(self, collectives: Any) -> None:
        """Use a `ShmTransport` (native/shm_transport.cpp), `StarCollectives` or `HierarchicalCollectives` as hooks."""
        self._allgatherv = collectives.allgatherv
        self._allreduce = collectives.allreduce
        self._broadcast = collectives.broadcast
        self._barrier = collectives.barrier

    @abstractmethod
    def _fence_region(self, region: ShmRegion) -> None:
        """Wait for all ranks that map the region; what they wrote before is then visible to all of them."""


class ShmSharedRegion(SharedRegion):
    """A region over a native mapping, which every array of it keeps alive."""

    def __init__(self, owner: NativeRegionBackend, region: ShmRegion, count: int, dtype: Dtype) -> None:
        super().__init__(owner, count, dtype, is_leader=owner.is_leader)
        self._owner = owner
        self._region = region
        # Two arrays over one mapping: a read-only view of the writable one could be made writable again by its holder.
        self._readable: Array = region_bytes(region, False).view(dtype)
        self._writable: Array = region_bytes(region, True).view(dtype)

    def _view(self, *, writable: bool) -> Array:
        return self._writable if writable else self._readable

    def _fence(self) -> None:
        self._owner._fence_region(self._region)

    def _close(self) -> None:
        # Only the references go: arrays that were handed out keep the mapping alive.
        del self._region, self._readable, self._writable


# The errors of the contract, by kind of failure as native code and the tcp protocol name them.
ERRORS: dict[str, type[CollectiveFailedError]] = {
    "died": PeerLostError,
    "left": PeerLostError,
    "silent": PeerTimeoutError,
    "overdue": PeerTimeoutError,
    "aborted": AbortedError,
    "mismatch": MismatchedCallError,
}


def error_from_native(error: CollectiveFailure, operation: Operation, sequence: int) -> CollectiveFailedError:
    """Return the contract's error for a failure that the native transport reports."""
    kind, failed_ranks, text = error.args
    host = socket.gethostname()  # of all ranks: they share memory
    peers = tuple(Peer(rank, host, pid, status) for rank, pid, status in failed_ranks)
    return failure_error(kind, peers, text, operation, sequence)


def failure_error(
    kind: str, peers: Sequence[Peer], text: str, operation: Operation, sequence: int
) -> CollectiveFailedError:
    """Return the contract's error for a failure of this kind, a key of ERRORS. text: further details."""
    return ERRORS[kind](operation.title, 0, _message(kind, peers, text), sequence, peers)


def _message(kind: str, peers: Sequence[Peer], text: str) -> str:
    if kind == "mismatch":
        return f"ranks made different calls: {text}"
    if kind == "aborted":
        return f"aborted by {text}" if text else "aborted"
    names = "; ".join(map(str, peers))
    return f"{names} (waited {text}, the limit for one operation)" if kind == "overdue" and text else names


def allocation_error(nbytes: int, error: OSError) -> AllocationFailedError:
    """Return the error for a region that does not fit, with the requested and free bytes and the remedy."""
    return AllocationFailedError(nbytes, _allocation_message(nbytes, error))


def startup_error(config: ShmConfig, error: OSError) -> InitializationFailedError:
    """Return the startup error for a segment that could not be created or opened."""
    # A full /dev/shm, no memory, or the limit on file sizes (ulimit -f).
    if error.errno in (errno.ENOSPC, errno.ENOMEM, errno.EFBIG):
        nbytes = segment_bytes(config.size, config.window_bytes)
        return SharedMemoryExhaustedError("shm", nbytes, _allocation_message(nbytes, error))
    return InitializationFailedError("shm", f"segment {config.segment_name}: {error}")


def _allocation_message(nbytes: int, error: OSError) -> str:
    if error.errno == errno.EFBIG:
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
        allowed = "" if limit == resource.RLIM_INFINITY else f" of {limit / MIB:.1f} MiB"
        return (
            f"need {nbytes / MIB:.1f} MiB of shared memory, more than the limit{allowed} on the size of a file allows: "
            "raise it (ulimit -f); it also applies to shared memory"
        )
    return no_shm_space(nbytes, os.strerror(error.errno or 0))


# The shared-memory backend: configuration, errors and Python objects around the native transport.


def weak_callback(method: Callable[[float, list[str]], None]) -> Callable[[float, list[str]], None]:
    """Wrap a method so that it does not keep its communicator alive: the native transport must not own its owner."""
    reference = WeakMethod(method)

    def call(seconds: float, missing: list[str]) -> None:
        if (target := reference()) is not None:
            target(seconds, missing)

    return call


class ShmCommunicator(NativeRegionBackend):
    """A rank of a shared-memory world. All ranks are on one node, and rank 0 is its leader."""

    backend = "shm"

    def __init__(self, config: ShmConfig, parent: ShmTransport | None = None) -> None:
        """Join the world that the config names or, with a parent, create a new one of the parent's ranks.

        Blocks until all ranks have joined. Raises `InitializationFailedError`.
        """
        super().__init__(config.rank, config.size)
        self._config = config
        # Weak: the transport keeps the callback, and would keep this object alive, which owns the transport.
        on_wait = weak_callback(self._log_wait)
        self._transport = self._join(config, on_wait) if parent is None else ShmTransport(parent, self._guard, on_wait)
        self._bind_collectives(self._transport)  # the guard now calls native code without a Python frame in between

    @property
    def is_leader(self) -> bool:
        """Whether this is rank 0, which fills shared regions."""
        return self._rank == 0

    def _join(self, config: ShmConfig, on_wait: Callable[[float, list[str]], None]) -> ShmTransport:
        # Native code knows the affinity of all ranks, but not cgroups: with fewer cores than ranks they must not spin.
        quota = cgroup_quota()
        # Three ways to fail: this rank is refused (its rank is taken, its size differs, the name is in use by a run);
        # another rank fails while all join; the system refuses the segment.
        try:
            return ShmTransport(
                name=config.segment_name,
                rank=config.rank,
                size=config.size,
                timeout_s=config.timeout_s,
                connect_timeout_s=config.connect_timeout_s,
                operation_timeout_s=config.operation_timeout_s or 0.0,
                condvar=config.wait == "condvar",
                window_bytes=config.window_bytes,
                quota_cores=0 if quota is None else math.ceil(quota),
                by_name=config.rendezvous == "name",
                progress_s=PROGRESS_S,
                guard=self._guard,
                on_wait=on_wait,
            )
        except JoinFailure as error:
            raise InitializationFailedError("shm", str(error)) from error
        except CollectiveFailure as error:
            raise self._join_error(error) from error
        except OSError as error:
            raise startup_error(config, error) from error

    def _join_error(self, error: CollectiveFailure) -> InitializationFailedError:
        failure = error_from_native(error, Operation.JOIN, 0)
        size = self._size
        # A rank died while others were joining: it is the cause, not the ranks that have not joined yet.
        if isinstance(failure, PeerLostError):
            text = f"{failure.message} before all {size} ranks had joined {self._config.segment_name}"
            return InitializationFailedError("shm", text)
        if not isinstance(failure, PeerTimeoutError):
            return InitializationFailedError("shm", failure.message)
        # A rank that never arrived has no pid; one that arrived and then fell silent has.
        missing = [peer.rank for peer in failure.peers if peer.pid == 0]
        silent = [str(peer) for peer in failure.peers if peer.pid]
        reasons = [f"missing {', '.join(f'rank {rank}' for rank in missing)}"] if missing else []
        return InitializationFailedError(
            "shm",
            f"{size - len(missing)} of {size} ranks joined {self._config.segment_name} "
            f"after {self._config.connect_timeout_s:g} s; {'; '.join(reasons + silent)}",
            [peer.rank for peer in failure.peers],
        )

    def _create_shared_region(self, count: int, dtype: Dtype) -> ShmSharedRegion:
        nbytes = count * dtype.itemsize
        # The ranks exchange the outcomes of their parts, so that all of them raise or none: the communicator stays
        # usable.
        try:
            region = self._transport.create_region(nbytes, dtype)
        except OSError as error:
            raise allocation_error(nbytes, error) from error
        return ShmSharedRegion(self, region, count, dtype)

    def _fence_region(self, region: ShmRegion) -> None:
        self._transport.fence(region)

    def _split_local(self) -> "ShmCommunicator":
        try:
            return ShmCommunicator(self._config, self._transport)
        except OSError as error:  # on every rank alike: its segment is a region of this communicator
            raise allocation_error(self._transport.window_bytes, error) from error

    def _close(self) -> None:
        # May be called while another thread, or this one below a signal handler, waits in a call. That call is woken,
        # raises, and unmaps the memory when it has left it.
        self._transport.close()

    def _abort(self, reason: str) -> None:
        # Never raises: a reason with lone surrogates must not keep the other ranks waiting.
        self._transport.abort(reason.encode("utf-8", "replace"))

    def _translate(self, error: BaseException, operation: Operation) -> BaseException:
        if isinstance(error, CollectiveFailure):
            return error_from_native(error, operation, self.sequence)
        return super()._translate(error, operation)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, pid {os.getpid()}>"
