"""Failures of ranks: the run ends with one cause, the right exit code, and a checkpoint to resume from."""

import json
import os
import re
import secrets
import signal
import sys

import pytest
from click.testing import CliRunner
from demanding_case import write_demanding_case
from processes import run_python, start_python, wait_until_gone
from studies import (
    ENDLESS,
    LOCAL,
    QUICK_CASE,
    SHM_2,
    SLOW_CASE,
    TCP_2,
    References,
    checkpoints_in,
    children_of,
    end_of,
    events_of,
    must_run,
    ranks_of,
    run_study,
    small_copy,
    start_study,
    wait_for_checkpoint,
    wait_for_iteration,
)
from tcp_worlds import new_address

from cobre.cli.main import main

pytestmark = pytest.mark.long

EVERY_ITERATION = ("--checkpoint-every", "1")


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    return small_copy(SLOW_CASE, tmp_path_factory.mktemp("case"))


@pytest.fixture(scope="module")
def references(case, tmp_path_factory):
    return References(case, tmp_path_factory.mktemp("references"))


def check_resumable(case, output, references):
    """Assert that the newest checkpoint is valid, and leads to the bits of an undisturbed run."""
    target = int(checkpoints_in(output)[-1].stem.split("-")[1]) + 1
    assert must_run(case, output, *LOCAL, "--iterations", target, "--resume") == references.digest(target)


def run_with_fault(case, output, flags, harm, **environ):
    """Harm the ranks of a run after its first checkpoint; return exit code and stderr; assert that nothing is left."""
    process = start_study(case, output, *flags, *ENDLESS, *EVERY_ITERATION, **environ)
    wait_for_checkpoint(output, process)
    family = children_of(process.pid)
    harm(ranks_of(process))
    code, _, err = end_of(process)
    wait_until_gone(family)
    return code, err


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("flags", [SHM_2, TCP_2], ids=["shm", "tcp"])
def test_killed_rank_is_reported_and_run_can_be_resumed(tmp_path, case, references, flags, rank):
    output = tmp_path / "output"
    code, err = run_with_fault(case, output, flags, lambda ranks: os.kill(ranks[rank], signal.SIGKILL))
    assert code == 6
    assert f"Run stopped: rank {rank} (" in err
    assert "was killed by SIGKILL (signal 9): likely out of memory. Try fewer ranks." in err
    assert "1 other rank was healthy and has exited." in err
    assert not (output / "summary.json").exists()
    if rank == 1:
        (failed,) = events_of(output, "run_failed")
        assert "rank 1" in failed["error"]
    check_resumable(case, output, references)


@pytest.mark.parametrize(("flags", "variable"), [(SHM_2, "COBRE_SHM"), (TCP_2, "COBRE_TCP")], ids=["shm", "tcp"])
def test_frozen_rank_is_lost_after_timeout(tmp_path, case, references, flags, variable):
    output = tmp_path / "output"
    settings = {f"{variable}_TIMEOUT_SECS": "3"}
    code, err = run_with_fault(case, output, flags, lambda ranks: os.kill(ranks[1], signal.SIGSTOP), **settings)
    assert code == 6
    assert "rank 1" in err
    assert "3" in err
    check_resumable(case, output, references)


@pytest.mark.parametrize("flags", [SHM_2, TCP_2], ids=["shm", "tcp"])
def test_infeasible_stage_on_one_rank_ends_run(tmp_path, flags):
    case, output = write_demanding_case(tmp_path / "case"), tmp_path / "output"
    code, _, err = run_study(case, output, *flags)
    assert code == 4
    assert re.search(r"iteration 1, trial point \d+: the LP is infeasible", err), err
    assert "Traceback" not in err
    saved = list((output / "failures").iterdir())
    assert saved, "the LP was saved"
    assert not (output / "summary.json").exists()


def test_invalid_case_is_reported_once(tmp_path):
    case = small_copy(QUICK_CASE, tmp_path)
    (case / "stages.json").unlink()
    code, _, err = run_study(case, tmp_path / "output", *SHM_2)
    assert code == 3
    assert err.count("stages.json") == 1
    assert "Traceback" not in err


class TcpWorld:
    """Two `cobre run` processes that meet by `COBRE_TCP_*`, as in containers; each rank has its own case."""

    def __init__(self, tmp_path):
        self.settings = {
            "COBRE_TCP_COORDINATOR": new_address(),
            "COBRE_TCP_SIZE": "2",
            "COBRE_TCP_RANKS_PER_HOST": "1",  # otherwise one rank would read the case for both
            "COBRE_TCP_SECRET": secrets.token_hex(16),
            "COBRE_TCP_CONNECT_TIMEOUT_SECS": "60",
        }
        self.folder = tmp_path

    def start(self, rank, case, *flags, **more):
        return start_study(case, self.folder / f"output-{rank}", *flags, **self._environ(rank), **more)

    def start_program(self, rank, text, *arguments):
        return start_python("-c", text, *arguments, env={**os.environ, **self._environ(rank)})

    def _environ(self, rank):
        return {**self.settings, "COBRE_TCP_RANK": str(rank)}


def test_rank_with_another_case_is_rejected_at_start(tmp_path):
    world = TcpWorld(tmp_path)
    cases = [small_copy(QUICK_CASE, tmp_path / f"case-{seed}", tree_seed=seed) for seed in (1, 2)]
    ends = [end_of(process) for process in [world.start(rank, case) for rank, case in enumerate(cases)]]
    for code, _, err in ends:
        assert code == 6
        assert "rank 1 differs from rank 0: content of the case:" in err
        assert "Traceback" not in err
    assert not events_of(tmp_path / "output-0", "iteration")


