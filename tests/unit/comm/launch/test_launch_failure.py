"""Failures of ranks as sent to the parent: tracebacks, consequences, exceptions that cannot be pickled."""

import pickle
import runpy

import pytest

from cobre.comm import (
    AbortedError,
    CommunicatorBrokenError,
    MismatchedCallError,
    PeerLostError,
    PeerTimeoutError,
)
from cobre.comm.launch import WorkerError, describe_failure, original_exception
from cobre.comm.launch.payload import FunctionTask, dump_or_none
from cobre.comm.launch.rank_main import call_function


def raised_error(function):
    try:
        function()
    except BaseException as error:  # noqa: BLE001 - a SystemExit is as good
        return error
    raise AssertionError("nothing was raised")


def raise_key_error(comm):
    raise KeyError("gauge 7")


def test_traceback_starts_at_the_users_function(monkeypatch):
    monkeypatch.setenv("COBRE_COMM_BACKEND", "local")
    error = raised_error(lambda: call_function(FunctionTask(raise_key_error)))
    failure = describe_failure(error.with_traceback(error.__traceback__.tb_next.tb_next))
    lines = failure.traceback_text.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1].endswith("in raise_key_error")
    assert failure.traceback_text.endswith("KeyError: 'gauge 7'")
    assert failure.summary == "KeyError: 'gauge 7'"


def test_traceback_of_a_script_starts_at_the_script(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("1 / 0\n")
    error = raised_error(lambda: runpy.run_path(str(script)))
    trace = error.__traceback__
    while trace.tb_frame.f_code.co_filename != "<frozen runpy>":
        trace = trace.tb_next
    text = describe_failure(error.with_traceback(trace)).traceback_text
    assert f'Traceback (most recent call last):\n  File "{script}", line 1' in text
    assert "runpy" not in text


@pytest.mark.parametrize("kind", [PeerLostError, AbortedError, PeerTimeoutError])
def test_errors_about_another_rank_are_consequences(kind):
    assert describe_failure(kind("barrier", 0, "rank 3 is gone")).is_consequence


def test_broken_communicator_is_a_consequence():
    assert describe_failure(CommunicatorBrokenError("broke earlier")).is_consequence


def test_error_caused_by_a_consequence_is_a_consequence():
    def raise_with_cause():
        try:
            raise AbortedError("barrier", 0, "rank 1 gave up")
        except AbortedError as error:
            raise RuntimeError("training failed") from error

    def raise_from_none():
        try:
            raise AbortedError("barrier", 0, "rank 1 gave up")
        except AbortedError:
            raise SystemExit(1) from None

    assert describe_failure(raised_error(raise_with_cause)).is_consequence
    assert describe_failure(raised_error(raise_from_none)).is_consequence


@pytest.mark.parametrize("error", [ValueError("x"), MismatchedCallError("barrier", 0, "x"), KeyboardInterrupt()])
def test_unrelated_errors_are_primary(error):
    assert not describe_failure(error).is_consequence


def test_cyclic_chain_of_causes_ends():
    error = ValueError("x")
    other = ValueError("y")
    error.__cause__, other.__cause__ = other, error
    assert not describe_failure(error).is_consequence


def test_exception_that_cannot_be_unpickled_is_described():
    # Defined inside the test: pickle support for exceptions covers only classes that exist when it is installed.
    class TwoArgumentsError(Exception):
        """Can be pickled but not unpickled: __init__ takes two arguments, args has one."""

        def __init__(self, first, second):
            super().__init__(f"{first} and {second}")

    error = TwoArgumentsError(1, 2)
    failure = describe_failure(error)
    assert failure.exception is not None
    assert original_exception(failure) is None
    assert failure.summary.endswith("TwoArgumentsError: 1 and 2")


def test_exception_that_cannot_be_pickled_is_described():
    error = ValueError(x for x in ())
    assert dump_or_none(error) is None
    assert "generator" in describe_failure(error).summary


def test_worker_error_survives_pickling():
    error = WorkerError(2, -9, ValueError("x"), "rank 2 was killed")
    again = pickle.loads(pickle.dumps(error))
    assert (again.rank, again.exit_code, str(again)) == (2, -9, "rank 2 was killed")
    assert isinstance(again.inner, ValueError)
    assert str(WorkerError(1, 3)) == "rank 1 failed with exit code 3"
