"""run.lock: locked while a run writes to its output directory; the system releases it however the run ends."""

import fcntl
import os
import socket
import time
from pathlib import Path

from cobre.core.file_names import LOCK_FILE
from cobre.io.storage.confined import open_untrusted
from cobre.records import dataclass

FRESH_S = 600.0
"""Seconds: a run on another machine counts as running if its last event is younger than this."""
LONG_GAPS = 3.0
"""With long iterations, the limit is this multiple of the longest recent time between two events."""


@dataclass(frozen=True, slots=True)
class LastActivity:
    """The last activity of a run by its log: host, time of the last event, longest usual time between two."""

    host: str | None
    last_time: float
    longest_gap_s: float = 0.0

    @property
    def is_elsewhere(self) -> bool:
        """Whether the run is on another host, whose processes and locks are not visible here."""
        return self.host is not None and self.host != socket.gethostname()

    def is_fresh(self, now: float) -> bool:
        """Return whether the last event is recent (`now` in seconds since 1970); clocks of two machines may differ."""
        return abs(now - self.last_time) < max(FRESH_S, LONG_GAPS * self.longest_gap_s)


def is_alive(folder: Path, activity: LastActivity, now: float | None = None) -> bool:
    """Return whether the run of a directory is still running.

    The lock shows runs of this machine. For a directory copied from another machine, or on a file system without shared
    locks, the age of the last event decides.
    """
    if is_in_use(folder):
        return True
    return activity.is_elsewhere and activity.is_fresh(time.time() if now is None else now)


def is_in_use(folder: Path) -> bool:
    """Return whether a run holds the lock; a lock file without a lock was left by a killed process.

    Needs only permission to read.
    """
    try:
        with os.fdopen(open_untrusted(folder / LOCK_FILE), "rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
