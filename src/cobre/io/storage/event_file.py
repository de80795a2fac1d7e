"""events.jsonl: one JSON object a line, the last perhaps only half there."""

from collections.abc import Mapping
from typing import Any

from cobre.io.storage.stored_json import parse_finite

Event = Mapping[str, Any]


def event_of(line: bytes) -> Event | None:
    """None for a line that a killed run left half written, and for one that is no event."""
    try:
        found = parse_finite(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) and isinstance(found.get("event"), str) else None


def whole_lines(content: bytes) -> bytes:
    """The content up to its last newline: a last line may still be being written."""
    return content[: content.rfind(b"\n") + 1]


def events_in(content: bytes) -> list[Event]:
    """The events of all lines that can be read, in their order."""
    return [event for line in content.split(b"\n") if (event := event_of(line)) is not None]


def numbered_lines(content: bytes) -> list[tuple[int, Event | None]]:
    """Every line with its number, from 1, and its event: None where it cannot be read. Empty lines are left out.

    A last line without its end counts when it can be read: a file that is not written any more may end so.
    """
    *lines, last = content.split(b"\n")
    found = [(number, event_of(line)) for number, line in enumerate(lines, 1) if line.strip()]
    return found if (event := event_of(last)) is None else [*found, (len(lines) + 1, event)]
