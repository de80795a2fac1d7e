"""The state of the run in an output directory: running, or how it ended, from its lock, its log and its summary.

Reports, live views, the assistant server and commands share this rule. A run holds a lock on run.lock while it writes;
the system releases it however the run ends.
"""

import fcntl
import os
import socket
import time
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from cobre.core.file_names import LOCK_FILE, SUMMARY_FILE
from cobre.io.storage.confined import open_untrusted
from cobre.io.storage.stored_json import read_stored_object
from cobre.records import dataclass

FRESH_S = 600.0
"""A run on another machine counts as running while its last event is younger than this."""

LONG_GAPS = 3.0
"""With long iterations the limit is this multiple of the longest recent time between two events."""


@dataclass(frozen=True, slots=True)
class LastActivity:
    """The last activity in the log of a run: host, time of the last event, longest recent time between two events."""

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
    """Return whether a run holds the lock; a killed process leaves the file unlocked. Needs read permission only."""
    try:
        with os.fdopen(open_untrusted(folder / LOCK_FILE), "rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


class RunState(StrEnum):
    """The state of the run in an output directory; the values are those that programs read."""

    RUNNING = "running"
    FINISHED = "finished"
    STOPPED = "stopped"  # by a signal, a time limit or its caller; it can be resumed
    FAILED = "failed"
    KILLED = "killed"  # no end event

    @property
    def words(self) -> str:
        """The human-readable state; the cause of a run without an end event is unknown."""
        return "ended unexpectedly" if self is RunState.KILLED else self.value


def end_state(
    folder: Path, *, has_failed: bool, has_finished: bool = False, is_interrupted: bool = False
) -> RunState | None:
    """Return how a run ended, by its log and its directory; None if it has not ended.

    The summary is removed when a run begins and written when it ends: where there is one, the run has ended, even if
    its log is damaged or missing. is_interrupted: ended from outside, by the log; the summary may have it as well.
    """
    if has_failed:
        return RunState.FAILED
    if has_finished or (folder / SUMMARY_FILE).exists():
        return RunState.STOPPED if is_interrupted or _is_interrupted(folder) else RunState.FINISHED
    return None


def _is_interrupted(folder: Path) -> bool:
    with suppress(OSError, ValueError):  # no summary yet, or a damaged one: reported when all of it is read
        return bool(read_stored_object(folder / SUMMARY_FILE).get("is_interrupted"))
    return False


def state_of(
    folder: Path, activity: LastActivity, *, has_failed: bool, has_finished: bool = False, is_interrupted: bool = False
) -> RunState:
    """Return the state of a run; without an end event it is running or was killed, by its lock and last event."""
    end = end_state(folder, has_failed=has_failed, has_finished=has_finished, is_interrupted=is_interrupted)
    return end or (RunState.RUNNING if is_alive(folder, activity) else RunState.KILLED)
