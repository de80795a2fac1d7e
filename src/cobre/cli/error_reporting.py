"""Errors for users: a few lines on standard error, and an exit code for each kind of error."""

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

from cobre.cli.setting_options import options_by_setting
from cobre.cli.standard_streams import as_error, echo, echo_json
from cobre.errors import CobreError, MissingLibraryError, error_details
from cobre.versions import explain_import_error

if TYPE_CHECKING:
    from cobre.comm import Backend
    from cobre.comm.exit_report import ExitReport
    from cobre.comm.launch import WorkerError


class ExitCode(IntEnum):
    """Exit codes of `cobre`; 0 is success and 2 a wrong command line, as usual."""

    SUCCESS = 0
    UNEXPECTED = 1
    USAGE = 2
    INVALID_CASE = 3
    UNSOLVABLE = 4  # an LP is infeasible, unbounded or beyond the solver
    OUTPUT = 5  # results, or the answer that a command prints, cannot be written
    WORKER = 6  # a worker raised, was killed or was lost
    POLICY = 7  # a policy file is damaged or belongs to another study
    RESULTS = 8  # nothing usable: results missing or incomplete, no iteration in the time limit, or not verified
    MISSING_EXTRA = 9  # the command needs a part of Cobre that is not installed
    INTERRUPTED = 128 + signal.SIGINT  # Ctrl-C; the policy is kept if training stopped after an iteration
    TERMINATED = 128 + signal.SIGTERM  # SIGTERM; likewise


DIFFERENT = 1
"""Exit code of `cobre compare` and `cobre verify` for results that differ, as for `cmp`."""


# By exit code of a worker that a signal ended: before it had installed its handlers, or after it had handled it.
_BY_SIGNAL = {
    -signal.SIGINT: ExitCode.INTERRUPTED,
    ExitCode.INTERRUPTED: ExitCode.INTERRUPTED,
    -signal.SIGTERM: ExitCode.TERMINATED,
    ExitCode.TERMINATED: ExitCode.TERMINATED,
}

RESUME = "start it again; --resume continues from the last checkpoint, if there is one"
STOPPED_DETAILS = {
    ExitCode.INTERRUPTED: {"kind": "KeyboardInterrupt", "remedy": RESUME},
    ExitCode.TERMINATED: {"kind": "TerminatedError", "remedy": RESUME},
}
"""Details of Ctrl-C and of SIGTERM in the output of `--json`."""


@contextmanager
def report_errors() -> Iterator[None]:
    """Print errors that a user can act on as messages, and exit; other errors pass, with their traceback."""
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
    """Attach the message and exit code for users to an error of a launched rank.

    `report_errors` prints the message, or the backend does if it has to end the other ranks.
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
    """Report a wrong command line only once if mpiexec started all ranks with it; return outside of MPI."""
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
    """Return the message and the exit code of an error; None if users cannot act on it."""
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
    if code is None and (stale := explain_import_error(error.inner)) is not None:
        return ExitReport(f"cobre: {stale}", ExitCode.WORKER, details=stale.details())
    if code is None:
        return ExitReport(f"cobre: {error}", ExitCode.WORKER, details=error.details())
    return ExitReport(f"cobre: {message_of(error.inner)}", code, details=error_details(error.inner))


def _signal_code(error: KeyboardInterrupt) -> ExitCode:
    from cobre.comm import TerminatedError

    return ExitCode.TERMINATED if isinstance(error, TerminatedError) else ExitCode.INTERRUPTED


def _signal_exit_report(code: ExitCode) -> "ExitReport":
    from cobre.comm.exit_report import ExitReport

    return ExitReport(f"cobre: {code.name.lower()}", code, details=STOPPED_DETAILS[code])


def usage_details(error: click.ClickException) -> dict[str, Any]:
    """Return the details of a wrong command line: those of its cause, if that is a `CobreError`."""
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
    """Return the exit code of an error; None if users cannot act on it."""
    if getattr(error, "library", ""):  # a backend whose library is not installed
        return ExitCode.MISSING_EXTRA
    return next((code for kind, code in exit_codes() if isinstance(error, kind)), None)


def exit_codes() -> tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], ExitCode], ...]:
    """Return kinds of errors with their exit codes; the first kind that an error belongs to counts."""
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
    from cobre.study.output.output_lock import OutputInUseError
    from cobre.study.output.previous_run import OutputHoldsRunError, OutputIsCaseError
    from cobre.study.preparation.fingerprint import RankMismatchError
    from cobre.study.training.checkpoints import CheckpointError
    from cobre.study.training.stop_request import NoIterationError
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
    """Return the message of an error; for a saved LP with the command that explains it."""
    from cobre.io.findings import InvalidCaseError
    from cobre.text import as_argument

    saved_lp = getattr(error, "saved", None)
    if isinstance(error, InvalidCaseError):
        return error.text(options_by_setting())
    return (
        str(error)
        if saved_lp is None
        else f"{error}\n`cobre explain {as_argument(saved_lp)}` shows which limits contradict each other."
    )


def _print_json_error(message: str, exit_code: int, details: Mapping[str, Any] | None = None) -> None:
    context = click.get_current_context(silent=True)
    if context is not None and context.params.get("as_json"):
        echo_json(as_error(message, exit_code, details))


def fail(message: str, code: ExitCode) -> NoReturn:
    """Print an error message and exit with a code."""
    echo(f"cobre: {message}", err=True)
    _print_json_error(message, code)
    sys.exit(code)
