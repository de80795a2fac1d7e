"""Whether a run is whole, goes on, failed or was interrupted."""

import fcntl
from enum import StrEnum
from pathlib import Path

from cobre.report.events import EventLog

SUMMARY = "summary.json"
LOCK = "run.lock"


class RunState(StrEnum):
    """How things stood when the report was made."""

    COMPLETE = "complete"
    RUNNING = "running"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


def state_of(folder: Path, log: EventLog) -> RunState:
    """The summary is removed when a run begins and written when it ends: where there is one, it is the result."""
    if (folder / SUMMARY).exists():
        return RunState.COMPLETE
    if log.last("run_failed") is not None:
        return RunState.FAILED
    return RunState.RUNNING if _is_held(folder / LOCK) else RunState.INTERRUPTED


def _is_held(path: Path) -> bool:
    """A run holds its lock; a file that nobody holds is what is left of a process that was killed."""
    try:
        with path.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