def test_rank_of_another_version_is_rejected_at_start(tmp_path):
    world = TcpWorld(tmp_path)
    world.settings["COBRE_TCP_CONNECT_TIMEOUT_SECS"] = "20"  # so long rank 0 waits for a rank that fits
    other_version = (
        "import sys, cobre; cobre.__version__ = '9.9.9'; from cobre.cli.main import main; main(sys.argv[1:])"
    )
    first = world.start(0, QUICK_CASE)
    second = world.start_program(1, other_version, "run", QUICK_CASE, "-o", tmp_path / "output-1", "--no-report")
    for code, _, err in map(end_of, (first, second)):
        assert code != 0
        assert "9.9.9" in err
    assert not events_of(tmp_path / "output-0", "iteration")


def test_damaged_case_on_one_rank_ends_both(tmp_path):
    world = TcpWorld(tmp_path)
    damaged = small_copy(QUICK_CASE, tmp_path / "damaged")
    (damaged / "stages.json").write_text("{")
    first, second = [end_of(process) for process in (world.start(0, QUICK_CASE), world.start(1, damaged))]
    assert second[0] == 3 and second[2].startswith("rank 1 (host ") and "stages.json" in second[2]
    assert first[0] == 6 and "aborted by rank 1" in first[2] and "stages.json" in first[2]
    assert "Traceback" not in first[2] + second[2]


def test_damaged_case_on_all_ranks_is_reported_by_each(tmp_path):
    world = TcpWorld(tmp_path)
    damaged = small_copy(QUICK_CASE, tmp_path / "damaged")
    (damaged / "stages.json").write_text("{")
    for code, _, err in [end_of(process) for process in [world.start(rank, damaged) for rank in (0, 1)]]:
        assert code == 3
        assert "stages.json" in err and "Traceback" not in err


def test_output_directory_in_use_is_rejected(tmp_path, case):
    output = tmp_path / "output"
    process = start_study(case, output, *LOCAL, *ENDLESS)
    wait_for_iteration(output, 1, process)
    count = len(events_of(output))
    for flags in (LOCAL, SHM_2):
        code, _, err = run_study(case, output, *flags)
        assert code == 5
        assert f"is used by a running study (pid {process.pid} on " in err
        assert "choose another --output" in err
    assert len(events_of(output)) >= count, "its log was left alone"
    process.send_signal(signal.SIGINT)
    code, _, _ = end_of(process)
    assert code == 130
    assert json.loads((output / "summary.json").read_text())["is_interrupted"]


def test_uncreatable_output_directory_is_reported_early(tmp_path):
    (tmp_path / "file").write_text("")
    code, out, err = run_study(QUICK_CASE, tmp_path / "file" / "output", *SHM_2)
    assert code == 5
    assert "cannot write" in err
    assert "training" not in out


REFUSED = [
    (("--workers", "0"), {}, "0"),
    (("--workers", "-3"), {}, "-3"),
    (("--workers", "two"), {}, "two"),
    (("--workers", "5000"), {}, "1024"),
    (("--threads", "0"), {}, "0"),
    (("--backend", "pigeon"), {}, "pigeon"),
    (("--backend", "local", "--workers", "2"), {}, "local is one process; for 2 workers use shm"),
    (("--time-limit", "-1"), {}, "-1"),
    ((), {"COBRE_TCP_COORDINATOR": "127.0.0.1"}, "COBRE_TCP_RANK"),
    ((), {"COBRE_TCP_RANK": "0", "COBRE_TCP_SIZE": "2"}, "COBRE_TCP_COORDINATOR"),
    ((), {"COBRE_TCP_COORDINATOR": "127.0.0.1", "COBRE_TCP_RANK": "2", "COBRE_TCP_SIZE": "2"}, "from 0 to 1"),
    ((), {"COBRE_SHM_NAME": "cobre-half"}, "COBRE_SHM_RANK"),
    ((), {"COBRE_COMM_BACKEND": "pigeon"}, "pigeon"),
    (SHM_2, {"COBRE_SHM_TIMEOUT_SECS": "soon"}, "COBRE_SHM_TIMEOUT_SECS"),
]


@pytest.mark.parametrize(("flags", "environ", "words"), REFUSED, ids=lambda value: str(value)[:40])
def test_impossible_options_are_rejected_before_any_work(tmp_path, flags, environ, words):
    done = CliRunner().invoke(main, ["run", str(QUICK_CASE), "--output", str(tmp_path / "output"), *flags], env=environ)
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    assert words in done.stderr
    assert not (tmp_path / "output").exists()


@pytest.mark.parametrize("flags", [(), ("--backend", "mpi")], ids=["auto", "mpi"])
def test_mpiexec_without_mpi4py_is_an_error(tmp_path, flags):
    """Otherwise each process would run the whole study by itself and overwrite the outputs of the others."""
    if "mpi4py" in run_python("-c", "import importlib.util as u; print(u.find_spec('mpi4py'))")[1]:
        pytest.skip("mpi4py is installed here")
    code, _, err = run_study(QUICK_CASE, tmp_path / "output", *flags, PMI_RANK="0", PMI_SIZE="2")
    assert code == 9
    assert "mpi4py is not installed" in err and "pip install 'pycobre[hpc]'" in err
    assert not (tmp_path / "output").exists()


def test_subprocesses_import_the_tested_package():
    assert run_python("-c", "import cobre; print(cobre.__file__)")[1].strip() == sys.modules["cobre"].__file__
