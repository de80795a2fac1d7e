"""How a failure is noticed and told: the control connections of a rank and the thread that serves them.

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
from cobre.comm.backends.tcp.protocol import FailureKind, Heartbeat, Tag, Verdict, pack_goodbye, parse_goodbye
from cobre.comm.errors import Peer

MAX_INTERVAL_S = 1.0
RECHECK_S = 0.25  # how soon a known loss is judged again, while nobody is in a call
EXPLANATION_S = 0.5  # how long an ended data connection waits for the control connection to say why


class Progress:
    """Where this rank is in the sequence of calls. Written by the caller's thread, read by the watch."""

    def __init__(self) -> None:
        self.serving = 0
        self.completed = 0
        self.operation = 0
        self.waits_for_host = False
        """In a call, and not yet through to the other hosts: nobody looks at their connections."""
        self.missing: Callable[[], Collection[int]] = tuple
        self.label: Callable[[], str] = str
        self._told = 0

    def heartbeat(self) -> Heartbeat:
        """What the others are told of it; the label, which takes time to look up, when nothing moves any more."""
        in_call = self.serving != self.completed
        missing = tuple(sorted(self.missing())) if in_call else ()
        label = self.label() if self.serving == self._told else ""
        self._told = self.serving
        return Heartbeat(self.serving, self.operation, in_call, missing, label)


def _ignore(_verdict: Verdict) -> None:
    """Nobody else is to be woken."""


def _earlier(settled: Verdict | None, found: Verdict) -> Verdict:
    """What a call that has failed raises: a verdict that spoils only later ones does not explain it."""
    return found if settled is None or settled.sequence > found.sequence else settled


