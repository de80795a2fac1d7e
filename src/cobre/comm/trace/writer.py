"""The writer of traces: each communicator's calls go to a separate file, line by line.

Calls cost no more than without a trace: a thread reads the ring buffer of the guard and writes what is new. If a
program makes calls faster than that, the oldest are lost, and the file has their number.
"""

import contextlib
import itertools
import json
import logging
import os
import socket
import threading
import time
import weakref
from collections import Counter
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import Any

from cobre._native import CallGuard
from cobre.comm.flight_recorder import RecordedCall, named_calls

TRACE_VARIABLE = "COBRE_COMM_TRACE"
FORMAT_VERSION = 1
INTERVAL_S = 0.05
SHORTEST_INTERVAL_S = 0.001
CALLS_PER_READ = 256  # a quarter of the ring
STUCK_NS = 1_000_000_000  # a call that takes longer is written before it ends: it may never end

logger = logging.getLogger("cobre.comm")


def start_trace(owner: object, guard: CallGuard, backend: str, rank: int, size: int) -> "TraceWriter | None":
    """Write the owner's calls until it is closed or garbage-collected; None unless COBRE_COMM_TRACE is set."""
    folder = os.environ.get(TRACE_VARIABLE)
    if not folder:
        return None
    try:
        writer = TraceWriter(Path(folder), guard, backend, rank, size)
    except OSError as error:
        logger.warning("cannot write a trace of rank %d: %s=%s: %s", rank, TRACE_VARIABLE, folder, error)
        return None
    weakref.finalize(owner, writer.close)
    _thread.add(writer)
    return writer


class TraceWriter:
    """The trace file of one communicator."""

    def __init__(self, folder: Path, guard: CallGuard, backend: str, rank: int, size: int) -> None:
        self._guard: CallGuard | None = guard  # None: closed
        self._rank = rank
        self._pid = os.getpid()
        self._written = self._announced = 0  # sequence numbers
        self._lock = threading.RLock()  # a signal handler may close while this thread writes
        folder.mkdir(parents=True, exist_ok=True)
        # Unbuffered: nothing is lost if the process is killed, and a fork does not write buffered lines again.
        self._file = _new_file(folder, f"rank-{rank}-{self._pid}")
        world = {"backend": backend, "rank": rank, "size": size, "communicator": _count_of(backend, size)}
        self._write([{"cobre_trace": FORMAT_VERSION, **world, **_this_process(), **_clocks()}])

    @property
    def is_closed(self) -> bool:
        """Whether nothing more will be written."""
        return self._file.closed

    def drain(self) -> int:
        """Write the calls that have ended since the last time, and return how many there were."""
        with self._exclusive_access() as is_open:
            if not is_open:
                return 0
            calls = self._unwritten()
            fresh = [call for call in calls if not call.is_in_progress]
            self._write([*self._gap_lines(fresh), *map(_event, fresh), *self._stuck_lines(calls)])
            self._written = fresh[-1].sequence if fresh else self._written
            return len(fresh)

    def fail(self, failure: BaseException) -> None:
        """Write what broke the communicator, and in which call; everything is written, as the process may end now."""
        self.drain()
        with self._exclusive_access() as is_open:
            if is_open:
                calls = [call for call in self._unwritten() if call.is_in_progress]
                sequence = calls[-1].sequence if calls else 0
                self._write(
                    [*map(_event, calls), {"failed": sequence, "failure": f"{type(failure).__name__}: {failure}"}]
                )

    def close(self) -> None:
        """Write the rest and the end mark, and close the file."""
        self.drain()
        with self._exclusive_access() as is_open:
            if is_open:
                self._write([{"closed": True, **_clocks()}])
                self._file.close()
        self._guard = None

    @contextlib.contextmanager
    def _exclusive_access(self) -> Iterator[bool]:
        """Yield exclusive access.

        False if nothing can be written: the file is closed, or belongs to this fork's parent.
        """
        if os.getpid() != self._pid:  # a fork: the lock may have been held by a thread that does not exist here
            yield False
            return
        with self._lock:
            yield not self._file.closed

    def _unwritten(self) -> list[RecordedCall]:
        if self._guard is None or self._guard.sequence == self._written:
            return []
        return named_calls(record for record in self._guard.recent() if record[0] > self._written)

    def _gap_lines(self, fresh: list[RecordedCall]) -> Iterator[dict[str, Any]]:
        if fresh and (lost := fresh[0].sequence - self._written - 1):
            yield {"lost": lost, "before": fresh[0].sequence}

    def _stuck_lines(self, calls: list[RecordedCall]) -> Iterator[dict[str, Any]]:
        for call in calls[-1:]:
            age_ns = time.monotonic_ns() - call.begin_ns
            if call.is_in_progress and call.sequence > self._announced and age_ns > STUCK_NS:
                self._announced = call.sequence
                yield _event(call)

    def _write(self, entries: list[dict[str, Any]]) -> None:
        text = "".join(json.dumps(entry, separators=(",", ":")) + "\n" for entry in entries)
        try:
            if text:
                self._file.write(text.encode())
        except OSError as error:  # a full disk must not end the run
            logger.warning("the trace of rank %d is incomplete: %s: %s", self._rank, self._file.name, error)
            with contextlib.suppress(OSError):
                self._file.close()


