"""Failure detection and reporting: the control connections of a rank, and the thread that serves them.

Every rank sends a heartbeat over its control connection at least once a second, from a dedicated thread. A rank that is
computing therefore stays visible as long as the GIL is released now and then, as NumPy and solver calls do. Native code
that holds the GIL for longer than the timeout is indistinguishable from a stopped process.

The coordinator decides. The first failure that it learns of becomes the failure record of the world, sent to every
worker at once, whether or not a rank is in a collective. A record names the first call that it affects. Earlier calls
may still complete from data that is in flight, so a rank that leaves or dies after its last call affects no other rank.

`CoordinatorMonitor` and `WorkerMonitor` are the two ends. The steps after a death: docs/explanation/contract.md.
"""

import contextlib
import errno
import os
import select
import socket
import ssl
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from cobre.comm.backends.shm import failure_error
from cobre.comm.backends.tcp.wire.messages import FailureKind, FailureRecord, Heartbeat, pack_goodbye, parse_goodbye
from cobre.comm.backends.tcp.wire.protocol import CONTROL_LIMITS, FrameParser, ProtocolError, Tag, frame, title_of
from cobre.comm.errors import CollectiveFailedError, Peer
from cobre.comm.types import Operation

# One control connection: small frames, sent by any thread, read by the liveness monitor.

READ_BYTES = 4096
MAX_UNSENT_BYTES = 64 * 1024  # a peer that leaves this much unread has stopped, and will be found silent
WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class ControlLink:
    """A control connection to one peer. The lock is held for single system calls, none of which blocks."""

    def __init__(self, sock: socket.socket, peer: Peer) -> None:
        self.peer = peer
        self.fd = sock.fileno()
        self._sock = sock
        self._lock = threading.Lock()  # two threads must not use one OpenSSL connection at once
        self._parser = FrameParser(CONTROL_LIMITS)
        self._unsent = bytearray()

    def send(self, tag: Tag, payload: bytes = b"") -> None:
        """Send a frame, or queue it if the socket buffer is full; a dead connection is left for the reader to see."""
        with self._lock:
            # A frame that no longer fits is dropped whole: sending a part of it would garble all later ones.
            if len(self._unsent) < MAX_UNSENT_BYTES:
                self._unsent += frame(tag, payload)
            self._flush()

    def receive(self) -> list[tuple[Tag, bytes]] | None:
        """Return the frames that have arrived; None at end of file. Raises `OSError` and `ProtocolError`."""
        frames: list[tuple[Tag, bytes]] = []
        while True:
            try:
                with self._lock:  # for the read only: parsing needs no lock, and senders must not wait for it
                    data = self._sock.recv(READ_BYTES)
            except WOULD_BLOCK:
                return frames
            if not data:
                return frames or None  # what came before the end is handled first; the next call returns None
            frames += self._parser.feed(data)

    def close(self) -> None:
        """Send what can be sent without blocking, and close."""
        with self._lock:
            self._flush()
            with contextlib.suppress(OSError):
                # Half-close first: what the peer has not read yet survives even if it is still sending to us.
                self._sock.shutdown(socket.SHUT_WR)
            self._sock.close()

    def drop(self) -> None:
        """Close this process's copy only, in a forked child."""
        # Without the lock, which the parent's thread may have held at the fork, and without shutdown(), which would end
        # the parent's connection too.
        with contextlib.suppress(OSError):
            self._sock.close()

    def _flush(self) -> None:
        with contextlib.suppress(OSError):  # would block, or the connection is dead, which the reader will see
            while self._unsent:
                del self._unsent[: self._sock.send(self._unsent)]


# Errno values of lost packets: the peer itself may be alive.
UNREACHABLE = (errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTDOWN)


class WorldFailedError(Exception):
    """A collective cannot complete because the world has failed. Internal to this backend."""

    def __init__(self, failure: FailureRecord) -> None:
        super().__init__(failure)
        self.failure = failure


