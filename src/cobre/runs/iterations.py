"""The iterations in the events of a run, resumed ones included: one rule for views, reports and exports."""

from collections.abc import Iterable

from cobre.io.event_file import Event


def iterations_of(events: Iterable[Event]) -> list[Event]:
    """In order, each number once. A run that starts anew forgets those before it; one that resumes repeats some."""
    kept: list[Event] = []
    for event in events:
        if event["event"] == "run_started" and not is_resumed(event):
            kept = []
        elif event["event"] == "iteration" and _is_whole(event.get("iteration")):
            add_iteration(kept, event)
    return kept


def add_iteration(iterations: list[Event], event: Event) -> None:
    """Append it; iterations from its number on go: the checkpoint that the run resumed from was older than they."""
    while iterations and iterations[-1]["iteration"] >= event["iteration"]:
        iterations.pop()
    iterations.append(event)


def is_resumed(start: Event) -> bool:
    """Whether a `run_started` event continues an earlier run."""
    return bool(start.get("is_resumed"))


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
