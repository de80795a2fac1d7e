"""Waiting inside a call: spin, then sleep until a connection is ready, and check the peers in between.

The death of a peer shows as end of file on its data connection, after the last byte that it sent. The control
connection may end earlier, while good data is still in flight: it explains a loss, but does not decide.
"""

import select
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from cobre.comm.backends.tcp.liveness import CoordinatorMonitor, LivenessMonitor, WorkerMonitor, WorldFailedError
from cobre.comm.backends.tcp.wire.messages import FailureKind, FailureRecord
from cobre.comm.cores import usable_cores
from cobre.comm.endpoint import PROGRESS_S

# Spinning before sleeping: waking a sleeping thread takes longer than most replies take to arrive.
#
# If every rank can have its own core, a rank polls for a moment before it sleeps. If ranks share cores, that
# moment would be taken from the very rank that it waits for. The ranks are known, but not the other programs of the
# host: therefore a spin that finds nothing is followed by sleeps without one, twice as many each time (ADR 0009).

SPIN_S = 1e-4

# Sleeps without a spin; keeps the cost of failed spins low, and still notices soon that a host is idle.
MAX_SKIPPED = 63

Outcome = TypeVar("Outcome")


class SpinWait:
    """Polling for up to `limit_s` seconds before the caller sleeps, with backoff; 0 disables it.

    One per rank, used by the thread that makes the calls.
    """

    def __init__(self, limit_s: float = 0.0) -> None:
        self._limit_s = limit_s
        self._backoff = 0  # sleeps without a spin after the last spin that found nothing
        self._to_skip = 0

    def spin(self, attempt: Callable[[], Outcome]) -> Outcome | None:
        """Return the result of the first attempt that returns something; None if the caller should sleep instead.

        An attempt is a system call, which releases the GIL: other threads run between attempts.
        """
        if not self._limit_s:
            return None
        if self._to_skip:
            self._to_skip -= 1
            return None
        return self._poll(attempt)

    def _poll(self, attempt: Callable[[], Outcome]) -> Outcome | None:
        end = time.perf_counter() + self._limit_s
        while not (outcome := attempt()):
            if time.perf_counter() >= end:
                self._to_skip = self._backoff = min(2 * self._backoff + 1, MAX_SKIPPED)
                return None
        # Halved, not cleared: on a busy host one lucky spin says little about the next.
        self._backoff //= 2
        return outcome


def spin_wait_for(size: int) -> SpinWait:
    """Return the spin wait for a rank of a world of this size.

    Assumes that all ranks are on this host. That holds for the worlds in which 100 us matter, needs no message, and
    errs towards sleeping in all others.
    """
    return SpinWait(SPIN_S if size <= usable_cores() else 0.0)


# Sleeping in poll(), which reports failures of the world and silent or late peers.

POLL_S = 0.25  # between two checks of the peers while nothing arrives
OVERDUE_GRACE_S = 1.0  # added to a worker's hard limit, as only the coordinator can name the late ranks
READ, WRITE = select.POLLIN, select.POLLOUT


OnWait = Callable[[float, Sequence[str]], None]


@dataclass(frozen=True, slots=True)
class WaitPolicy:
    """Timeouts and callbacks of a rank that waits inside a call.

    spin_wait: used before sleeping. limit_s: hard limit for one call in seconds; None: no limit. on_wait: called every
    PROGRESS_S with the seconds waited and the names of the ranks that are missing.
    """

    spin_wait: SpinWait
    limit_s: float | None
    on_wait: OnWait


