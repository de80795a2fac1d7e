"""How a failure is detected and reported: the control connections of a rank and the thread that serves them.

Every rank sends a heartbeat on its control connection, at least once a second, from a thread of its own: a rank that
computes gives signs of life as long as Python's lock is free now and then (NumPy and solver calls free it). A foreign
function that holds the lock for longer than the timeout looks like a stopped process.

The coordinator decides: the first failure becomes the verdict, which goes to every worker at once, whether or not
anybody is in a collective. A verdict names the first call that it spoils. Earlier calls may still complete from data
that is under way, so a rank that leaves or dies after its last call disturbs nobody.
"""

import contextlib
import os
import select
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from cobre.comm.backends.tcp.calls import title_of
from cobre.comm.backends.tcp.control import ControlLink
from cobre.comm.backends.tcp.failures import WorldFailedError, is_unreachable
from cobre.comm.backends.tcp.fields import ProtocolError
from cobre.comm.backends.tcp.progress import Progress
from cobre.comm.backends.tcp.protocol import FailureKind, Heartbeat, Tag, Verdict, pack_goodbye, parse_goodbye
from cobre.comm.errors import Peer

MAX_INTERVAL_S = 1.0
RECHECK_S = 0.25  # how soon a known loss is judged again, while nobody is in a call
# A data connection that ended waits this long for the control connection to say why. The two are separate streams: the
# kernel closes both when a process dies, but nothing orders what they deliver here.
EXPLANATION_S = 0.5


def _ignore(_verdict: Verdict) -> None:
    """The default listener of verdicts: nobody else is to be woken."""


def _earlier(settled: Verdict | None, found: Verdict) -> Verdict:
    """The verdict that a failed call raises: one that spoils only later calls does not explain this failure."""
    return found if settled is None or settled.sequence > found.sequence else settled


