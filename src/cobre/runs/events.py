"""The events of a run as plain JSON objects: one stream for the log file, the terminal, notebooks and live views.

Every event has `event`, its kind, and `time`, in seconds since 1970 (UTC). Money is $.
"""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from cobre.core.file_names import EVENT_FILE, OUTPUT
from cobre.core.policy_cost import NO_POLICY_COST
from cobre.errors import CobreError
from cobre.io.storage.atomic import as_write_error
from cobre.io.storage.confined import MAX_BYTES, open_own, open_untrusted, read_untrusted, remove_file
from cobre.io.storage.stored_json import json_value, parse_finite
from cobre.runs.summary import bound_history
from cobre.sddp.iteration_records import IterationRecord, phases_as_dict

__all__ = [
    "Event",
    "EventListener",
    "EventLog",
    "encode",
    "iteration_event",
    "new_event",
    "no_events",
    "read_events",
    "resumed_event",
]

Event = Mapping[str, Any]
"""An event as its line in the log has it."""

EventListener = Callable[[Event], None]
"""Called with the events of a run as they occur; `no_events` on ranks other than 0."""

MAX_SHOWN = 500
"""Most earlier iterations in the event of a resumed training."""

DRAWN = frozenset(
    ("event", "iteration", "lower_bound", "upper_bound", "half_width", "gap", "cuts", "solves", "elapsed_s")
) | {"policy_gap", *NO_POLICY_COST}
"""Facts of an iteration that views draw."""


def no_events(_: Event) -> None:
    """Ignore an event."""


def new_event(kind: str, /, **facts: Any) -> Event:
    """Create an event with the present time: `new_event("phase", name="training")`."""
    return {"event": kind, "time": time.time(), **facts}


def iteration_event(record: IterationRecord, *, is_risk_averse: bool = False) -> Event:
    """Create the event of an iteration, with the time of each rank by purpose.

    is_risk_averse: the mean of sampled paths bounds nothing, and there is no gap to it.
    """
    times, points, cost = record.times, record.trial_points, record.policy_cost
    return new_event(
        "iteration",
        iteration=record.iteration,
        lower_bound=record.lower_bound,
        upper_bound=record.upper_bound,
        upper_bound_std=record.upper_bound_std,
        half_width=record.half_width,
        gap=bound_history([record], is_risk_averse=is_risk_averse).gap,
        forward_passes=record.forward_passes,
        solves=record.solves,
        simplex_iterations=record.simplex_iterations,
        cuts=record.cuts,
        elapsed_s=record.elapsed_s,
        forward_s=times.forward_s,
        backward_s=times.backward_s,
        bound_s=times.bound_s,
        exchange_s=times.exchange_s,
        solver_s=times.solver_s,
        load=[[load.busy_s, load.waiting_s] for load in record.loads],
        imbalance_s=[load.imbalance_s for load in record.loads],
        solver=phases_as_dict(record.solver),
        traffic_bytes=dict(record.traffic_bytes),
        trial_points=None if points is None else asdict(points),
        **(NO_POLICY_COST if cost is None else cost.as_dict()),
        policy_gap=record.policy_gap,
    )


def resumed_event(history: Sequence[IterationRecord], *, is_risk_averse: bool = False) -> Event:
    """Create the event of training that continues after the iterations of a checkpoint, with the facts that views draw.

    Times are those that the iterations would have had without the interruption.
    """
    event = new_event("resumed", iteration=history[-1].iteration)
    iterations = [
        {name: value for name, value in iteration_event(record, is_risk_averse=is_risk_averse).items() if name in DRAWN}
        | {"time": event["time"] - (history[-1].elapsed_s - record.elapsed_s)}
        for record in history[-MAX_SHOWN:]
    ]
    return {**event, "iterations": iterations}


def encode(event: Event) -> str:
    """Encode an event as one line of JSON; numbers that JSON does not know become null."""
    return json.dumps({key: json_value(value) for key, value in event.items()}, separators=(",", ":"), allow_nan=False)


