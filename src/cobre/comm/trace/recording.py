"""Reading one rank's file, whatever state the rank left it in."""

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
    """This file was not written by a rank, or not so that it can be read here."""


@dataclass(frozen=True, slots=True)
class Header:
    """Who wrote the file, and what its clocks showed then; `communicator` counts those of this backend and size."""

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
        """What tells processes apart."""
        return self.host, self.pid

    @property
    def clock_key(self) -> str:
        """The same for processes that read the same clock; a process whose clock is not known has one of its own."""
        return self.clock or f"{self.host} {self.pid}"

    @property
    def wall_offset_ns(self) -> int:
        """What turns the monotonic time of this process into the time of day."""
        return self.time_ns - self.monotonic_ns


@dataclass(slots=True)
class Recording:
    """One communicator's calls by their sequence numbers, and how the file ended."""

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
        """The last that was written."""
        return next(reversed(self.calls.values()), None)

    @property
    def last_sequence(self) -> int:
        """Its number; 0: no call was written."""
        return self.last_call.sequence if self.last_call else 0

    @property
    def last_ns(self) -> int:
        """The last moment that the file knows of, in this process's monotonic time."""
        last = self.last_call
        return self.header.monotonic_ns if last is None else max(last.begin_ns, last.end_ns)

    @property
    def wall_span_ns(self) -> tuple[int, int]:
        """From when to when it was written, by the time of day."""
        return self.header.time_ns, self.last_ns + self.header.wall_offset_ns


def read_recording(path: Path) -> Recording:
    """The file's calls; what cannot be read is left out and noted."""
    with path.open("rb") as file:
        recording = Recording(path, _read_header(file.readline()))
        unreadable = 0
        for line in file:
            entry = _parse(line)
            if not (entry and _add(recording, entry)):
                unreadable += 1
    recording.notes += _notes(recording, unreadable)
    return recording


def _read_header(line: bytes) -> Header:
    if not line:
        raise NotATraceError("is empty")
    entry = _parse(line) or {}
    version = entry.get("cobre_trace")
    if version is None:
        raise NotATraceError("was not written by a rank")
    if version != FORMAT_VERSION:
        raise NotATraceError(f"has trace format {version!r}; this program reads {FORMAT_VERSION}")
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


def _add(recording: Recording, entry: dict[str, Any]) -> bool:
    """Take one line into account; false: it makes no sense."""
    if (values := _typed(entry, _CALL_FIELDS)) is not None:
        # A call that was long under way is there twice: the later line knows its end.
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
    who = f"rank {recording.header.rank} ({recording.path.name})"
    if unreadable:
        yield f"{who}: {unreadable} lines cannot be read; a process that is killed leaves its last line unfinished"
    if recording.lost:
        yield f"{who}: {recording.lost} calls are missing: they came faster than they could be written"
    if recording.failure:
        yield f"{who} failed: {recording.failure}"
    if not recording.is_closed:
        last = recording.last_call
        state = f"its last call is {last}{', not ended' if last.is_under_way else ''}" if last else "no calls"
        yield f"{who}: the file has no end, so the rank was killed or still runs; {state}"
