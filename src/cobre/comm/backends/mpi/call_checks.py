"""Checks of collective calls between MPI ranks, a watchdog over their duration, and an exchange of errors."""

import hashlib
import json
import os
import select
import signal
import socket
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import TypeAlias

import numpy as np

from cobre._native import CallGuard
from cobre.comm.backends.mpi.library import Mpi, MpiComm
from cobre.comm.endpoint import Endpoint
from cobre.comm.errors import MismatchedCallError, Peer
from cobre.comm.exit_report import ExitReport
from cobre.comm.flight_recorder import show_reports_unless_handled
from cobre.comm.types import Dtype, Operation, ReduceOp

# Checked mode: all ranks compare the signatures of their calls before any data moves (clause 2).
#
# Costs one exchange of 16 bytes per call. Only if signatures differ do the ranks exchange descriptions of their
# calls.

SIGNATURE_BYTES = 16
DESCRIPTION_BYTES = 512
LABEL_CHARACTERS = 32
_LONG_NAMES = {"g": "longdouble", "G": "clongdouble"}


class CheckedCall:
    """One rank's call. compared: the values that must be equal on all ranks. description: for the error message."""

    def __init__(self, operation: Operation, compared: object, description: str = "") -> None:
        self.operation = operation
        self.compared = compared
        self.description = f"{operation.title} ({description})" if description else operation.title

    @property
    def signature(self) -> bytes:
        """A hash that is equal on two ranks if, and only if, their calls agree."""
        return digest(self.operation.title, self.compared)


def allgatherv_call(dtype: Dtype, counts: Sequence[int], rank: int) -> CheckedCall:
    """Describe a gather by dtype and counts; displacements may differ between ranks."""
    count_list = tuple(map(int, counts))
    counts_digest = digest(count_list).hex()[:4]
    description = f"{element_name(dtype)}, {count_list[rank]} of {sum(count_list)}, counts {counts_digest}"
    return CheckedCall(Operation.ALLGATHERV, (dtype.descr, count_list), description)


def allreduce_call(dtype: Dtype, count: int, op: ReduceOp) -> CheckedCall:
    """Describe a reduction by dtype, length and operation."""
    return CheckedCall(Operation.ALLREDUCE, (dtype.descr, count, int(op)), f"{element_name(dtype)}, {count}, {op.name}")


def broadcast_call(dtype: Dtype, count: int, root: int) -> CheckedCall:
    """Describe a broadcast by dtype, length and root."""
    description = f"{element_name(dtype)}, {count}, root {root}"
    return CheckedCall(Operation.BROADCAST, (dtype.descr, count, int(root)), description)


def region_call(dtype: Dtype, count: int) -> CheckedCall:
    """Describe a region by dtype and length."""
    return CheckedCall(Operation.CREATE_SHARED_REGION, (dtype.descr, count), f"{count * dtype.itemsize} bytes")


def fence_call(number: int) -> CheckedCall:
    """Describe a fence by the number of its region."""
    return CheckedCall(Operation.FENCE, number, f"region {number}")


class CallCheck:
    """Comparison of the calls of all ranks of one communicator."""

    def __init__(self, mpi: Mpi, comm: MpiComm, guard: CallGuard) -> None:
        self._comm = comm
        self._guard = guard
        self._byte = mpi.BYTE
        self._size = comm.Get_size()

    def compare(self, call: CheckedCall) -> None:
        """Raise `MismatchedCallError` on every rank unless all made the same call. A collective."""
        # Two exchanges: a hash in every call, the long description only if hashes differ. All ranks see the same
        # hashes, so either all of them take part in the second exchange, or none.
        signatures = self._exchange(call.signature, SIGNATURE_BYTES)
        differing_rank = next((rank for rank, other in enumerate(signatures) if other != signatures[0]), None)
        if differing_rank is not None:
            raise self._mismatch(call, differing_rank)

    def _mismatch(self, call: CheckedCall, differing_rank: int) -> MismatchedCallError:
        payload = f"{os.getpid()}\n{socket.gethostname()}\n{call.description}{self._label()}"
        # A label may contain a lone surrogate, which UTF-8 cannot encode: the label is only for display.
        parts = self._exchange(payload.encode(errors="replace"), DESCRIPTION_BYTES)
        texts = [part.rstrip(b"\0").decode(errors="replace") for part in parts]
        pids, hosts, descriptions = zip(*(text.split("\n", 2) for text in texts), strict=True)
        sequence = self._guard.sequence
        sides = " vs ".join(f"rank {rank}: {descriptions[rank]}" for rank in (0, differing_rank))
        return MismatchedCallError(
            call.operation.title,
            0,
            f"ranks made different calls: {sides} at call #{sequence}",
            sequence,
            [Peer(rank, hosts[rank], int(pids[rank])) for rank in (0, differing_rank)],
        )

    def _label(self) -> str:
        label = self._guard.recent()[-1][3]
        return f" '{label[:LABEL_CHARACTERS]}'" if label else ""

    def _exchange(self, payload: bytes, width: int) -> list[bytes]:
        gathered = np.empty((self._size, width), np.uint8)
        self._comm.Allgather((payload[:width].ljust(width, b"\0"), width, self._byte), (gathered, width, self._byte))
        return [row.tobytes() for row in gathered]