class LivenessMonitor(ABC):
    """The control connections of one rank, by the rank at the other end, and the thread that reads them.

    Two threads use it. The monitor's own thread sends heartbeats, reads frames and looks for ranks that died or fell
    silent. The caller's thread, in a collective, asks (`check`, `silent`, `explain`) and may read frames itself.

    timeout_s: a rank that sends nothing for so long counts as silent.
    """

    def __init__(self, links: Mapping[int, ControlLink], progress: Progress, timeout_s: float) -> None:
        now = time.monotonic()
        self.links = links
        self.progress = progress
        self.timeout_s = timeout_s
        self.interval_s = min(timeout_s / 4, MAX_INTERVAL_S)
        # Written once, under the lock, and never replaced: readers need no lock.
        self.verdict: Verdict | None = None
        self.on_verdict: Callable[[Verdict], None] = _ignore
        self.departed: dict[int, FailureKind] = {}
        self._last_completed: dict[int, int] = {}  # by rank that said goodbye: its last call
        self.heartbeats: dict[int, Heartbeat] = {}
        self._last_heard = dict.fromkeys(links, now)
        self._lock = threading.Lock()  # guards the choice of the verdict; held for no system call that can block
        # Frames are read by this thread or by the caller's (`catch_up`). Held from the read to the end of the handling:
        # otherwise one thread could act on a goodbye before the other has acted on the abort that came before it.
        self._reading = threading.Lock()
        self._last_polled = now
        # Two pipes rather than a condition variable: both threads sleep in poll(), which only descriptors can end.
        self.wake_fd, self._waker = os.pipe()
        self._stop_fd, self._stopper = os.pipe()
        self._thread = threading.Thread(target=self._run, name="cobre-tcp-monitor", daemon=True)
        self._thread.start()

    # For the caller's thread.

    def check(self, sequence: int) -> bool:
        """Raise `WorldFailedError` if the verdict spoils this call; True if it spoils only later calls."""
        verdict = self.verdict
        if verdict is None:
            return False
        if verdict.sequence <= sequence:
            raise WorldFailedError(verdict)
        return True

    def silent(self, ranks: Collection[int]) -> list[int]:
        """Those of the ranks from which nothing has come for `timeout_s` seconds."""
        # Counted to the last look at the links, not to now: this process may itself have been stopped in between.
        limit = self._last_polled - self.timeout_s
        return [rank for rank in ranks if self._last_heard[rank] < limit]

    def explain(self, rank: int, cause: OSError | None, sequence: int) -> Verdict:
        """The verdict about a rank whose data connection ended; raises `WorldFailedError` where one came first.

        Sleeps for up to EXPLANATION_S: a closed socket alone does not tell a crash from an orderly `close`.
        """
        deadline = time.monotonic() + EXPLANATION_S
        while rank not in self.departed and time.monotonic() < deadline:
            self.check(sequence)
            time.sleep(0.002)
        self.check(sequence)
        kind = self.departed.get(rank, FailureKind.SILENT if is_unreachable(cause) else FailureKind.DIED)
        return Verdict(kind, sequence, (self.describe(rank, kind),))

    def describe(self, rank: int, kind: FailureKind) -> Peer:
        """A rank as the culprit of a failure."""
        return replace(self.links[rank].peer, status=self._status(rank, kind))

    def name(self, rank: int) -> str:
        """A rank that is waited for, as progress lines name it: host, pid and the last call that it reported."""
        peer, last = self.links[rank].peer, self._last_call(rank)
        return f"rank {rank} (host {peer.host}, pid {peer.pid}{last and f', last call {last}'})"

    def close(self) -> None:
        """Say goodbye and end the thread; waits for no other rank."""
        # In this order: the goodbye needs open links; the thread must end before its links are closed, or it would read
        # a descriptor that may be somebody else's by then; it polls the pipes until it ends, so they go last.
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
        quiet_s = time.monotonic() - self._last_heard[rank]
        last = self._last_call(rank)
        words = {
            FailureKind.DIED: "died",
            FailureKind.LEFT: "closed or broke its communicator",
            FailureKind.SILENT: f"lost contact: no heartbeat for {quiet_s:.1f} s (stopped, or unreachable)",
            FailureKind.OVERDUE: "is alive but has not arrived",
        }
        return words.get(kind, "") + (last and f"; its last call was {last}")

    def _last_call(self, rank: int) -> str:
        """The last call that the rank has reported, with its label; empty when there is none."""
        beat = self.heartbeats.get(rank)
        if beat is None or not beat.sequence:
            return ""
        label = f" {beat.label!r}" if beat.label else ""
        return f"#{beat.sequence} {title_of(beat.operation)}{label}"

    def settle(self, verdict: Verdict) -> Verdict:
        """Make this the verdict unless there is one, and wake the caller's thread."""
        with self._lock:
            if self.verdict is None:
                self.verdict = verdict
                with contextlib.suppress(OSError):
                    # Never read, so the descriptor stays readable: whoever polls from now on is woken at once, and no
                    # wake-up can get lost between a check and the poll that follows it.
                    os.write(self._waker, b"x")
        # Outside the lock: the listener wakes the ranks of this host, who may ask for the verdict in turn.
        self.on_verdict(self.verdict)
        return self.verdict

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
            # Before anything is read or judged: a process that was stopped (SIGSTOP, a suspended laptop) finds its own
            # clock far ahead, and would otherwise accuse every healthy rank of silence.
            self._forgive_delay(now - previous - self.interval_s)
            for descriptor in ready:
                if not self._read(ranks[descriptor], now):
                    poller.unregister(descriptor)
            self._last_polled = now  # after reading: what has arrived by now counts as heard
            if now >= next_beat:
                self._beat()
                next_beat = now + self.interval_s
            self._judge()
            previous = now

    def _pause_s(self, next_beat: float) -> float:
        pause = max(0.0, next_beat - time.monotonic())
        # A rank that has departed is a failure only once somebody needs it, and nothing arrives to say so.
        return min(pause, RECHECK_S) if self.departed and self.verdict is None else pause

    def _forgive_delay(self, delay_s: float) -> None:
        """If this thread itself was held up, the others' silence in the meantime proves nothing."""
        if delay_s > self.interval_s:
            for rank in self._last_heard:
                self._last_heard[rank] += delay_s

    def _read(self, rank: int, now: float) -> bool:
        """Handle the frames that have arrived from a rank; False when there will be no more."""
        try:
            with self._reading:
                frames = self.links[rank].receive()
                for tag, payload in frames or ():
                    self._take(rank, tag, payload)
        except ProtocolError:
            frames = None  # a peer that sends garbage on an authenticated connection is as good as dead
        except OSError as error:
            self.departed.setdefault(rank, FailureKind.SILENT if is_unreachable(error) else FailureKind.DIED)
            return False
        if frames is None:
            self.departed.setdefault(rank, FailureKind.DIED)  # keeps LEFT where a goodbye came before the end
            return False
        self._last_heard[rank] = now
        return True

    def _take(self, rank: int, tag: Tag, payload: bytes) -> None:
        if tag is Tag.HEARTBEAT:
            self.heartbeats[rank] = Heartbeat.parse(payload)
        elif tag is Tag.GOODBYE:
            self._last_completed[rank] = parse_goodbye(payload)
            self.departed.setdefault(rank, FailureKind.LEFT)
        else:
            self._take_verdict(rank, tag, Verdict.parse(payload))

    def _beat(self) -> None:
        payload = self.progress.heartbeat().pack()
        for rank, link in self.links.items():
            if rank not in self.departed:
                link.send(Tag.HEARTBEAT, payload)

    @abstractmethod
    def abort(self, text: str, me: Peer) -> Verdict:
        """Report to all other ranks that this one gives up; returns the verdict that they will raise."""

    @abstractmethod
    def report(self, verdict: Verdict) -> Verdict:
        """Report a failure that this rank has found; returns the verdict that the others will raise."""

    @abstractmethod
    def _take_verdict(self, rank: int, tag: Tag, verdict: Verdict) -> None: ...

    @abstractmethod
    def _judge(self) -> None: ...