def number_of(value: object) -> float | None:
    """Return a number of an event; None for anything else, which an altered log may contain."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


class EventLog:
    """events.jsonl: a line for each event, flushed at once. A resumed run appends to it."""

    def __init__(self, folder: Path, *, append: bool) -> None:
        self._path = folder / EVENT_FILE
        with as_write_error(self._path):
            self._file: IO[str] = _open_log(self._path, append=append)
            if append and not _ends_with_newline(self._path):
                self._file.write("\n")  # a killed run may leave half a line: keep our line separate

    def emit(self, event: Event) -> None:
        """Append an event as a line; raises WriteError, on a full disk for instance."""
        with as_write_error(self._path):
            self._file.write(encode(event) + "\n")
            self._file.flush()

    def close(self) -> None:
        """Close the event log."""
        self._file.close()


def _open_log(path: Path, *, append: bool) -> IO[str]:
    """Open for appending, or create: an earlier log is unlinked, not truncated, so that followers keep their file."""
    if not append:
        remove_file(path)
    flags = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if append else os.O_EXCL)
    return os.fdopen(open_own(path, flags), "w", encoding="utf-8")


def _ends_with_newline(path: Path) -> bool:
    """Return whether the file ends with a whole line, or is empty."""
    with os.fdopen(open_untrusted(path), "rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - 1))
        return stream.read(1) in (b"", b"\n")


# The log, events.jsonl, read back: one JSON object per line. The last line may be incomplete.


def event_of(line: bytes) -> Event | None:
    """Return the event of a line; None if it is incomplete or not an event."""
    try:
        event = parse_finite(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and isinstance(event.get("event"), str) else None


def whole_lines(content: bytes) -> bytes:
    """Return the content up to its last newline: the last line may be incomplete."""
    return content[: content.rfind(b"\n") + 1]


def events_in(content: bytes) -> list[Event]:
    """Return the events of all readable lines, in order."""
    return [event for line in content.split(b"\n") if (event := event_of(line)) is not None]


def numbered_lines(content: bytes) -> list[tuple[int, Event | None]]:
    """Return the number (from 1) and event of each line, None if it cannot be read; empty lines are left out.

    A last line without a newline is included if it can be read, as in a file that is no longer written.
    """
    *lines, last = content.split(b"\n")
    numbered = [(number, event_of(line)) for number, line in enumerate(lines, 1) if line.strip()]
    return numbered if (event := event_of(last)) is None else [*numbered, (len(lines) + 1, event)]


def read_events(folder: Path) -> list[Event]:
    """Read all whole lines so far; a line that is being written is left for the next time."""
    return events_in(whole_lines(read_untrusted(folder / EVENT_FILE, MAX_BYTES)))


# The event stream of a run, read while it grows.


class NothingToFollowError(CobreError):
    """A directory without the event log of a run."""

    remedy = "give the --output directory of a run"


class EventFollower:
    """A reader of new events only; a new run in the same directory is read from its start."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / EVENT_FILE
        self._inode = -1
        self._offset = 0
        self.has_restarted = False
        """Whether the last read began at the start of a new log."""
        self.damaged_lines = 0
        """Number of complete lines so far that are not events."""

    def check(self) -> None:
        """Raise NothingToFollowError if there is no event log; the message says why."""
        folder = self._path.parent
        if not folder.exists():
            raise NothingToFollowError(f"{folder} does not exist: give the --output directory of a run")
        if not folder.is_dir():
            raise NothingToFollowError(f"{folder} is a file: give the --output directory of a run")
        if not os.path.lexists(self._path):
            inner = folder / OUTPUT
            hint = f"; its subdirectory `{OUTPUT}` has one: {inner}" if (inner / EVENT_FILE).exists() else ""
            raise NothingToFollowError(f"{folder} has no {EVENT_FILE}: it is not the --output of a run{hint}")
        if not self._path.is_file():
            raise NothingToFollowError(f"{self._path} is not a file: it was not written by `cobre run`")
        self._read_rest()

    def read_new(self) -> list[Event]:
        """Return the new events; a line that is being written is left for the next time."""
        lines = whole_lines(self._read_rest())
        self._offset += len(lines)
        events = events_in(lines)
        self.damaged_lines += sum(1 for line in lines.split(b"\n") if line.strip()) - len(events)
        return events

    def _read_rest(self) -> bytes:
        try:
            with os.fdopen(open_untrusted(self._path), "rb") as stream:
                self._note_restart(stream.fileno())
                stream.seek(self._offset)
                return stream.read()
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise NothingToFollowError(f"{self._path} cannot be read: {error.strerror}") from error

    def _note_restart(self, descriptor: int) -> None:
        """Start again at the beginning of a log that a new run has replaced."""
        status = os.fstat(descriptor)
        self.has_restarted = self._inode != -1 and (status.st_ino != self._inode or status.st_size < self._offset)
        if self.has_restarted:
            self._offset = self.damaged_lines = 0
        self._inode = status.st_ino
