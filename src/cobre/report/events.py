"""The events of a run, from its last start on."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cobre.io.event_file import Event, event_of
from cobre.io.untrusted_file import MOST_BYTES, read_foreign


@dataclass(frozen=True, slots=True)
class EventLog:
    """Events in order, from the last start on; iterations that the run took over from before included."""

    events: Sequence[Event] = ()
    iterations: Sequence[Event] = ()
    damaged_lines: Sequence[int] = ()

    def of(self, kind: str) -> list[Event]:
        """All events of a kind."""
        return [event for event in self.events if event["event"] == kind]

    def last(self, kind: str) -> Event | None:
        """The last one of a kind."""
        return next((event for event in reversed(self.events) if event["event"] == kind), None)

    @property
    def last_time(self) -> float | None:
        """When something was last heard of, in seconds since the epoch."""
        return _number(self.events[-1].get("time")) if self.events else None


def read_log(path: Path) -> EventLog:
    """Every line that can be read. A last line without its end is still being written, and does not count as damage."""
    try:
        lines = read_foreign(path, MOST_BYTES).split(b"\n")
    except FileNotFoundError:
        return EventLog()
    parsed = [event_of(line) for line in lines]
    damaged = [place for place, event in enumerate(parsed[:-1], 1) if event is None and lines[place - 1].strip()]
    events = [event for event in parsed if event is not None]
    return EventLog(_since_last_start(events), _iterations(events), damaged)


def _since_last_start(events: Sequence[Event]) -> Sequence[Event]:
    starts = [place for place, event in enumerate(events) if event["event"] == "run_started"]
    return events[starts[-1] :] if starts else events


def _iterations(events: Sequence[Event]) -> list[Event]:
    """In order. A run that starts anew forgets those before it; one that resumes does some of them again."""
    kept: list[Event] = []
    for event in events:
        if event["event"] == "run_started" and not _is_resumed(event):
            kept = []
        elif event["event"] == "iteration" and _is_whole(event.get("iteration")):
            kept = (
                [former for former in kept if former["iteration"] < event["iteration"]] if _again(kept, event) else kept
            )
            kept.append(event)
    return kept


def _is_resumed(start: Event) -> bool:
    return bool(start.get("is_resumed")) or start.get("resumed_from") is not None


def _again(kept: Sequence[Event], event: Event) -> bool:
    return bool(kept) and bool(kept[-1]["iteration"] >= event["iteration"])


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