class CoordinatorMonitor(LivenessMonitor):
    """Rank 0's monitor: hears from all workers, decides which failure is the verdict, and sends it to all of them."""

    def __init__(self, links: Mapping[int, ControlLink], progress: Progress, timeout_s: float) -> None:
        # A poller of the caller's thread: a poll object must not be used by two threads at once.
        self._arrivals = select.poll()
        for link in links.values():
            self._arrivals.register(link.fd, select.POLLIN)
        self._ranks = {link.fd: rank for rank, link in links.items()}
        self.groups: Mapping[int, Sequence[int]] = {rank: (rank,) for rank in links}
        """The ranks of each host by their leader, the one that has a data connection in use."""
        # Last: it starts the thread, which uses all of the above.
        super().__init__(links, progress, timeout_s)

    def catch_up(self, sequence: int) -> None:
        """For the caller's thread, before it delivers: an abort that has arrived by now spoils the call.

        All calls are here, but the monitor's thread may not have run since an abort came in. Delivering first would let
        some ranks complete a call that others raise from.
        """
        for descriptor, _ in self._arrivals.poll(0):
            if not self._read(self._ranks[descriptor], time.monotonic()):
                self._arrivals.unregister(descriptor)
        self.check(sequence)

    def late(self, leaders: Collection[int], sequence: int) -> list[int]:
        """The ranks of these hosts whose heartbeats have not reported this call yet."""
        ranks = [rank for leader in leaders for rank in self.groups[leader] if rank in self.links]
        return [rank for rank in ranks if (beat := self.heartbeats.get(rank)) is None or beat.sequence < sequence]

    def lost_members(self, leaders: Collection[int]) -> list[int]:
        """The ranks of these hosts that have departed and are not leaders: no data connection shows their end."""
        return [rank for leader in leaders for rank in self.groups[leader] if rank != leader and rank in self.departed]

    def declare(self, verdict: Verdict) -> Verdict:
        """Make this the verdict, unless there is one, and send it to every worker; returns the one that holds."""
        settled = self.settle(verdict)
        if settled is verdict:  # only the thread whose verdict won sends it, and only once
            payload = verdict.pack()
            for link in self.links.values():
                link.send(Tag.VERDICT, payload)
        return settled

    def abort(self, text: str, me: Peer) -> Verdict:
        """Report to every worker that rank 0 gives up."""
        return self.report(Verdict(FailureKind.ABORTED, self.progress.completed + 1, (me,), text))

    def report(self, verdict: Verdict) -> Verdict:
        """Declare what the ranks of this host have found in their shared memory."""
        return _earlier(self.declare(verdict), verdict)

    def _take_verdict(self, rank: int, tag: Tag, verdict: Verdict) -> None:
        if tag is not Tag.ABORT:
            raise ProtocolError(f"{tag.name} from a worker")
        if verdict.kind is FailureKind.ABORTED and not verdict.culprits:
            # An abort that names nobody is the sender's own.
            verdict = replace(verdict, culprits=(self.links[rank].peer,))
        self.declare(verdict)

    def _judge(self) -> None:
        """Declare a verdict where a rank has departed or is silent and nobody else is looking.

        While rank 0 waits for other hosts in a collective, the waiting thread judges: it sees the data connections, and
        with them whether the last bytes of a rank that died are still on their way. Otherwise some worker may be
        waiting for the rank that is lost, and only this thread can know.
        """
        progress = self.progress
        next_call = progress.completed + 1
        in_call = progress.serving != progress.completed
        if self.verdict is not None or (in_call and not progress.waits_for_host):
            return
        for kind in (FailureKind.DIED, FailureKind.LEFT, FailureKind.SILENT):
            ranks = [rank for rank, reason in self.departed.items() if reason is kind]
            if ranks:
                # A rank that left in order completed its calls up to the one that its goodbye names: those still hold.
                first = max(next_call, min(self._last_completed.get(rank, -1) for rank in ranks) + 1)
                self.declare(Verdict(kind, first, tuple(self.describe(rank, kind) for rank in ranks)))
                return
        # Silence matters only while somebody waits: a run that computes for hours may be stopped and continued.
        silent = self.silent(self.links)
        is_awaited = in_call or any(beat.in_call and beat.sequence >= next_call for beat in self.heartbeats.values())
        if silent and is_awaited:
            culprits = tuple(self.describe(rank, FailureKind.SILENT) for rank in silent)
            self.declare(Verdict(FailureKind.SILENT, next_call, culprits))