class Waiter(ABC):
    """Waits on behalf of one call. `missing`, in its methods: the ranks that the call still waits for."""

    def __init__(self, monitor: LivenessMonitor, sequence: int, wait_policy: WaitPolicy) -> None:
        self._monitor = monitor
        self._sequence = sequence
        self._spin_wait = wait_policy.spin_wait
        self._limit_s = wait_policy.limit_s
        self._on_wait = wait_policy.on_wait
        self._since = time.monotonic()
        self._next_report = self._since + PROGRESS_S
        self._registered: tuple[dict[int, int], bool] | None = None

    def sleep(self, interests: Mapping[int, int], missing: Collection[int]) -> Collection[int]:
        """Wait for descriptors and return those that are ready; raise `WorldFailedError` once the call cannot complete.

        interests: READ and WRITE flags by descriptor.
        """
        # A failure that affects only later calls keeps the wake descriptor readable forever: then it is not polled.
        polls_wake_fd = not self._monitor.check(self._sequence)
        if (interests, polls_wake_fd) != self._registered:
            self._register(dict(interests), polls_wake_fd)
        poller = self._poller
        if ready := self._ready(self._spin_wait.spin(lambda: poller.poll(0)) or ()):
            return ready
        while not (ready := self._ready(poller.poll(POLL_S * 1000))):
            if self._monitor.check(self._sequence) and polls_wake_fd:
                polls_wake_fd = False
                self._register(dict(interests), polls_wake_fd)
                poller = self._poller
            self._check_peers(missing)
        return ready

    def _register(self, interests: dict[int, int], polls_wake_fd: bool) -> None:
        # A new poll object, not an epoll set: interests mostly change from one sleep to the next, but for a ring.
        self._registered = (interests, polls_wake_fd)
        self._poller = select.poll()
        for descriptor, events in interests.items():
            self._poller.register(descriptor, events)
        if polls_wake_fd:
            self._poller.register(self._monitor.wake_fd, READ)

    def check(self, missing: Collection[int]) -> None:
        """Raise `WorldFailedError` once the call can no longer complete; for callers that sleep in another way."""
        self._monitor.check(self._sequence)
        self._check_peers(missing)

    def _ready(self, events: Sequence[tuple[int, int]]) -> list[int]:
        return [descriptor for descriptor, _ in events if descriptor != self._monitor.wake_fd]

    def _check_peers(self, missing: Collection[int]) -> None:
        # From the most certain to the least: ranks that are known to be dead, that are silent, that are late.
        now = time.monotonic()
        lost_ranks = self._lost(missing)
        if lost_ranks:
            self._fail(self._monitor.departed[lost_ranks[0]], lost_ranks)
        silent_ranks = self._monitor.silent(self._expected_heartbeats(missing))
        if silent_ranks:
            self._fail(FailureKind.SILENT, silent_ranks)
        if self._limit_s is not None and now - self._since > self._limit_s:
            self._fail(FailureKind.OVERDUE, self._late(missing), f"{now - self._since:.1f} s")
        if now >= self._next_report:
            self._next_report += PROGRESS_S
            self._on_wait(now - self._since, self._names(missing))

    def _fail(self, kind: FailureKind, ranks: Collection[int], text: str = "") -> None:
        peers = tuple(self._monitor.describe(rank, kind) for rank in sorted(ranks))
        raise WorldFailedError(self._publish(FailureRecord(kind, self._sequence, peers, text)))

    def _lost(self, missing: Collection[int]) -> Sequence[int]:
        """Return the ranks that have departed without an end of file on a data connection in use."""
        return ()

    def _late(self, missing: Collection[int]) -> Collection[int]:
        """Return the ranks that keep the missing ones from arriving."""
        return missing

    @abstractmethod
    def _expected_heartbeats(self, missing: Collection[int]) -> Collection[int]: ...

    @abstractmethod
    def _names(self, missing: Collection[int]) -> list[str]: ...

    @abstractmethod
    def _publish(self, failure: FailureRecord) -> FailureRecord: ...


class CoordinatorWaiter(Waiter):
    """Waiter of the coordinator; declares a failure to all workers."""

    _monitor: CoordinatorMonitor

    def _expected_heartbeats(self, missing: Collection[int]) -> Collection[int]:
        return missing

    def _lost(self, missing: Collection[int]) -> Sequence[int]:
        return self._monitor.lost_members(missing)

    def _late(self, missing: Collection[int]) -> Collection[int]:
        return self._monitor.late(missing, self._sequence) or missing

    def _names(self, missing: Collection[int]) -> list[str]:
        return [self._monitor.name(rank) for rank in sorted(self._late(missing))]

    def _publish(self, failure: FailureRecord) -> FailureRecord:
        return self._monitor.broadcast_failure(failure)


class WorkerWaiter(Waiter):
    """Waiter of a worker, which is connected only to the coordinator."""

    _monitor: WorkerMonitor

    def __init__(self, monitor: WorkerMonitor, sequence: int, wait_policy: WaitPolicy) -> None:
        super().__init__(monitor, sequence, wait_policy)
        # The coordinator's limit ends first, because it knows which ranks are late; a worker only sees that there is no
        # reply.
        if self._limit_s is not None:
            self._limit_s += OVERDUE_GRACE_S

    def _expected_heartbeats(self, missing: Collection[int]) -> Collection[int]:
        return (0,)

    def _names(self, missing: Collection[int]) -> list[str]:
        beat = self._monitor.heartbeats.get(0)
        if beat is not None and beat.in_call and beat.sequence >= self._sequence and beat.missing:
            return [f"rank {rank}" for rank in beat.missing]
        return [self._monitor.name(0)]

    def _publish(self, failure: FailureRecord) -> FailureRecord:
        return failure  # raised here; the abort that follows reports it to the coordinator
