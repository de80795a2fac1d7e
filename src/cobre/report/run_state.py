"""Whether a run is whole, goes on, failed or was interrupted."""

from enum import StrEnum
from pathlib import Path

from cobre.io.lock_file import LastSign, is_alive
from cobre.report.events import EventLog

SUMMARY = "summary.json"


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
    host = (log.last("run_started") or {}).get("host")
    sign = LastSign(host if isinstance(host, str) else None, log.last_time or 0.0)
    return RunState.RUNNING if is_alive(folder, sign) else RunState.INTERRUPTED
