"""The batch scripts in the environment that Slurm gives them, on this machine."""

import json
import os
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from manifests import TWO_RESERVOIRS, cobre

from cobre.comm import TcpConfig
from cobre.comm.factory import select_backend
from cobre.launchfiles.slurm_mpi import mpi_type
from cobre.launchfiles.slurm_step import NoStepError, step_environment

HERE = Path(__file__).parent
STEP = {
    "SLURM_JOB_ID": "1234567",
    "SLURM_STEP_ID": "0",
    "SLURM_PROCID": "3",
    "SLURM_STEP_NUM_TASKS": "8",
    "SLURM_STEP_NODELIST": "node[07-08],gpu1",
}


def test_task_reads_rank_and_size_from_step():
    config, _ = select_backend(None, STEP | step_environment(STEP))
    assert config == TcpConfig("node07", rank=3, size=8, port=24567, run_id="1234567.0")


def test_user_variables_are_kept():
    settings = {"COBRE_TCP_COORDINATOR": "login", "COBRE_TCP_PORT": "4000", "COBRE_TCP_RUN_ID": "mine"}
    config, _ = select_backend(None, STEP | settings | step_environment(STEP | settings))
    assert (config.coordinator, config.port, config.run_id, config.rank) == ("login", 4000, "mine", 3)


def test_step_takes_precedence_over_mpi_variables():
    environ = STEP | {"PMIX_RANK": "3"}
    config, _ = select_backend(None, environ | step_environment(environ))
    assert isinstance(config, TcpConfig)


@pytest.mark.parametrize("name", ["SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST"])
def test_running_outside_a_step_raises_with_remedy(name):
    environ = {key: value for key, value in STEP.items() if key != name}
    with pytest.raises(NoStepError, match=f"{name} not set: start this by srun"):
        step_environment(environ)


def test_tasks_laid_out_by_hand_need_a_coordinator():
    environ = STEP | {"SLURM_DISTRIBUTION": "arbitrary"}
    with pytest.raises(NoStepError, match="set COBRE_TCP_COORDINATOR"):
        step_environment(environ)
    assert "COBRE_TCP_RANK" in step_environment(environ | {"COBRE_TCP_COORDINATOR": "node08"})


def test_unreadable_host_list_is_reported():
    with pytest.raises(NoStepError, match=r"SLURM_STEP_NODELIST: 'node\[' is not a host list"):
        step_environment(STEP | {"SLURM_STEP_NODELIST": "node["})


def run_step(*words, **environ):
    command = [sys.executable, "-m", "cobre.launchfiles.slurm_step", *words]
    return subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=60, env={**os.environ, **environ}
    )


def test_wrapper_becomes_the_command():
    program = "import os; print(os.environ['COBRE_TCP_RANK'], os.environ['COBRE_TCP_COORDINATOR'])"
    done = run_step(sys.executable, "-c", program, **STEP | {"SLURM_STEP_NODELIST": "localhost,gpu1"})
    assert (done.returncode, done.stdout) == (0, "3 localhost\n"), done.stderr


def test_first_node_that_cannot_be_resolved_is_reported_before_the_command_runs():
    done = run_step(sys.executable, "-c", "print('ran')", **STEP | {"SLURM_STEP_NODELIST": "no-such-node.invalid"})
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot resolve no-such-node.invalid on host" in done.stderr
    assert "set COBRE_TCP_COORDINATOR" in done.stderr


@pytest.mark.parametrize(
    ("library", "expected"),
    [
        ("Open MPI v5.0.11, package: Open MPI root@x", "pmix"),
        ("MPICH Version:      5.0.2", "pmi2"),
        ("Intel(R) MPI Library 2021.11 for Linux* OS", "pmi2"),
        ("MPI VERSION    : CRAY MPICH version 8.1.27", "cray_shasta"),
    ],
)
def test_srun_type_matches_mpi(library, expected):
    assert mpi_type(library) == expected


