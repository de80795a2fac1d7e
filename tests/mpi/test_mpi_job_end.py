"""On MPI a failed rank ends the job: with a failing exit code, in time, with its reason, without leftovers."""

from pathlib import Path

import pytest

PROGRAM = str(Path(__file__).with_name("rank_program.py"))
SIZE = 3
INTERRUPTED = 130


@pytest.mark.parametrize("scenario", ["fail_inside", "fail_outside"])
@pytest.mark.parametrize(
    "action,words",
    [
        ("raise_error", ["Traceback", "ValueError: no more water", "rank 1"]),
        ("abort", ["no more water", "rank 1"]),
        ("raise_error_unprinted", []),
        ("kill", []),
        ("terminate", []),
        ("exit_with_3", ["rank 1"]),
        ("leave", ["for rank 1, which left after call #1", "allreduce call #2"]),
        ("close", ["for rank 1, which left after call #1", "allreduce call #2"]),
    ],
)
def test_rank_that_fails_ends_the_job(mpi, scenario, action, words):
    done = mpi.run(SIZE, PROGRAM, scenario, action)
    assert done.code != 0
    for word in words:
        assert word in done.output


def test_reason_is_printed_once(mpi):
    done = mpi.run(SIZE, PROGRAM, "fail_inside", "raise_error")
    assert done.output.count("Traceback (most recent call last)") == 1
    assert done.output.count("cobre.comm: run stopped") == 1


def test_abort_does_not_overtake_the_reason(mpi, tmp_path):
    answer = tmp_path / "answer"
    done = mpi.run(SIZE, PROGRAM, "fail_inside", "raise_error_unread", environ={"ANSWER": str(answer)})
    assert answer.read_text() == "waits"
    assert done.code != 0
    assert "ValueError: no more water" in done.output
    assert "cobre.comm: run stopped" in done.output


def test_job_exits_with_code_of_failed_rank(mpi):
    assert mpi.run(SIZE, PROGRAM, "fail_inside", "exit_with_3").code == 3


def test_exit_report_of_one_rank_ends_the_job(mpi):
    done = mpi.run(SIZE, PROGRAM, "fail_inside", "raise_plain_error")
    assert done.code == 7
    assert done.output.count("rank 1: the lake is empty") == done.output.count("the lake is empty") == 1
    assert "Traceback" not in done.output and "no more water" not in done.output


@pytest.mark.parametrize(
    ("scenario", "words"),
    [("fail_together", "the lake is empty"), ("fail_before_check_failures", "rank 1: the lake is empty")],
)
def test_ranks_that_fail_together_exit_in_order_and_one_prints_the_report(mpi, scenario, words):
    done = mpi.run(SIZE, PROGRAM, scenario, "raise_plain_error")
    assert done.code == 7
    assert [line for line in done.output.splitlines() if "the lake" in line] == [words]
    assert "Traceback" not in done.output and "run stopped" not in done.output


def test_interrupt_during_wait_ends_job(mpi):
    done = mpi.run(SIZE, PROGRAM, "interrupted")
    assert done.code == INTERRUPTED
    assert "was interrupted in barrier call #1" in done.output


def test_mpi_errors_keep_their_code(mpi):
    done = mpi.run(2, PROGRAM, "mpi_error", environ={"COBRE_MPI_CHECKED": "0"})
    assert done.code != 0
    assert "MPI said True" in done.output


@pytest.mark.parametrize("scenario", ["orderly_exit", "no_close"])
@pytest.mark.parametrize("size", [1, 3])
def test_normal_exit_is_not_a_failure(mpi, scenario, size):
    done = mpi.run(size, PROGRAM, scenario)
    assert done.code == 0, done.output
    assert "run stopped" not in done.output


@pytest.mark.parametrize("action", ["raise_error", "exit_with_3"])
def test_world_of_one_fails_as_any_program(mpi, action):
    done = mpi.run(1, "-c", f"from cobre.comm import *; c = create_communicator(); c.barrier(); {SINGLE[action]}")
    assert done.code == (1 if action == "raise_error" else 3)
    assert "run stopped" not in done.output


SINGLE = {"raise_error": "raise ValueError", "exit_with_3": "raise SystemExit(3)"}
