"""Jobs that are stopped and resumed, by signals, limits and dead nodes: the digest is that of an undisturbed run."""

import os
from pathlib import Path

import pytest
from jobs import (
    CASE,
    MANY,
    ROOT,
    cobre,
    events,
    first_iteration_of_the_last_run,
    freeze,
    is_asked_to_stop,
    ranks_of,
    submit,
    unfreeze,
)
from studies import summary_digests

from cobre import __version__

RANKS = 3
FEW = 300  # ranks of MPI look for messages all the time, which is slow if they outnumber the cores
# Ranks that were frozen for a minute find each other silent.
PATIENT = {"COBRE_TCP_TIMEOUT_SECS": "600"}
pytestmark = pytest.mark.timeout(600)


def script(folder, *options, iterations=MANY):
    words = ("--ranks", RANKS, "--nodes", 2, "--case", CASE, "--output", folder / "out", *options)
    return cobre("launch", "slurm", *words, "--", "--iterations", iterations, "--checkpoint-every", 50)


def in_environment(wheel):
    return {} if wheel is None else {"PATH": f"{ROOT / f'.venv-{wheel}' / 'bin'}{os.pathsep}/usr/bin:/bin"}


def freeze_ranks(cluster, job):
    """Freeze all ranks in the middle of training."""
    job.wait_for_iterations(3)
    pids = ranks_of(job.folder / "out")
    assert len(pids) == RANKS
    freeze(pids)
    assert not events(job.folder / "out", "training_finished"), "the study is too short to be met in training"
    return pids


def check_completed(job, digest, iterations=MANY):
    assert job.wait("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT") == "COMPLETED", job.log
    assert summary_digests(job.folder / "out") == digest(iterations)
    assert events(job.folder / "out", "training_finished")[-1]["iterations"] == iterations
    assert not list(job.folder.glob(".cobre-secret*"))


@pytest.mark.parametrize(("wheel", "iterations"), [(None, MANY), ("mpich", FEW)])
def test_job_stopped_by_its_time_limit_is_requeued_and_resumes(cluster, tmp_path, digest, wheel, iterations):
    """Check that Slurm sends TERM before the limit, and that the job requeues itself and resumes."""
    mpi = ["--mpi"] if wheel else []
    text = script(tmp_path, "--requeue", "--time", "00:02:00", *mpi, iterations=iterations)
    assert "TERM@120" in text
    job = submit(cluster, tmp_path, text.replace("TERM@120", "TERM@60"), PATIENT | in_environment(wheel))
    pids = freeze_ranks(cluster, job)
    cluster.wait_until(lambda: all(map(is_asked_to_stop, pids)), "Slurm asks all ranks to stop", 150)
    unfreeze(pids)
    cluster.wait_until(lambda: job.field("Restarts") != "0", "the job is in the queue again", 120)
    cluster.run("scontrol", "update", f"JobId={job.number}", "TimeLimit=01:00:00")
    check_completed(job, digest, iterations)
    stopped = [one for one in events(tmp_path / "out", "training_finished") if one["stop_kind"] == "terminated"]
    assert 3 <= stopped[0]["iterations"] < iterations
    assert job.log.count(f"cobre {__version__}:") == 1 + int(job.field("Restarts")), "all runs are in one log"


def test_cancelled_job_is_not_requeued_and_resumes_when_submitted_again(cluster, tmp_path, digest):
    text = script(tmp_path, "--requeue")
    job = submit(cluster, tmp_path, text)
    job.wait_for_iterations(3)
    cluster.run("scancel", job.number)
    assert job.wait("CANCELLED") == "CANCELLED"
    cluster.wait_until(lambda: not ranks_of(tmp_path / "out"), "all ranks are gone")
    assert job.field("Restarts") == "0"
    ended = events(tmp_path / "out", "training_finished")
    assert [one["stop_kind"] for one in ended] == ["terminated"], f"the policy was not kept: {job.log}"
    again = submit(cluster, tmp_path, text)
    check_completed(again, digest)


@pytest.mark.parametrize("node", ["n1", "n2"])
def test_job_resumes_after_node_death(cluster, tmp_path, digest, node):
    """Pull the cable of a node, then kill it: Slurm requeues the job, which waits for the node."""
    job = submit(cluster, tmp_path, script(tmp_path))
    job.wait_for_iterations(60)
    cluster.machines.pull(node)
    cluster.power_off(node)
    cluster.wait_until(lambda: job.field("Restarts") == "1", "Slurm requeues the job", 120)
    cluster.machines.plug(node)
    cluster.power_on(node)
    cluster.wait_for_nodes_up()
    check_completed(job, digest)
    assert first_iteration_of_the_last_run(tmp_path / "out") > 50, "it went on from a checkpoint"


def test_killed_rank_ends_the_job(cluster, tmp_path, digest):
    """Check that the job fails within seconds and names the rank, and that the same script resumes it."""
    text = script(tmp_path)
    job = submit(cluster, tmp_path, text)
    job.wait_for_iterations(60)
    pid = max(ranks_of(tmp_path / "out"))
    os.kill(pid, 9)
    assert job.wait("FAILED", "COMPLETED") == "FAILED"
    assert "rank" in job.log and "died" in job.log
    assert not list(Path(tmp_path).glob(".cobre-secret*"))
    check_completed(submit(cluster, tmp_path, text), digest)