class WorkerMonitor(LivenessMonitor):
    """A worker's monitor: hears from the coordinator alone, which decides for all."""

    def abort(self, text: str, me: Peer) -> Verdict:
        """Report to the coordinator that this rank gives up; it declares the verdict to the others."""
        return self.report(Verdict(FailureKind.ABORTED, self.progress.completed + 1, (me,), text))

    def report(self, verdict: Verdict) -> Verdict:
        """Report a failure to the coordinator, unless its verdict is here already."""
        if self.verdict is None:
            self.links[0].send(Tag.ABORT, verdict.pack())
        return _earlier(self.verdict, verdict)

    def _take_verdict(self, rank: int, tag: Tag, verdict: Verdict) -> None:
        if tag is not Tag.VERDICT:
            raise ProtocolError(f"{tag.name} from the coordinator")
        self.settle(verdict)

    def _judge(self) -> None:
        """Settle a verdict about a lost coordinator where nobody else would see it.

        It matters only to a rank in a call. A leader that waits for other hosts sees the data connection itself; a rank
        that waits in its host's memory looks at no connection, so this thread does it.
        """
        progress = self.progress
        if not progress.waits_for_host or self.verdict is not None:
            return
        kind = self.departed.get(0, FailureKind.SILENT if self.silent((0,)) else None)
        if kind is not None and self._last_completed.get(0, -1) < progress.serving:
            self.settle(Verdict(kind, progress.serving, (self.describe(0, kind),)))