def element_name(dtype: Dtype) -> str:
    """Return the name of a numeric dtype, spelled as in the messages of all backends."""
    return _LONG_NAMES.get(dtype.char, dtype.name) if dtype.kind in "iufcb" else "other dtype"


def digest(*parts: object) -> bytes:
    """Hash the parts, with the same result in every process."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=SIGNATURE_BYTES).digest()


# A watchdog for calls that MPI does not return from: until they return, Python runs no signal handler.
#
# Python's signal handlers run between bytecodes of the main thread, which is inside MPI. The C-level handler,
# however, writes the number of each signal into a pipe at once (`signal.set_wakeup_fd`). A thread reads that pipe, so
# that Ctrl-C and SIGUSR1 work during a call; it also checks periodically whether a call is stuck.

TICK_S = 0.5
GRACE_S = 0.1  # time for Python's own handler, which runs first unless a call is stuck


OnStuck: TypeAlias = Callable[[Endpoint, float], None]


class CallWatchdog:
    """Thread that calls `on_interrupt` at Ctrl-C during a wait, and `on_stuck` every TICK_S of a call."""

    def __init__(self, on_interrupt: Callable[[Endpoint], None], on_stuck: OnStuck) -> None:
        self._on_interrupt = on_interrupt
        self._on_stuck = on_stuck
        # Weak: being watched must not keep a communicator alive that the program has dropped.
        self._endpoints: weakref.WeakSet[Endpoint] = weakref.WeakSet()
        self._seen: dict[
            int, tuple[int, float]
        ] = {}  # by endpoint: its call at the last tick, and when it was first seen

    def add(self, endpoint: Endpoint) -> None:
        """Watch the calls of this endpoint too."""
        self._endpoints.add(endpoint)

    def start(self) -> None:
        """Start the thread; it runs until the process ends."""
        threading.Thread(target=self._run, args=(_signal_pipe(),), name="cobre-mpi-watchdog", daemon=True).start()

    def _run(self, pipe: int | None) -> None:
        pipes = [] if pipe is None else [pipe]
        while True:
            readable, _, _ = select.select(pipes, [], [], TICK_S)
            signals = os.read(readable[0], 64) if readable else b""
            if _is_interrupt(signals):
                self._find_interrupted()
            if signal.SIGUSR1 in signals:
                show_reports_unless_handled(GRACE_S)
            self._find_stuck()

    def _find_interrupted(self) -> None:
        # A call that is still the same after the grace period did not see the interrupt. One that has returned did, by
        # Python's own handler: aborting the job then would take KeyboardInterrupt away from the program.
        before = {(endpoint, endpoint.sequence) for endpoint in self._busy()}
        time.sleep(GRACE_S)
        for endpoint in self._busy():
            if (endpoint, endpoint.sequence) in before:
                self._on_interrupt(endpoint)

    def _find_stuck(self) -> None:
        """Report every call that was already under way at the previous tick, with its age in seconds."""
        now = time.monotonic()
        seen = self._seen
        self._seen = {}
        for endpoint in self._busy():
            sequence, since = seen.get(id(endpoint), (0, now))
            if sequence != endpoint.sequence:
                since = now
            self._seen[id(endpoint)] = (endpoint.sequence, since)
            if now > since:
                self._on_stuck(endpoint, now - since)

    def _busy(self) -> list[Endpoint]:
        return [endpoint for endpoint in list(self._endpoints) if endpoint.state == "busy"]


def _signal_pipe() -> int | None:
    """Return a descriptor from which signal numbers can be read; None if an event loop, for example, reads them."""
    if threading.current_thread() is not threading.main_thread():
        return None
    reader, writer = os.pipe()
    os.set_blocking(writer, False)  # a signal handler must never block; set_wakeup_fd insists on it
    previous = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    if previous == -1:
        os.register_at_fork(after_in_child=_forget_pipe)
        return reader
    # There is only one wakeup descriptor per process, and asyncio, for example, uses it: give it back.
    signal.set_wakeup_fd(previous)
    os.close(reader)
    os.close(writer)
    return None


def _forget_pipe() -> None:
    # Only the main thread may call this; a child that another thread forked handles none of our signals.
    if threading.current_thread() is threading.main_thread():
        signal.set_wakeup_fd(-1)


def _is_interrupt(signals: bytes) -> bool:
    # A program with its own SIGINT handler decides for itself.
    return signal.SIGINT in signals and signal.getsignal(signal.SIGINT) is signal.default_int_handler


# Exchange of error reports between the processes of a group, independent of the calls of any communicator.
#
# A rank that gives up takes part, and so does every rank that calls `check_failures`. If all ranks take part, they
# leave in order, and one of them prints the report for all. If some do not, they are waiting in a collective, which
# only aborting the job can end.

MAX_BACKOFF_S = 0.005
MAX_MESSAGE = 10_000


class ErrorExchange:
    """Exchange of reports between the processes of a group, on a separate communicator, by collectives."""

    def __init__(self, mpi: Mpi, comm: MpiComm) -> None:
        self._mpi = mpi
        self._comm = comm.Dup()
        # Buffers of exchanges that timed out. A nonblocking collective cannot be cancelled: MPI may write to them at a
        # later time, so they are kept.
        self._abandoned: list[object] = []

    def exchange(self, report: ExitReport | None, timeout_s: float | None = None) -> list[ExitReport | None] | None:
        """Return every rank's report, by rank, with None for a rank without an error.

        None if not all ranks took part in time. timeout_s: limit on waiting for the others; None: no limit.
        """
        payload = np.frombuffer(encode_report(report), np.uint8)
        counts = np.zeros(self._comm.Get_size(), np.int64)
        own_size = np.array([payload.size], np.int64)
        self._abandoned.append((own_size, counts))
        # The sizes are exchanged by a nonblocking collective, because the others may never come. Once it has completed,
        # all ranks are here, and a blocking call for the reports themselves cannot hang.
        if not _completes_within(self._comm.Iallgather(own_size, counts), timeout_s):
            return None
        self._abandoned.pop()
        everything = np.empty(int(counts.sum()), np.uint8)
        if everything.size:
            self._comm.Allgatherv((payload, self._mpi.BYTE), (everything, counts.tolist(), self._mpi.BYTE))
        parts = np.split(everything, np.cumsum(counts)[:-1])
        return [decode_report(part.tobytes()) for part in parts]


def agreed_exit(rank: int, reports: Sequence[ExitReport | None]) -> ExitReport | None:
    """Return the report that this rank ends with: rank 0 prints each different message once, the others nothing.

    None if no rank failed.
    """
    failed = [report for report in reports if report is not None]
    if not failed:
        return None
    first_by_message = {report.message: report for report in reversed(failed)}
    texts = [report.text for report in failed if first_by_message[report.message] is report]
    message = "\n".join(texts) if rank == 0 else ""
    return ExitReport(message, failed[0].exit_code, is_agreed=True, details=failed[0].details)


def reasons(reports: Sequence[ExitReport | None]) -> str:
    """Return why ranks gave up: each different message once."""
    return "; ".join(dict.fromkeys(report.text for report in reports if report is not None and report.text))


def _completes_within(request: Mpi, timeout_s: float | None) -> bool:
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    backoff_s = 0.0
    while not request.Test():
        if deadline is not None and time.monotonic() > deadline:
            return False
        time.sleep(backoff_s)  # MPI makes progress only inside its calls, so the pauses stay short
        backoff_s = min(backoff_s + 0.0001, MAX_BACKOFF_S)
    return True


def encode_report(report: ExitReport | None) -> bytes:
    """Return the report as JSON, its message shortened to MAX_MESSAGE characters; empty for None."""
    if report is None:
        return b""
    return json.dumps(asdict(replace(report, message=_shortened(report.message)))).encode()


def _shortened(message: str) -> str:
    return message if len(message) <= MAX_MESSAGE else f"{message[:MAX_MESSAGE]} ..."


def decode_report(content: bytes) -> ExitReport | None:
    """Return the report that `encode_report` wrote."""
    return ExitReport(**json.loads(content)) if content else None