class _TraceThread:
    """The thread that writes the calls of all traced communicators of the process."""

    def __init__(self) -> None:
        self._writers: list[TraceWriter] = []
        self._pid = 0

    def add(self, writer: TraceWriter) -> None:
        self._writers.append(writer)
        if self._pid != os.getpid():  # not started yet, or not copied by a fork
            self._pid = os.getpid()
            threading.Thread(target=self._run, name="cobre-trace", daemon=True).start()

    def _run(self) -> None:
        interval_s = INTERVAL_S
        while True:
            time.sleep(interval_s)
            max_calls = max((writer.drain() for writer in list(self._writers)), default=0)
            for writer in [writer for writer in self._writers if writer.is_closed]:
                self._writers.remove(writer)
            interval_s = next_interval(interval_s, max_calls)


_thread = _TraceThread()
_counts: Counter[tuple[str, int]] = Counter()


def next_interval(interval_s: float, calls: int) -> float:
    """Return the time to the next read: shorter if the program makes calls fast, so that the ring does not overflow."""
    wanted_s = interval_s * CALLS_PER_READ / max(calls, 1)
    return min(max(wanted_s, SHORTEST_INTERVAL_S), INTERVAL_S)


def _count_of(backend: str, size: int) -> int:
    """Count this communicator among those of the same backend and size; the same on all ranks."""
    _counts[backend, size] += 1
    return _counts[backend, size]


def _new_file(folder: Path, stem: str) -> FileIO:
    """Create a file; another communicator, or a process of another container, may have taken the name."""
    for number in itertools.count(1):
        name = f"{stem}.jsonl" if number == 1 else f"{stem}-{number}.jsonl"
        with contextlib.suppress(FileExistsError):
            return (folder / name).open("xb", buffering=0)
    raise AssertionError  # the count does not end


def _this_process() -> dict[str, Any]:
    return {"host": socket.gethostname(), "pid": os.getpid(), "clock": _clock_name()}


def _clock_name() -> str:
    """Identify the monotonic clock: equal for processes that read the same one; empty if unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/time').readlink()}"
    except OSError:
        return ""


def _clocks() -> dict[str, int]:
    return {"monotonic_ns": time.monotonic_ns(), "time_ns": time.time_ns()}


def _event(call: RecordedCall) -> dict[str, Any]:
    return {
        "sequence": call.sequence,
        "operation": call.operation,
        "nbytes": call.nbytes,
        "label": call.label,
        "begin_ns": call.begin_ns,
        "end_ns": call.end_ns,
    }
