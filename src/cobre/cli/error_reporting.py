"""Errors as a user sees them: a few lines on standard error, and an exit code for the kind of error."""

import io
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NoReturn

import click

from cobre.cli.setting_options import given_options
from cobre.cli.standard_streams import as_error, echo, echo_json
from cobre.errors import CobreError, MissingLibraryError, error_details

if TYPE_CHECKING:
    from cobre.comm import Backend
    from cobre.comm.exit_report import ExitReport
    from cobre.comm.launch import WorkerError


# Exit codes of `cobre`: one for each kind of error.


class ExitCode(IntEnum):
    """Exit codes of `cobre`; 0 is success and 2 a wrong command line, as usual."""

    SUCCESS = 0
    UNEXPECTED = 1
    USAGE = 2
    INVALID_CASE = 3
    UNSOLVABLE = 4  # an LP is infeasible, unbounded or beyond the solver
    OUTPUT = 5  # results, or the answer that a command prints, cannot be written
    WORKER = 6  # a worker raised, was killed or got lost
    POLICY = 7  # a policy file is damaged or belongs to another study
    RESULTS = 8  # nothing usable: results missing or incomplete, no iteration in the time limit, or not verified
    MISSING_EXTRA = 9  # the command needs a part of Cobre that is not installed
    INTERRUPTED = 128 + signal.SIGINT  # Ctrl-C; the policy is kept if training ended in order
    TERMINATED = 128 + signal.SIGTERM  # SIGTERM; likewise


DIFFERENT = 1
"""`cobre compare` and `cobre verify`: the results differ, as `cmp` has it. Other errors have codes of their own."""


# Exit codes of a worker that a signal ended: by default action while it started, or after it had handled it.
_BY_SIGNAL = {
    -signal.SIGINT: ExitCode.INTERRUPTED,
    ExitCode.INTERRUPTED: ExitCode.INTERRUPTED,
    -signal.SIGTERM: ExitCode.TERMINATED,
    ExitCode.TERMINATED: ExitCode.TERMINATED,
}

RESUME = "start it again; --resume continues from the last checkpoint, if there is one"
STOPPED_DETAILS = (
    {"kind": "KeyboardInterrupt", "remedy": RESUME},
    {"kind": "TerminatedError", "remedy": RESUME},
)
"""For programs: of Ctrl-C, and of SIGTERM."""


@contextmanager
def report_errors() -> Iterator[None]:
    """Turn the errors that a user can act on into messages; anything else is our fault and is shown whole."""
    from cobre.comm.exit_report import exit_report_of

    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        report = exit_report_of(error) or exit_report_for(error)
        if report is None:
            raise
        if report.text:
            echo(report.text, err=True)
            _print_json_error(report.text, report.exit_code, report.details)
        sys.exit(report.exit_code)


@contextmanager
def mark_errors_of_rank(comm: "Backend") -> Iterator[None]:
    """Attach the user's message to an error of a launched rank, so that the job ends with it.

    `report_errors` prints it, or the backend that has to end the other ranks does.
    """
    from cobre.comm.exit_report import attach_exit_report, exit_report_of

    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        if exit_report_of(error) is None and (report := exit_report_for(error)) is not None:
            origin = f"rank {comm.rank} (host {socket.gethostname()})" if comm.rank else ""
            attach_exit_report(error, replace(report, origin=origin))
        raise


def report_with_other_ranks(error: click.ClickException) -> None:
    """Report a wrong command line once where mpiexec started all ranks with it; return outside of MPI."""
    from cobre.comm import BackendError, create_communicator
    from cobre.study.placement import choose_placement

    try:
        placement = choose_placement()
        comm = create_communicator(placement.backend) if placement.is_joined and placement.backend == "mpi" else None
    except BackendError:
        return
    if comm is not None:
        with report_errors(), comm, mark_errors_of_rank(comm):
            raise error


def exit_report_for(error: BaseException) -> "ExitReport | None":
    """Return the message and the exit code of an error; None for one that a user can do nothing about."""
    from cobre.comm.exit_report import ExitReport
    from cobre.comm.launch import WorkerError

    if isinstance(error, KeyboardInterrupt):
        return _signal_exit_report(_signal_code(error))
    if isinstance(error, WorkerError):
        return _worker_exit_report(error)
    if isinstance(error, click.ClickException):
        return ExitReport(_message_shown_by_click(error), error.exit_code, details=usage_details(error))
    code = exit_code_of(error)
    return None if code is None else ExitReport(f"cobre: {message_of(error)}", code, details=error_details(error))


def _worker_exit_report(error: "WorkerError") -> "ExitReport":
    from cobre.comm.exit_report import ExitReport

    if isinstance(error.inner, KeyboardInterrupt):
        return _signal_exit_report(_signal_code(error.inner))
    if error.exit_code in _BY_SIGNAL:
        return _signal_exit_report(_BY_SIGNAL[error.exit_code])
    code = exit_code_of(error.inner)
    if code is None:
        return ExitReport(f"cobre: {error}", ExitCode.WORKER, details=error.details())
    return ExitReport(f"cobre: {message_of(error.inner)}", code, details=error_details(error.inner))