def error_from_record(failure: FailureRecord, operation: Operation, sequence: int) -> CollectiveFailedError:
    """Return the contract's error for a failure record, worded as on shm."""
    return failure_error(failure.kind.name.lower(), failure.peers, failure.text, operation, sequence)


def is_unreachable(error: OSError | None) -> bool:
    """Return whether the network is the problem: nothing came back at all, not even a reset from the peer's host."""
    return error is not None and error.errno in UNREACHABLE


class Progress:
    """Progress of this rank in the sequence of calls, the content of its heartbeats.

    Written by the caller's thread, read by the monitor's.

    There is no lock: each field is one number or one reference, written by one thread and read atomically by the other.
    A heartbeat that mixes two calls is corrected by the next; no decision rests on a single one.

    started: the last call that this rank has started; completed: the last that it has finished. They differ exactly
    while a call is under way.
    """

    def __init__(self) -> None:
        # A world begins in call 0, in which ranks find their nodes (`node_group`). Otherwise the record of a rank
        # that died before it would be about call 1, and call 0 would fail without naming that rank.
        self.started = 0
        self.completed = -1
        self.operation = 0
        self.waits_inside_node = False
        """In a call, and still waiting for ranks of this node: connections to other nodes are not polled."""
        self.missing: Callable[[], Collection[int]] = tuple
        self.label: Callable[[], str] = str
        self._last_sent = 0  # the call that the previous heartbeat was about

    def heartbeat(self) -> Heartbeat:
        """Return the next heartbeat.

        The label, which takes time to look up, is included once a call lasts for two of them.
        """
        in_call = self.started != self.completed
        missing = tuple(sorted(self.missing())) if in_call else ()
        label = self.label() if self.started == self._last_sent else ""
        self._last_sent = self.started
        return Heartbeat(self.started, self.operation, in_call, missing, label)


MAX_INTERVAL_S = 1.0
RECHECK_S = 0.25  # how soon a known departure is checked again, while no rank is in a call

# How long the end of a data connection waits for an explanation on the control connection. The two are separate
# streams: the kernel closes both when a process dies, but they may deliver in either order.
DISCONNECT_GRACE_S = 0.5


def _ignore(_failure: FailureRecord) -> None:
    """Do nothing: the default `on_failure`, when there is no other thread to wake."""


def applicable_failure(recorded: FailureRecord | None, detected: FailureRecord) -> FailureRecord:
    """Return the failure that the current call raises: a record that affects only later calls does not explain it."""
    return detected if recorded is None or recorded.sequence > detected.sequence else recorded


