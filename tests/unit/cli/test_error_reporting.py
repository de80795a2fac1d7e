"""Error messages for users, and exit codes."""

import signal

import click
import pytest

from cobre.cli.error_reporting import mark_errors_of_rank, report_errors
from cobre.comm import AbortedError, TerminatedError
from cobre.comm.backends.local import LocalCommunicator
from cobre.comm.exit_report import ExitReport, attach_exit_report
from cobre.comm.launch import WorkerError
from cobre.io.findings import InvalidCaseError


class SecondRank(LocalCommunicator):
    """A rank that claims to be the second one."""

    rank = 1


def error_output(error, end):
    attach_exit_report(error, end)
    return error


ENDS = [
    (KeyboardInterrupt(), 130, "cobre: interrupted\n"),
    (TerminatedError(), 143, "cobre: terminated\n"),
    (WorkerError(1, 130, KeyboardInterrupt()), 130, "cobre: interrupted\n"),
    (WorkerError(1, 143, TerminatedError()), 143, "cobre: terminated\n"),
    (WorkerError(1, -signal.SIGINT), 130, "cobre: interrupted\n"),
    (WorkerError(1, -signal.SIGTERM), 143, "cobre: terminated\n"),
    (WorkerError(1, -signal.SIGKILL, message="rank 1 was killed"), 6, "cobre: rank 1 was killed\n"),
    (WorkerError(1, 1, InvalidCaseError("here", ())), 3, "cobre: here"),
    (InvalidCaseError("here", ()), 3, "cobre: here"),
    (error_output(AbortedError("check_failures", 0, "x"), ExitReport("empty", 3, "rank 2")), 3, "rank 2: empty\n"),
    (error_output(AbortedError("check_failures", 0, "x"), ExitReport("", 3, is_agreed=True)), 3, ""),
]


@pytest.mark.parametrize(("error", "code", "words"), ENDS, ids=lambda value: str(value)[:30])
def test_each_error_has_its_message_and_exit_code(capsys, error, code, words):
    with pytest.raises(SystemExit) as ended, report_errors():
        raise error
    said = capsys.readouterr().err
    assert ended.value.code == code
    assert said.startswith(words) and said.count("\n") >= bool(words) and bool(said) is bool(words)


def test_unexpected_errors_show_their_traceback():
    with pytest.raises(LookupError), report_errors():
        raise LookupError("ours")


@pytest.mark.parametrize(("comm", "origin"), [(LocalCommunicator, ""), (SecondRank, "rank 1 (host ")])
def test_message_names_failed_rank(capsys, comm, origin):
    with pytest.raises(SystemExit) as ended, report_errors(), mark_errors_of_rank(comm()):
        raise click.UsageError("no such thing")
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert said.startswith(f"{origin}") and "Error: no such thing" in said


def test_unexpected_errors_are_not_marked_with_a_rank():
    with pytest.raises(LookupError), report_errors(), mark_errors_of_rank(SecondRank()):
        raise LookupError("ours")
