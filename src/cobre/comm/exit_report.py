"""How an error ends a process: its exit code and, for errors that a user can act on, a message instead of a traceback.

A program attaches the report to the exception before it leaves the `with` block of its communicator:

    attach_exit_report(error, ExitReport("cobre: case.json: no such file", 2))

On mpi, where a rank cannot inform the others of a failure, one rank then prints the report for all, and the job ends
with its exit code. An exception without a report is treated as a bug: its traceback is printed.
"""

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cobre.comm.errors import TerminatedError

FAILED = 1
INTERRUPTED = 128 + signal.SIGINT  # as shells report a process that a signal ended
TERMINATED = 128 + signal.SIGTERM
_ATTRIBUTE = "_cobre_exit_report"


@dataclass(frozen=True, slots=True)
class ExitReport:
    """A message for the user, and the exit code of the process or job.

    origin: the rank that the message comes from ("rank 2"), if another one prints it; else empty.
    is_agreed: all ranks have exchanged their reports and end with this one. Rank 0 prints it; on the others the message
    is empty. details: of the error, for programs (`CobreError.details`).
    """

    message: str
    exit_code: int
    origin: str = ""
    is_agreed: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The message, prefixed with its origin; empty if there is nothing to print."""
        return f"{self.origin}: {self.message}" if self.origin and self.message else self.message


def attach_exit_report(error: BaseException, report: ExitReport) -> None:
    """Make this error end its process, or its job, with this report; replaces an earlier one."""
    setattr(error, _ATTRIBUTE, report)


def exit_report_of(error: BaseException | None) -> ExitReport | None:
    """Return the report that is attached to an error; None if its traceback should be printed instead."""
    report = getattr(error, _ATTRIBUTE, None)
    return report if isinstance(report, ExitReport) else None


def exit_code_for(error: BaseException | None) -> int:
    """Return the exit code of a process or job that this error ended, as a shell would report it; never 0."""
    if isinstance(error, TerminatedError):
        return TERMINATED
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, SystemExit) and isinstance(error.code, int):
        return error.code or FAILED
    return FAILED