class LivenessMonitor(ABC):
    """The control connections of one rank, by the rank at the other end, and the thread that reads them.

    Two threads use it. The monitor's thread sends heartbeats, reads frames and looks for ranks that have died or fallen
    silent. The caller's thread, inside a collective, calls `check`, `silent` and `diagnose_disconnect`, and may read
    frames itself.

    timeout_s: a rank that sends nothing for this long counts as silent.
    """

    def __init__(self, links: Mapping[int, ControlLink], progress: Progress, timeout_s: float) -> None:
        now = time.monotonic()
        self.links = links
        self.progress = progress
        self.timeout_s = timeout_s
        # Four heartbeats within the timeout: losing one or two to a busy scheduler must not look like silence.
        self.interval_s = min(timeout_s / 4, MAX_INTERVAL_S)
        # Written once, under the lock, and never replaced: readers need no lock.
        self.failure: FailureRecord | None = None
        self.on_failure: Callable[[FailureRecord], None] = _ignore
        self.departed: dict[int, FailureKind] = {}
        self._last_completed: dict[int, int] = {}  # by rank that said goodbye: its last call
        self.heartbeats: dict[int, Heartbeat] = {}
        self._last_heard = dict.fromkeys(links, now)
        self._lock = threading.Lock()  # guards the choice of the record; never held across a call that can block
        # Frames are read by this thread or by the caller's (`read_pending_frames`). Held from the read to the end of
        # the handling: otherwise one thread could act on a goodbye before the other has acted on the abort before it.
        self._reading = threading.Lock()
        self._last_polled = now
        # Two pipes rather than a condition variable: both threads sleep in poll(), which only descriptors can end.
        self.wake_fd, self._waker = os.pipe()
        self._stop_fd, self._stopper = os.pipe()
        self._thread = threading.Thread(target=self._run, name="cobre-tcp-monitor", daemon=True)
        self._thread.start()

    # For the caller's thread.

    def check(self, sequence: int) -> bool:
        """Raise `WorldFailedError` if a failure affects this call; True if there is one for later calls only."""
        failure = self.failure
        if failure is None:
            return False
        if failure.sequence <= sequence:
            raise WorldFailedError(failure)
        return True

    def silent(self, ranks: Collection[int]) -> list[int]:
        """Return the ranks from which nothing has arrived for `timeout_s` seconds."""
        # Measured to the last poll of the links, not to now: this process may itself have been stopped in between, and
        # heartbeats that arrived in the meantime have not been read yet.
        limit = self._last_polled - self.timeout_s
        return [rank for rank in ranks if self._last_heard[rank] < limit]

    def has_heartbeat(self, rank: int) -> bool:
        """Return whether the rank sends its heartbeats: one of the last two has arrived."""
        return self._last_heard[rank] >= self._last_polled - 2 * self.interval_s

    def diagnose_disconnect(self, rank: int, cause: OSError | None, sequence: int) -> FailureRecord:
        """Return why the data connection of a rank ended; raise `WorldFailedError` if a failure was recorded first.

        Sleeps for up to DISCONNECT_GRACE_S: a closed socket looks the same after a crash and after an orderly `close`.
        """
        deadline = time.monotonic() + DISCONNECT_GRACE_S
        while rank not in self.departed and time.monotonic() < deadline:
            self.check(sequence)
            time.sleep(0.002)
        self.check(sequence)
        kind = self.departed.get(rank, FailureKind.SILENT if is_unreachable(cause) else FailureKind.DIED)
        return FailureRecord(kind, sequence, (self.describe(rank, kind),))

    def describe(self, rank: int, kind: FailureKind) -> Peer:
        """Return a rank that has failed in this way, for a failure record."""
        return replace(self.links[rank].peer, status=self._status(rank, kind))

    def name(self, rank: int) -> str:
        """Name a rank that is waited for, for progress lines: its host, pid and the last call that is known of it."""
        peer, last = self.links[rank].peer, self._last_call(rank)
        return f"rank {rank} (host {peer.host}, pid {peer.pid}{last and f', last known call {last}'})"

    def close(self) -> None:
        """Say goodbye and end the thread; waits for no other rank."""
        # In this order: the goodbye needs open links; the thread must end before its links are closed, or it would read
        # a descriptor that may have been reused by then; it polls the pipes until it ends, so they go last.
        for link in self.links.values():
            link.send(Tag.GOODBYE, pack_goodbye(max(0, self.progress.completed)))
        with contextlib.suppress(OSError):
            os.write(self._stopper, b"x")
        if self._thread is not threading.current_thread():
            self._thread.join(timeout=2)
        for link in self.links.values():
            link.close()
        self._close_pipes()

    def drop(self) -> None:
        """Close this process's copies of the sockets, and nothing more: in a forked child.

        No goodbye: it would be the parent's. The thread was not copied by the fork.
        """
        for link in self.links.values():
            link.drop()
        self._close_pipes()

    def _close_pipes(self) -> None:
        for descriptor in (self.wake_fd, self._waker, self._stop_fd, self._stopper):
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _status(self, rank: int, kind: FailureKind) -> str:
        silence_s = time.monotonic() - self._last_heard[rank]
        last = self._last_call(rank)
        statuses = {
            FailureKind.DIED: "died",
            FailureKind.LEFT: "closed or broke its communicator",
            FailureKind.SILENT: f"has sent no heartbeat for {silence_s:.1f} s (stopped, or unreachable)",
            FailureKind.OVERDUE: "is alive but has not arrived",
        }
        return statuses.get(kind, "") + (last and f"; its last known call was {last}")

    def _last_call(self, rank: int) -> str:
        """Describe the rank's last known call; empty if there is none.

        A heartbeat is up to a second old, in which a rank can make thousands of calls. That this rank has completed a
        call, however, means that the other one has made it.
        """
        beat, completed = self.heartbeats.get(rank), max(0, self.progress.completed)
        if beat is not None and beat.sequence and beat.sequence >= completed:
            label = f" {beat.label!r}" if beat.label else ""
            return f"#{beat.sequence} {title_of(beat.operation)}{label}"
        return f"#{completed}" if completed else ""

    def set_failure(self, failure: FailureRecord) -> FailureRecord:
        """Make this the failure of the world unless there is one already, and wake the caller's thread.

        Returns the failure of the world.
        """
        with self._lock:
            if self.failure is None:
                self.failure = failure
                with contextlib.suppress(OSError):
                    # Never read, so the descriptor stays readable: each later poll returns at once, and no
                    # wake-up can get lost between a check and the poll that follows it.
                    os.write(self._waker, b"x")
        # Outside the lock: the callback wakes the ranks of this node, which may read the failure in turn.
        self.on_failure(self.failure)
        return self.failure

    # The thread.

    def _run(self) -> None:
        poller = select.poll()
        poller.register(self._stop_fd, select.POLLIN)
        ranks = {link.fd: rank for rank, link in self.links.items()}
        for descriptor in ranks:
            poller.register(descriptor, select.POLLIN)
        next_beat, previous = 0.0, time.monotonic()
        while True:
            ready = [descriptor for descriptor, _ in poller.poll(self._pause_s(next_beat) * 1000)]
            if self._stop_fd in ready:
                return
            now = time.monotonic()
            # Before anything is read or decided: a process that was stopped (SIGSTOP, a suspended laptop) finds its own
            # clock far ahead, and would otherwise report every healthy rank as silent.
            self._discount_own_delay(now - previous - self.interval_s)
            for descriptor in ready:
                if not self._read(ranks[descriptor], now):
                    # A connection at its end stays readable: left in the poll set it would turn this into a busy loop.
                    poller.unregister(descriptor)
            self._last_polled = now  # after reading: what has arrived by now counts as heard
            if now >= next_beat:
                self._send_heartbeats()
                next_beat = now + self.interval_s
            # Last: a goodbye or an abort that has just been read explains a departure better than its end of file.
            self._detect_failure()
            previous = now

    def _pause_s(self, next_beat: float) -> float:
        pause = max(0.0, next_beat - time.monotonic())
        # A departed rank is a failure only once a call needs it, and no message arrives to report that.
        return min(pause, RECHECK_S) if self.departed and self.failure is None else pause

    def _discount_own_delay(self, delay_s: float) -> None:
        """Discount the time for which this thread itself was held up.

        Silence of the others in the meantime proves nothing.
        """
        if delay_s > self.interval_s:
            for rank in self._last_heard:
                self._last_heard[rank] += delay_s

    def _read(self, rank: int, now: float) -> bool:
        """Handle the frames that have arrived from a rank; False when there will be no more."""
        try:
            with self._reading:
                frames = self.links[rank].receive()
                for tag, payload in frames or ():
                    self._handle(rank, tag, payload)
        except ProtocolError:
            frames = None  # a protocol error on an authenticated connection counts as the failure of the peer
        except OSError as error:
            # Not a failure yet: the rank may have made all its calls, and its last data may still be in flight.
            self.departed.setdefault(rank, FailureKind.SILENT if is_unreachable(error) else FailureKind.DIED)
            return False
        if frames is None:
            self.departed.setdefault(rank, FailureKind.DIED)  # keeps LEFT if a goodbye came before the end
            return False
        self._last_heard[rank] = now
        return True

    def _handle(self, rank: int, tag: Tag, payload: bytes) -> None:
        if tag is Tag.HEARTBEAT:
            self.heartbeats[rank] = Heartbeat.parse(payload)
        elif tag is Tag.GOODBYE:
            self._last_completed[rank] = parse_goodbye(payload)
            self.departed.setdefault(rank, FailureKind.LEFT)
        else:
            self._handle_failure(rank, tag, FailureRecord.parse(payload))

    def _send_heartbeats(self) -> None:
        payload = self.progress.heartbeat().pack()
        for rank, link in self.links.items():
            if rank not in self.departed:
                link.send(Tag.HEARTBEAT, payload)

    def abort(self, text: str, me: Peer) -> FailureRecord:
        """Report that this rank gives up; returns the failure that the others will raise."""
        return self.report_failure(FailureRecord(FailureKind.ABORTED, self.progress.completed + 1, (me,), text))

    @abstractmethod
    def report_failure(self, failure: FailureRecord) -> FailureRecord:
        """Report a failure that this rank has detected; returns the one that the others will raise."""

    @abstractmethod
    def _handle_failure(self, rank: int, tag: Tag, failure: FailureRecord) -> None: ...

    @abstractmethod
    def _detect_failure(self) -> None: ...


