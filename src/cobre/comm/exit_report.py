"""How an error that a person can act on is reported: a message and an exit code, without a traceback.

A program attaches the report to the exception before it leaves the `with` block of its communicator:

    attach_exit_report(error, ExitReport("cobre: case.json: no such file", 2))

A backend that cannot tell the other ranks of a failure otherwise (mpi) then lets one rank print it for all, and gives
the job its exit code. An exception without a report is a defect: its traceback is shown whole.
"""

from dataclasses import dataclass

_ATTRIBUTE = "_cobre_exit_report"


@dataclass(frozen=True, slots=True)
class ExitReport:
    """A message for people, and the exit code of the process or job.

    origin: the rank that the message comes from ("rank 2"), where it is not the one that prints it; else empty.
    is_agreed: all ranks have exchanged their reports and end by this one. Rank 0 prints it; on the others the message
    is empty.
    """

    message: str
    exit_code: int
    origin: str = ""
    is_agreed: bool = False

    @property
    def text(self) -> str:
        """The message with its origin in front; empty where there is nothing to print."""
        return f"{self.origin}: {self.message}" if self.origin and self.message else self.message


def attach_exit_report(error: BaseException, report: ExitReport) -> None:
    """Let this error end its process, or its job, with this report; replaces an earlier one."""
    setattr(error, _ATTRIBUTE, report)


def exit_report_of(error: BaseException | None) -> ExitReport | None:
    """The report that was attached; None: nobody expected this error, and its traceback is wanted."""
    report = getattr(error, _ATTRIBUTE, None)
    return report if isinstance(report, ExitReport) else None