def _signal_code(error: KeyboardInterrupt) -> ExitCode:
    from cobre.comm import TerminatedError

    return ExitCode.TERMINATED if isinstance(error, TerminatedError) else ExitCode.INTERRUPTED


def _signal_exit_report(code: ExitCode) -> "ExitReport":
    from cobre.comm.exit_report import ExitReport

    is_terminated = code is ExitCode.TERMINATED
    return ExitReport(
        "cobre: terminated" if is_terminated else "cobre: interrupted", code, details=STOPPED_DETAILS[is_terminated]
    )


def usage_details(error: click.ClickException) -> dict[str, Any]:
    """Return the facts for programs about a wrong command line: those of its cause, if that is an error of ours."""
    if isinstance(error.__cause__, CobreError):
        return error.__cause__.details()
    context = getattr(error, "ctx", None)
    command = "cobre" if context is None else context.command_path
    return {"kind": "UsageError", "remedy": f"correct the command line; `{command} --help` lists its options"}


def _message_shown_by_click(error: click.ClickException) -> str:
    text = io.StringIO()
    error.show(text)
    return text.getvalue().rstrip("\n")


def exit_code_of(error: BaseException | None) -> ExitCode | None:
    """Return the exit code for an error that a user can act on; None for any other."""
    if getattr(error, "library", ""):  # a backend whose library is not installed
        return ExitCode.MISSING_EXTRA
    return next((code for kind, code in _kinds() if isinstance(error, kind)), None)


def _kinds() -> tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], ExitCode], ...]:
    from cobre.bridge.environment import DeckNotConvertedError, NoBridgeError
    from cobre.comm import BackendError, CommError
    from cobre.export.run_tables import ExportError
    from cobre.io.case_folder.new_cases import UnknownTemplateError
    from cobre.io.findings import InvalidCaseError
    from cobre.io.policies.policy_file import PolicyFileError
    from cobre.io.storage.atomic import WriteError
    from cobre.policy.store import PolicyMismatchError
    from cobre.runs.content import IncompleteRunError
    from cobre.runs.events import NothingToFollowError
    from cobre.runs.explanation import NothingToExplainError
    from cobre.sddp.lp.failure import StageFailedError
    from cobre.sddp.problem.boundary import BoundaryMismatchError
    from cobre.sddp.upper_bounds.find import BoundError
    from cobre.stochastic import NoiseModelError
    from cobre.study.bound import CaseChangedError, NothingToBoundError
    from cobre.study.checkpoints import CheckpointError
    from cobre.study.output_directory import OutputHoldsRunError, OutputInUseError, OutputIsCaseError
    from cobre.study.preparation.fingerprint import RankMismatchError
    from cobre.study.stop_request import NoIterationError
    from cobre.study.verification import NotVerifiedError

    return (
        ((InvalidCaseError, NoiseModelError, DeckNotConvertedError, BoundError), ExitCode.INVALID_CASE),
        (StageFailedError, ExitCode.UNSOLVABLE),
        ((WriteError, OutputInUseError, OutputHoldsRunError, OutputIsCaseError), ExitCode.OUTPUT),
        (
            (PolicyFileError, PolicyMismatchError, CaseChangedError, CheckpointError, BoundaryMismatchError),
            ExitCode.POLICY,
        ),
        ((RankMismatchError, CommError), ExitCode.WORKER),
        ((NoBridgeError, MissingLibraryError), ExitCode.MISSING_EXTRA),
        ((BackendError, UnknownTemplateError), ExitCode.USAGE),
        (
            (
                IncompleteRunError,
                ExportError,
                NothingToBoundError,
                NothingToFollowError,
                NothingToExplainError,
                NoIterationError,
                NotVerifiedError,
            ),
            ExitCode.RESULTS,
        ),
    )


def message_of(error: BaseException | None) -> str:
    """Return the message of an error, and where to learn more."""
    from cobre.io.findings import InvalidCaseError
    from cobre.wording import as_argument

    saved = getattr(error, "saved", None)
    if isinstance(error, InvalidCaseError):
        return error.text(given_options())
    return (
        str(error)
        if saved is None
        else f"{error}\n`cobre explain {as_argument(saved)}` shows which limits contradict each other."
    )


def _print_json_error(words: str, exit_code: int, details: Mapping[str, Any] | None = None) -> None:
    context = click.get_current_context(silent=True)
    if context is not None and context.params.get("as_json"):
        echo_json(as_error(words, exit_code, details))


def fail(message: str, code: ExitCode) -> NoReturn:
    """Print an error message and exit with a code."""
    echo(f"cobre: {message}", err=True)
    _print_json_error(message, code)
    sys.exit(code)
