"""`mpiexec cobre run`: a user's mistake is reported once, with the message and exit code of any other run."""

import fcntl
import json
import shutil
from pathlib import Path

import environments
import pytest

PROGRAM = str(Path(__file__).with_name("study_program.py"))
CASE = environments.ROOT / "examples" / "two_reservoirs"
NOBODY = -1


@pytest.fixture
def incomplete_case(tmp_path):
    """Make a case without its stages."""
    target = shutil.copytree(CASE, tmp_path / "damaged", ignore=shutil.ignore_patterns("output"))
    (target / "stages.json").unlink()
    return target


def run(mpi, size, case, output, *flags, odd=(NOBODY, ""), **environ):
    return mpi.run(size, PROGRAM, *map(str, odd), str(case), "--output", str(output), *flags, environ=environ)


def assert_printed_once(done, code, words):
    """Check that all ranks left in order: no traceback, and the job was not aborted."""
    assert (done.code, done.output.count(words)) == (code, 1), done.output
    assert "Traceback" not in done.output
    assert "run stopped" not in done.output


@pytest.mark.parametrize("size", [1, 2, 4])
def test_invalid_case_is_reported_once(mpi, tmp_path, incomplete_case, size):
    done = run(mpi, size, incomplete_case, tmp_path / "output")
    assert_printed_once(done, 3, "stages.json: the file is missing")
    assert "(host " not in done.output


@pytest.mark.parametrize(
    ("flags", "words"),
    [((), "Directory"), (("--iterations", "0"), "0 is not in the range"), (("--backend", "pigeon"), "'pigeon'")],
)
def test_wrong_command_line_is_reported_once(mpi, tmp_path, flags, words):
    assert_printed_once(run(mpi, 2, CASE if flags else tmp_path / "nowhere", tmp_path / "output", *flags), 2, words)


def test_output_directory_in_use_is_reported_once(mpi, tmp_path):
    output = tmp_path / "output"
    output.mkdir()
    with (output / "run.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert_printed_once(run(mpi, 2, CASE, output), 5, "is used by a running study")


def test_nothing_to_resume_is_reported_once(mpi, tmp_path):
    assert_printed_once(run(mpi, 2, CASE, tmp_path / "output", "--resume"), 7, "there is no checkpoint in")


def test_invalid_case_of_rank_0_is_reported_by_it(mpi, tmp_path, incomplete_case):
    """One rank of each node reads the case: on one node that is rank 0."""
    assert_printed_by(0, run(mpi, 4, CASE, tmp_path / "output", odd=(0, incomplete_case)))


@pytest.mark.parametrize("odd", [1, 3])
def test_invalid_case_on_one_of_several_nodes_is_reported_by_its_rank(mpich, tmp_path, incomplete_case, odd):
    done = run(mpich, 4, CASE, tmp_path / "output", odd=(odd, incomplete_case), MPIR_CVAR_NUM_CLIQUES="4")
    assert_printed_by(odd, done)


def assert_printed_by(rank, done):
    """Check the message only: where others are slow to read their case, the job is aborted."""
    assert (done.code, done.output.count("stages.json: the file is missing")) == (3, 1), done.output
    assert "Traceback" not in done.output
    assert (f"rank {rank} (host " in done.output) is (rank != 0)


def test_directory_missing_on_one_rank_is_reported(mpi, tmp_path):
    done = run(mpi, 2, CASE, tmp_path / "output", odd=(1, tmp_path / "nowhere"))
    assert (done.code, done.output.count("nowhere' does not exist")) == (2, 1), done.output
    assert "rank 1 (host " in done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize("rank", [0, 1])
def test_sigterm_to_one_rank_stops_all_after_the_iteration(mpi, tmp_path, rank):
    output = tmp_path / "output"
    done = run(mpi, 2, CASE, output, "--iterations", "100000", TERMINATE=str(rank))
    assert done.code == 143, done.output
    assert json.loads((output / "summary.json").read_text())["stop_kind"] == "terminated"
    assert "Traceback" not in done.output
