"""The shared-memory backend: configuration, errors and Python objects around the native transport."""

import math
import os
from collections.abc import Callable
from weakref import WeakMethod

from cobre._native import CollectiveFailure, JoinFailure, ShmRegion, ShmTransport
from cobre.comm.backends.shm.failures import allocation_failed, error_of, segment_error
from cobre.comm.backends.shm.region import RegionOwner, ShmSharedRegion
from cobre.comm.config import ShmConfig
from cobre.comm.cores import cgroup_quota
from cobre.comm.endpoint import PROGRESS_S
from cobre.comm.errors import InitializationFailedError, PeerLostError, PeerTimeoutError
from cobre.comm.types import Dtype, Operation


def weak_callback(method: Callable[[float, list[str]], None]) -> Callable[[float, list[str]], None]:
    """A callback that does not keep its communicator alive: the native transport must not own its owner."""
    reference = WeakMethod(method)

    def call(seconds: float, missing: list[str]) -> None:
        if (target := reference()) is not None:
            target(seconds, missing)

    return call


class ShmCommunicator(RegionOwner):
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
        self._bind_collectives(self._transport)  # from here on no Python frame lies between the guard and native code

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
            raise self._not_all_joined(error) from error
        except OSError as error:
            raise segment_error(config, error) from error

    def _not_all_joined(self, error: CollectiveFailure) -> InitializationFailedError:
        failure = error_of(error, Operation.JOIN, 0)
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
        # Ranks exchange how their part went, so that all of them raise or none: the communicator stays usable.
        try:
            region = self._transport.create_region(nbytes, dtype)
        except OSError as error:
            raise allocation_failed(nbytes, error) from error
        return ShmSharedRegion(self, region, count, dtype)

    def _fence_region(self, region: ShmRegion) -> None:
        self._transport.fence(region)

    def _split_local(self) -> "ShmCommunicator":
        try:
            return ShmCommunicator(self._config, self._transport)
        except OSError as error:  # on every rank alike: its segment is a region of this communicator
            raise allocation_failed(self._transport.window_bytes, error) from error

    def _close(self) -> None:
        # May be called while another thread, or this one below a signal handler, waits in a call. That call is woken,
        # raises, and unmaps the memory when it has left it.
        self._transport.close()

    def _abort(self, reason: str) -> None:
        # Never raises: a reason with lone surrogates must not keep the other ranks waiting.
        self._transport.abort(reason.encode("utf-8", "replace"))

    def _translate(self, error: BaseException, operation: Operation) -> BaseException:
        if isinstance(error, CollectiveFailure):
            return error_of(error, operation, self.sequence)
        return super()._translate(error, operation)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, pid {os.getpid()}>"