class Watch(ABC):
    """The control connections of one rank, by the rank at the other end."""

    def __init__(self, links: Mapping[int, ControlLink], progress: Progress, timeout_s: float) -> None:
        now = time.monotonic()
        self.links = links
        self.progress = progress
        self.timeout_s = timeout_s
        self.interval_s = min(timeout_s / 4, MAX_INTERVAL_S)
        self.verdict: Verdict | None = None
        self.on_verdict: Callable[[Verdict], None] = _ignore
        self.gone: dict[int, FailureKind] = {}
        self._last_completed: dict[int, int] = {}  # by rank that said goodbye: its last call
        self.beats: dict[int, Heartbeat] = {}
        self._heard = dict.fromkeys(links, now)
        self._lock = threading.Lock()
        self._reading = threading.Lock()  # frames are taken by this thread or the caller's, in order
        self._looked = now
        self.wake_fd, self._waker = os.pipe()
        self._stop_fd, self._stopper = os.pipe()
        self._thread = threading.Thread(target=self._run, name="cobre-tcp-watch", daemon=True)
        self._thread.start()

    # For the caller's thread.

    def check(self, sequence: int) -> bool:
        """Raise if this call is spoiled; say whether a verdict waits for a later one."""
        verdict = self.verdict
        if verdict is None:
            return False
        if verdict.sequence <= sequence:
            raise WorldFailedError(verdict)
        return True

    def silent(self, ranks: Collection[int]) -> list[int]:
        """Those of the ranks that have given no sign of life for the timeout."""
        # Counted to the last look at the links, not to now: this process may itself have been stopped in between.
        limit = self._looked - self.timeout_s
        return [rank for rank in ranks if self._heard[rank] < limit]

    def explain(self, rank: int, cause: OSError | None, sequence: int) -> Verdict:
        """Why a data connection ended; raises when the verdict came first."""
        deadline = time.monotonic() + EXPLANATION_S
        while rank not in self.gone and time.monotonic() < deadline:
            self.check(sequence)
            time.sleep(0.002)
        self.check(sequence)
        kind = self.gone.get(rank, FailureKind.SILENT if is_unreachable(cause) else FailureKind.DIED)
        return Verdict(kind, sequence, (self.describe(rank, kind),))

    def describe(self, rank: int, kind: FailureKind) -> Peer:
        """A rank as the culprit of a failure."""
        return replace(self.links[rank].peer, status=self._status(rank, kind))

    def name(self, rank: int) -> str:
        """A rank that is waited for."""
        peer, last = self.links[rank].peer, self._last_call(rank)
        return f"rank {rank} (host {peer.host}, pid {peer.pid}{last and f', last call {last}'})"

    def close(self) -> None:
        """Say goodbye and end the thread; waits for nobody."""
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
        """Let go of this process's copies: in a forked child, which has no thread."""
        for link in self.links.values():
            link.drop()
        self._close_pipes()

    def _close_pipes(self) -> None:
        for descriptor in (self.wake_fd, self._waker, self._stop_fd, self._stopper):
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _status(self, rank: int, kind: FailureKind) -> str:
        quiet_s = time.monotonic() - self._heard[rank]
        last = self._last_call(rank)
        words = {
            FailureKind.DIED: "died",
            FailureKind.LEFT: "closed or broke its communicator",
            FailureKind.SILENT: f"lost contact: no heartbeat for {quiet_s:.1f} s (stopped, or unreachable)",
            FailureKind.OVERDUE: "is alive but has not arrived",
        }
        return words.get(kind, "") + (last and f"; its last call was {last}")

    def _last_call(self, rank: int) -> str:
        """The last call that the rank has told of, with its label; empty when there is none."""
        beat = self.beats.get(rank)
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
                    os.write(self._waker, b"x")  # never read: whoever waits from now on is awake at once
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
            self._forgive(now - previous - self.interval_s)
            for descriptor in ready:
                if not self._read(ranks[descriptor], now):
                    poller.unregister(descriptor)
            self._looked = now
            if now >= next_beat:
                self._beat()
                next_beat = now + self.interval_s
            self._judge()
            previous = now

    def _pause_s(self, next_beat: float) -> float:
        pause = max(0.0, next_beat - time.monotonic())
        return min(pause, RECHECK_S) if self.gone and self.verdict is None else pause

    def _forgive(self, delay_s: float) -> None:
        """If this thread itself was held up, the others' silence in the meantime proves nothing."""
        if delay_s > self.interval_s:
            for rank in self._heard:
                self._heard[rank] += delay_s

    def _read(self, rank: int, now: float) -> bool:
        """Take a link's frames; False when there will be no more."""
        try:
            with self._reading:
                frames = self.links[rank].receive()
                for tag, payload in frames or ():
                    self._take(rank, tag, payload)
        except ProtocolError:
            frames = None
        except OSError as error:
            self.gone.setdefault(rank, FailureKind.SILENT if is_unreachable(error) else FailureKind.DIED)
            return False
        if frames is None:
            self.gone.setdefault(rank, FailureKind.DIED)
            return False
        self._heard[rank] = now
        return True

    def _take(self, rank: int, tag: Tag, payload: bytes) -> None:
        if tag is Tag.HEARTBEAT:
            self.beats[rank] = Heartbeat.parse(payload)
        elif tag is Tag.GOODBYE:
            self._last_completed[rank] = parse_goodbye(payload)
            self.gone.setdefault(rank, FailureKind.LEFT)
        else:
            self._take_verdict(rank, tag, Verdict.parse(payload))

    def _beat(self) -> None:
        payload = self.progress.heartbeat().pack()
        for rank, link in self.links.items():
            if rank not in self.gone:
                link.send(Tag.HEARTBEAT, payload)

    @abstractmethod
    def abort(self, text: str, me: Peer) -> Verdict:
        """Make the reason known to all other ranks; what they will hear."""

    @abstractmethod
    def report(self, verdict: Verdict) -> Verdict:
        """Make known what this rank has found; what the others will hear."""

    @abstractmethod
    def _take_verdict(self, rank: int, tag: Tag, verdict: Verdict) -> None: ...

    @abstractmethod
    def _judge(self) -> None: ...