def test_wrapper_reports_errors():
    outside = dict.fromkeys(STEP, "")
    assert "start this by srun" in run_step("true", **outside).stderr
    assert "expected the command" in run_step(**STEP).stderr
    missing = run_step("no-such-program", **STEP | {"SLURM_STEP_NODELIST": "localhost"})
    assert (missing.returncode, "cannot run no-such-program: No such file" in missing.stderr) == (127, True)


def job_environment(folder, ranks, **more):
    """Return the variables that sbatch gives to a script, with our srun and our cobre first on PATH."""
    tools = folder / "bin"
    tools.mkdir()
    shutil.copy(HERE / "srun", tools / "srun")
    for name, words in {"cobre": "-m cobre.cli", "python3": ""}.items():
        (tools / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        (tools / name).chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "SLURM_JOB_ID": str(secrets.randbelow(10**6)),
        "SLURM_NTASKS": str(ranks),
        "SLURM_SUBMIT_DIR": str(folder),
        "EXPECTED_SRUN_OPTIONS": "--cpus-per-task=1 --kill-on-bad-exit=0 --kill-on-bad-exit=1 --wait=120",
        **more,
    }


def single_digest(folder):
    cobre("run", TWO_RESERVOIRS, "--output", folder / "alone", "--iterations", 3)
    return json.loads((folder / "alone" / "summary.json").read_text())["digest"]


@pytest.mark.timeout(240)
def test_script_without_mpi_gives_the_digest_of_one_process(tmp_path):
    ranks = 3
    options = ["--case", TWO_RESERVOIRS, "--output", tmp_path / "out", "--", "--iterations", 3]
    script = tmp_path / "job.sh"
    script.write_text(cobre("launch", "slurm", "--ranks", ranks, *options))
    host = ".".join(map(str, (127, *(secrets.randbelow(254) + 1 for _ in range(3)))))
    environ = job_environment(tmp_path, ranks, STEP_NODES=host)
    done = subprocess.run(
        ["bash", script], check=False, capture_output=True, text=True, timeout=180, env=environ, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["digest"] == single_digest(tmp_path)
    assert not list(tmp_path.glob(".cobre-secret*")), "the secret goes with the job"


def test_secret_is_private_and_the_results_are_as_private_as_the_user_wants(tmp_path):
    script = tmp_path / "job.sh"
    script.write_text(cobre("launch", "slurm", "--ranks", 1))
    environ = job_environment(tmp_path, 1, STEP_NODES="localhost")
    (tmp_path / "bin" / "cobre").write_text('#!/bin/sh\numask\nstat -c %a "$COBRE_TCP_SECRET_FILE"\n')
    command = ["bash", "-c", 'umask 022; exec bash "$0"', script]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60, env=environ, cwd=tmp_path)
    assert done.stdout.split() == ["0022", "600"], done.stderr


def test_script_removes_its_secret_when_the_step_fails(tmp_path):
    script = tmp_path / "job.sh"
    script.write_text(cobre("launch", "slurm", "--ranks", 2, "--case", tmp_path / "no case"))
    environ = job_environment(tmp_path, 2, STEP_NODES="localhost")
    done = subprocess.run(
        ["bash", script], check=False, capture_output=True, text=True, timeout=60, env=environ, cwd=tmp_path
    )
    assert done.returncode != 0
    assert "no case" in done.stderr
    assert not list(tmp_path.glob(".cobre-secret*"))


def test_script_with_mpi_leaves_ranks_to_mpi(tmp_path):
    """The site's launcher assigns the ranks; the script only names the backend."""
    script = tmp_path / "job.sh"
    script.write_text(cobre("launch", "slurm", "--mpi", "pmi2", "--ranks", 2))
    environ = job_environment(tmp_path, 2, STEP_NODES="localhost")
    (tmp_path / "bin" / "cobre").write_text('#!/bin/sh\necho "$COBRE_COMM_BACKEND $SLURM_MPI_TYPE $*"\n')
    done = subprocess.run(
        ["bash", script], check=False, capture_output=True, text=True, timeout=60, env=environ, cwd=tmp_path
    )
    assert done.stdout.splitlines() == ["mpi pmi2 run case --output output --auto-resume --threads 1"] * 2, done.stderr
