"""The event stream of a run, read while it grows."""

import os
from pathlib import Path

from cobre.errors import CobreError
from cobre.io.storage.event_file import Event, events_in, whole_lines
from cobre.io.storage.untrusted_file import open_untrusted
from cobre.runs.files import EVENT_FILE, OUTPUT


class NothingToFollowError(CobreError):
    """A directory without the event log of a run."""


class EventFollower:
    """Reads only what has been written since the last time; a new run in the same directory is read from its start."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / EVENT_FILE
        self._inode = -1
        self._offset = 0
        self.has_restarted = False
        """Whether the last reading found another file than the one before."""
        self.damaged_lines = 0
        """How many whole lines so far are no events."""

    def check(self) -> None:
        """Raise NothingToFollowError when there is nothing to follow; the message says what is there instead."""
        folder = self._path.parent
        if not folder.exists():
            raise NothingToFollowError(f"{folder} does not exist: give the --output directory of a run")
        if not folder.is_dir():
            raise NothingToFollowError(f"{folder} is a file: give the --output directory of a run")
        if not os.path.lexists(self._path):
            hint = _hint(folder)
            raise NothingToFollowError(f"{folder} has no {EVENT_FILE}: it is not the --output of a run{hint}")
        if not self._path.is_file():
            raise NothingToFollowError(f"{self._path} is not a file: it was not written by `cobre run`")
        self._fresh()

    def read_new(self) -> list[Event]:
        """The events that are new; a line that is being written is left for the next time."""
        whole = whole_lines(self._fresh())
        self._offset += len(whole)
        found = events_in(whole)
        self.damaged_lines += sum(1 for line in whole.split(b"\n") if line.strip()) - len(found)
        return found

    def _fresh(self) -> bytes:
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
        """A run that is not resumed empties the file."""
        status = os.fstat(descriptor)
        self.has_restarted = self._inode != -1 and (status.st_ino != self._inode or status.st_size < self._offset)
        if self.has_restarted:
            self._offset = self.damaged_lines = 0
        self._inode = status.st_ino


def _hint(folder: Path) -> str:
    inner = folder / OUTPUT
    return f"; its subdirectory `{OUTPUT}` has one: {inner}" if (inner / EVENT_FILE).exists() else ""
