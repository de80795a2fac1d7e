"""The events of a run, from its last start on."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cobre.io.event_file import Event, event_of
from cobre.io.untrusted_file import MAX_BYTES, read_untrusted
from cobre.runs.events import last_event, number_of
from cobre.runs.iterations import iterations_of


@dataclass(frozen=True, slots=True)
class EventHistory:
    """Events in order, from the last start on; iterations that the run took over from before included."""

    events: Sequence[Event] = ()
    iterations: Sequence[Event] = ()
    damaged_lines: Sequence[int] = ()

    def of(self, kind: str) -> list[Event]:
        """All events of a kind, such as `warning`, in order."""
        return [event for event in self.events if event["event"] == kind]

    def last(self, kind: str) -> Event | None:
        """The last event of a kind; None where there is none."""
        return last_event(self.events, kind)

    @property
    def last_time(self) -> float | None:
        """The time of the last event, in seconds since 1970 (UTC)."""
        return number_of(self.events[-1].get("time")) if self.events else None


def read_history(path: Path) -> EventHistory:
    """Every line that can be read. A last line without its end is still being written, and does not count as damage."""
    try:
        lines = read_untrusted(path, MAX_BYTES).split(b"\n")
    except FileNotFoundError:
        return EventHistory()
    parsed = [event_of(line) for line in lines]
    damaged = [place for place, event in enumerate(parsed[:-1], 1) if event is None and lines[place - 1].strip()]
    events = [event for event in parsed if event is not None]
    return EventHistory(_since_last_start(events), iterations_of(events), damaged)


def _since_last_start(events: Sequence[Event]) -> Sequence[Event]:
    starts = [place for place, event in enumerate(events) if event["event"] == "run_started"]
    return events[starts[-1] :] if starts else events
