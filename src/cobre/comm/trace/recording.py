"""The trace file of one rank, read in whatever state the rank left it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cobre.comm.flight_recorder import RecordedCall
from cobre.comm.trace.writer import FORMAT_VERSION
from cobre.errors import CobreError

_HEADER_FIELDS: Mapping[str, type] = {
    "backend": str,
    "rank": int,
    "size": int,
    "communicator": int,
    "host": str,
    "pid": int,
    "clock": str,
    "monotonic_ns": int,
    "time_ns": int,
}
_CALL_FIELDS: Mapping[str, type] = {
    "sequence": int,
    "operation": str,
    "nbytes": int,
    "label": str,
    "begin_ns": int,
    "end_ns": int,
}


class NotATraceError(CobreError, ValueError):
    """The file is not a trace, or one of another format version."""


@dataclass(frozen=True, slots=True)
class Header:
    """The process that wrote the file, and its clocks at that time.

    communicator: the number of this one among those with the same backend and size. clock: identifies the monotonic
    clock; empty if unknown.
    """

    backend: str
    rank: int
    size: int
    communicator: int
    host: str
    pid: int
    clock: str
    monotonic_ns: int
    time_ns: int

    @property
    def process(self) -> tuple[str, int]:
        """Host and pid, which identify the process."""
        return self.host, self.pid

    @property
    def clock_key(self) -> str:
        """Equal for processes that read the same clock; unique for a process whose clock is unknown."""
        return self.clock or f"{self.host} {self.pid}"

    @property
    def wall_offset_ns(self) -> int:
        """Added to the monotonic time of this process, it gives the time of day."""
        return self.time_ns - self.monotonic_ns


@dataclass(slots=True)
class Recording:
    """The calls of one communicator, by sequence number, and how the file ended.

    lost: calls that were not written. failed_sequence, failure: what broke the communicator, if anything did.
    """

    path: Path
    header: Header
    calls: dict[int, RecordedCall] = field(default_factory=dict)
    lost: int = 0
    failed_sequence: int = 0
    failure: str = ""
    is_closed: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def last_call(self) -> RecordedCall | None:
        """The last call in the file; None if there is none."""
        return next(reversed(self.calls.values()), None)

    @property
    def last_sequence(self) -> int:
        """The number of the last call; 0 if there is none."""
        return self.last_call.sequence if self.last_call else 0

    @property
    def last_ns(self) -> int:
        """The latest time in the file, by this process's monotonic clock."""
        last = self.last_call
        return self.header.monotonic_ns if last is None else max(last.begin_ns, last.end_ns)

    @property
    def wall_span_ns(self) -> tuple[int, int]:
        """Begin and end of the file, by the time of day."""
        return self.header.time_ns, self.last_ns + self.header.wall_offset_ns


def read_recording(path: Path) -> Recording:
    """Read a file. Lines that cannot be parsed are left out, with a note; raises `NotATraceError` and `OSError`."""
    with path.open("rb") as file:
        recording = Recording(path, _read_header(file.readline()))
        unreadable = 0
        for line in file:
            entry = _parse(line)
            if not (entry and _add_line(recording, entry)):
                unreadable += 1
    recording.notes += _notes(recording, unreadable)
    return recording


def _read_header(line: bytes) -> Header:
    if not line:
        raise NotATraceError("is empty")
    entry = _parse(line) or {}
    version = entry.get("cobre_trace")
    if version is None:
        raise NotATraceError("is not a trace")
    if version != FORMAT_VERSION:
        raise NotATraceError(f"has trace format {version!r}, expected {FORMAT_VERSION}")
    values = _typed(entry, _HEADER_FIELDS)
    if values is None or not 0 <= values["rank"] < values["size"]:
        raise NotATraceError("has a damaged first line")
    return Header(**values)


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None


def _typed(entry: Mapping[str, Any], fields: Mapping[str, type]) -> dict[str, Any] | None:
    if all(type(entry.get(name)) is kind for name, kind in fields.items()):
        return {name: entry[name] for name in fields}
    return None


def _add_line(recording: Recording, entry: dict[str, Any]) -> bool:
    """Add one line to the recording; False if it is malformed."""
    if (values := _typed(entry, _CALL_FIELDS)) is not None:
        # A call that took long was written twice: the later line has its end.
        recording.calls[values["sequence"]] = RecordedCall(**values)
    elif type(entry.get("lost")) is int:
        recording.lost += entry["lost"]
    elif type(entry.get("failed")) is int:
        recording.failed_sequence, recording.failure = entry["failed"], str(entry.get("failure", ""))
    elif entry.get("closed") is True:
        recording.is_closed = True
    else:
        return False
    return True


def _notes(recording: Recording, unreadable: int) -> Iterator[str]:
    source = f"rank {recording.header.rank} ({recording.path.name})"
    if unreadable:
        lines = "1 line" if unreadable == 1 else f"{unreadable} lines"
        yield f"{source}: {lines} could not be read; a process that is killed leaves its last line incomplete"
    if recording.lost:
        yield f"{source}: {recording.lost} calls are missing, which were made faster than they could be written"
    if recording.failure:
        yield f"{source} failed: {recording.failure}"
    if not recording.is_closed:
        last = recording.last_call
        state = (
            f"its last call is {last}{', not completed' if last.is_in_progress else ''}" if last else "it made no call"
        )
        yield f"{source}: the file is incomplete, so the rank was killed or is still running; {state}"
