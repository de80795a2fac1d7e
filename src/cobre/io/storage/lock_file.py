"""run.lock: held for as long as a run writes to its output directory, however the run ends."""

import fcntl
import os
import socket
import time
from dataclasses import dataclass
from pathlib import Path

from cobre.io.file_names import LOCK_FILE
from cobre.io.storage.untrusted_file import open_untrusted

FRESH_S = 600.0
"""A run on another machine whose last event is younger than this counts as running."""
LONG_GAPS = 3.0
"""Where iterations take long, that age is this multiple of the longest recent time between two events."""


@dataclass(frozen=True, slots=True)
class LastActivity:
    """The last activity of a run by its log: host, time of the last event, longest usual time between two."""

    host: str | None
    last_time: float
    longest_gap_s: float = 0.0

    @property
    def is_elsewhere(self) -> bool:
        """Whether its processes, and its lock, cannot be seen from here."""
        return self.host is not None and self.host != socket.gethostname()

    def is_fresh(self, now: float) -> bool:
        """Whether the run may still be alive by its last event; clocks of two machines may differ."""
        return abs(now - self.last_time) < max(FRESH_S, LONG_GAPS * self.longest_gap_s)


def is_alive(folder: Path, activity: LastActivity, now: float | None = None) -> bool:
    """Whether the run in a directory goes on.

    The lock tells of runs on this machine. A directory that is copied from another one, or lies on a file system that
    does not share locks, has none: there the age of the last event decides.
    """
    if is_in_use(folder):
        return True
    return activity.is_elsewhere and activity.is_fresh(time.time() if now is None else now)


def is_in_use(folder: Path) -> bool:
    """Whether a run holds the directory right now; a file that nobody holds is what a killed process left.

    Asks for no right to write: whoever may read results may also know whether they are still being made.
    """
    try:
        with os.fdopen(open_untrusted(folder / LOCK_FILE), "rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
