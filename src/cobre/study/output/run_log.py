"""The log of a run in its output directory, which may still hold the results of an earlier one."""

from pathlib import Path

from cobre.runs.events import Event, EventListener, EventLog
from cobre.runs.files import EVENT_FILE


class RunLog:
    """Passes events on and keeps them in events.jsonl.

    Where an earlier run's log is, nothing of that run is touched before `begin`: a run that is refused at the start
    leaves the directory as it was.
    """

    def __init__(self, folder: Path, *, append: bool, emit: EventListener) -> None:
        self._folder = folder
        self._append = append
        self._emit = emit
        self._early: list[Event] = []
        self._log = None if (folder / EVENT_FILE).exists() else EventLog(folder, append=append)

    def emit(self, event: Event) -> None:
        """Write the event to the file and pass it on to the listener."""
        if self._log is None:
            self._early.append(event)
        else:
            self._log.emit(event)
        self._emit(event)

    def begin(self) -> None:
        """Replace the log of an earlier run: from here on the directory belongs to this one."""
        if self._log is None:
            self._log = EventLog(self._folder, append=self._append)
            for event in self._early:
                self._log.emit(event)

    def end_with(self, event: Event) -> None:
        """Write the last line of a run that failed; the listener does not get it."""
        if self._log is not None:
            self._log.emit(event)

    def close(self) -> None:
        """Close the file."""
        if self._log is not None:
            self._log.close()