# The coordinator's liveness monitor: receives all workers' heartbeats, and decides what the failure of the world is.


class CoordinatorMonitor(LivenessMonitor):
    """Rank 0's monitor. One rank decides, so that all ranks raise the same error, whichever of them saw it first."""

    def __init__(self, links: Mapping[int, ControlLink], progress: Progress, timeout_s: float) -> None:
        # A separate poller for the caller's thread: two threads must not use one poll object at once.
        self._arrivals = select.poll()
        for link in links.values():
            self._arrivals.register(link.fd, select.POLLIN)
        self._ranks = {link.fd: rank for rank, link in links.items()}
        self.ranks_by_leader: Mapping[int, Sequence[int]] = {rank: (rank,) for rank in links}
        """The ranks of each node by their leader, the only one whose data connection is in use."""
        # Last: it starts the thread, which uses all of the above.
        super().__init__(links, progress, timeout_s)

    def read_pending_frames(self, sequence: int) -> None:
        """Raise if an abort that has arrived by now affects the call; for the caller's thread, before it delivers.

        All calls are here, but the monitor's thread may not have run since an abort came in. Delivering first would let
        some ranks complete a call that others raise from.
        """
        for descriptor, _ in self._arrivals.poll(0):
            if not self._read(self._ranks[descriptor], time.monotonic()):
                self._arrivals.unregister(descriptor)
        self.check(sequence)

    def late(self, leaders: Collection[int], sequence: int) -> list[int]:
        """Return the ranks of these nodes whose heartbeats have not reported this call yet."""
        ranks = [rank for leader in leaders for rank in self.ranks_by_leader[leader] if rank in self.links]
        return [rank for rank in ranks if (beat := self.heartbeats.get(rank)) is None or beat.sequence < sequence]

    def lost_members(self, leaders: Collection[int]) -> list[int]:
        """Return the ranks of these nodes that have departed and are not leaders.

        No data connection shows their end.
        """
        return [
            rank
            for leader in leaders
            for rank in self.ranks_by_leader[leader]
            if rank != leader and rank in self.departed
        ]

    def broadcast_failure(self, failure: FailureRecord) -> FailureRecord:
        """Record the failure, unless there is one, and send it to every worker; returns the failure of the world."""
        recorded = self.set_failure(failure)
        if recorded is failure:  # only the thread whose record won sends it, and only once
            payload = failure.pack()
            for link in self.links.values():
                link.send(Tag.FAILURE, payload)
        return recorded

    def report_failure(self, failure: FailureRecord) -> FailureRecord:
        """Declare a failure to all workers."""
        return applicable_failure(self.broadcast_failure(failure), failure)

    def _handle_failure(self, rank: int, tag: Tag, failure: FailureRecord) -> None:
        if tag is not Tag.ABORT:
            raise ProtocolError(f"{tag.name} from a worker")
        if failure.kind is FailureKind.ABORTED and not failure.peers:
            # An abort that names no rank is the sender's own.
            failure = replace(failure, peers=(self.links[rank].peer,))
        self.broadcast_failure(failure)

    def _detect_failure(self) -> None:
        """Declare a failure if a rank has departed or is silent and no other thread checks.

        While rank 0 waits for other nodes in a collective, the waiting thread decides: it sees the data connections,
        and with them whether the last bytes of a rank that died are still on their way. Otherwise some worker may be
        waiting for the rank that is lost, and only this thread can notice.
        """
        progress = self.progress
        next_call = progress.completed + 1
        in_call = progress.started != progress.completed
        if self.failure is not None or (in_call and not progress.waits_inside_node):
            return
        # The most certain first: only one record is ever reported, and a rank that died may be the reason why
        # others left.
        for kind in (FailureKind.DIED, FailureKind.LEFT, FailureKind.SILENT):
            ranks = [rank for rank, reason in self.departed.items() if reason is kind]
            if ranks:
                # A rank that left in order completed its calls up to the one that its goodbye names: those still hold.
                first = max(next_call, min(self._last_completed.get(rank, -1) for rank in ranks) + 1)
                self.broadcast_failure(FailureRecord(kind, first, tuple(self.describe(rank, kind) for rank in ranks)))
                return
        # Silence matters only while a call waits: a run that computes for hours may be stopped and continued.
        silent = self.silent(self.links)
        is_awaited = in_call or any(beat.in_call and beat.sequence >= next_call for beat in self.heartbeats.values())
        if silent and is_awaited:
            peers = tuple(self.describe(rank, FailureKind.SILENT) for rank in silent)
            self.broadcast_failure(FailureRecord(FailureKind.SILENT, next_call, peers))