class CoordinatorWatch(Watch):
    """Hears from all workers, decides, tells all."""

    def __init__(self, links: Mapping[int, ControlLink], progress: Progress, timeout_s: float) -> None:
        self._mail = select.poll()
        for link in links.values():
            self._mail.register(link.fd, select.POLLIN)
        self._ranks = {link.fd: rank for rank, link in links.items()}
        self.groups: Mapping[int, Sequence[int]] = {rank: (rank,) for rank in links}
        """The ranks of each host by the one that speaks for them."""
        super().__init__(links, progress, timeout_s)

    def catch_up(self, sequence: int) -> None:
        """For the caller's thread, before it delivers: an abort that has arrived by now spoils the call."""
        for descriptor, _ in self._mail.poll(0):
            if not self._read(self._ranks[descriptor], time.monotonic()):
                self._mail.unregister(descriptor)
        self.check(sequence)

    def late(self, leaders: Collection[int], sequence: int) -> list[int]:
        """Those of some hosts' ranks that have not told of this call yet."""
        ranks = [rank for leader in leaders for rank in self.groups[leader] if rank in self.links]
        return [rank for rank in ranks if (beat := self.beats.get(rank)) is None or beat.sequence < sequence]

    def lost_members(self, leaders: Collection[int]) -> list[int]:
        """Those of some hosts' ranks that have gone and have no data connection that would show it."""
        return [rank for leader in leaders for rank in self.groups[leader] if rank != leader and rank in self.gone]

    def declare(self, verdict: Verdict) -> Verdict:
        """Make this the verdict, unless there is one already, and tell every worker."""
        settled = self.settle(verdict)
        if settled is verdict:
            payload = verdict.pack()
            for link in self.links.values():
                link.send(Tag.VERDICT, payload)
        return settled

    def abort(self, text: str, me: Peer) -> Verdict:
        """Tell every worker."""
        return self.report(Verdict(FailureKind.ABORTED, self.progress.completed + 1, (me,), text))

    def report(self, verdict: Verdict) -> Verdict:
        """What the ranks of this host have found."""
        return _earlier(self.declare(verdict), verdict)

    def _take_verdict(self, rank: int, tag: Tag, verdict: Verdict) -> None:
        if tag is not Tag.ABORT:
            raise ProtocolError(f"{tag.name} from a worker")
        if verdict.kind is FailureKind.ABORTED and not verdict.culprits:
            verdict = replace(verdict, culprits=(self.links[rank].peer,))
        self.declare(verdict)

    def _judge(self) -> None:
        """While this rank waits for other hosts its own thread judges; otherwise somebody else may be waiting."""
        progress = self.progress
        next_call = progress.completed + 1
        in_call = progress.serving != progress.completed
        if self.verdict is not None or (in_call and not progress.waits_for_host):
            return
        for kind in (FailureKind.DIED, FailureKind.LEFT, FailureKind.SILENT):
            ranks = [rank for rank, reason in self.gone.items() if reason is kind]
            if ranks:
                first = max(next_call, min(self._last_completed.get(rank, -1) for rank in ranks) + 1)
                self.declare(Verdict(kind, first, tuple(self.describe(rank, kind) for rank in ranks)))
                return
        silent = self.silent(self.links)
        is_awaited = in_call or any(beat.in_call and beat.sequence >= next_call for beat in self.beats.values())
        if silent and is_awaited:
            culprits = tuple(self.describe(rank, FailureKind.SILENT) for rank in silent)
            self.declare(Verdict(FailureKind.SILENT, next_call, culprits))


class WorkerWatch(Watch):
    """Hears from the coordinator."""

    def abort(self, text: str, me: Peer) -> Verdict:
        """Tell the coordinator, who tells the others."""
        return self.report(Verdict(FailureKind.ABORTED, self.progress.completed + 1, (me,), text))

    def report(self, verdict: Verdict) -> Verdict:
        """Tell the coordinator, unless it has spoken already."""
        if self.verdict is None:
            self.links[0].send(Tag.ABORT, verdict.pack())
        return _earlier(self.verdict, verdict)

    def _take_verdict(self, rank: int, tag: Tag, verdict: Verdict) -> None:
        if tag is not Tag.VERDICT:
            raise ProtocolError(f"{tag.name} from the coordinator")
        self.settle(verdict)

    def _judge(self) -> None:
        """The coordinator matters to a caller only, who looks for himself as soon as he waits for other hosts."""
        progress = self.progress
        if not progress.waits_for_host or self.verdict is not None:
            return
        kind = self.gone.get(0, FailureKind.SILENT if self.silent((0,)) else None)
        if kind is not None and self._last_completed.get(0, -1) < progress.serving:
            self.settle(Verdict(kind, progress.serving, (self.describe(0, kind),)))
