"""events.jsonl: one JSON object per line; the last line may be incomplete."""

from collections.abc import Mapping
from typing import Any

from cobre.io.storage.stored_json import parse_finite

Event = Mapping[str, Any]


def event_of(line: bytes) -> Event | None:
    """The event of a line; None if it is incomplete or not an event."""
    try:
        found = parse_finite(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) and isinstance(found.get("event"), str) else None


def whole_lines(content: bytes) -> bytes:
    """The content up to its last newline: the last line may be incomplete."""
    return content[: content.rfind(b"\n") + 1]


def events_in(content: bytes) -> list[Event]:
    """The events of all lines that can be read, in their order."""
    return [event for line in content.split(b"\n") if (event := event_of(line)) is not None]


def numbered_lines(content: bytes) -> list[tuple[int, Event | None]]:
    """The number (from 1) and event of each line, None if it cannot be read; empty lines are left out.

    A last line without a newline is included if it can be read, as in a file that is no longer written.
    """
    *lines, last = content.split(b"\n")
    found = [(number, event_of(line)) for number, line in enumerate(lines, 1) if line.strip()]
    return found if (event := event_of(last)) is None else [*found, (len(lines) + 1, event)]