# A worker's liveness monitor: receives heartbeats only from the coordinator, which decides for all ranks.


class WorkerMonitor(LivenessMonitor):
    """The monitor of a rank other than 0."""

    def report_failure(self, failure: FailureRecord) -> FailureRecord:
        """Report a failure to the coordinator, unless the coordinator has declared one already."""
        # Not recorded here: the coordinator may have declared another one first, and all ranks must raise the same.
        if self.failure is None:
            self.links[0].send(Tag.ABORT, failure.pack())
        return applicable_failure(self.failure, failure)

    def _handle_failure(self, rank: int, tag: Tag, failure: FailureRecord) -> None:
        if tag is not Tag.FAILURE:
            raise ProtocolError(f"{tag.name} from the coordinator")
        self.set_failure(failure)

    def _detect_failure(self) -> None:
        """Record the loss of the coordinator if no other thread would notice it.

        It matters only to a rank in a call. A leader that waits for other nodes sees the data connection itself; a rank
        that waits in its node's memory looks at no connection, so this thread does it.
        """
        progress = self.progress
        if not progress.waits_inside_node or self.failure is not None:
            return
        lost = self.lost_coordinator(progress.started)
        if lost is not None:
            self.set_failure(lost)

    def lost_coordinator(self, sequence: int) -> FailureRecord | None:
        """Return the failure of this call if the coordinator has departed or is silent, else None."""
        kind = self.departed.get(0, FailureKind.SILENT if self.silent((0,)) else None)
        # A coordinator that left after completing this call leaves no rank waiting.
        if kind is None or self._last_completed.get(0, -1) >= sequence:
            return None
        return FailureRecord(kind, sequence, (self.describe(0, kind),))
