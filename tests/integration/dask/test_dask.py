"""Ranks on the workers of a real Dask cluster on this machine."""

import os
import signal
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("distributed")

from distributed import Client, LocalCluster

import cobre
import cobre.dask
from cobre.comm.launch import WorkerError
from cobre.core.case import changed
from cobre.dask.placement import PlacementError, WorkerProcess, check_processes, choose_workers, host_of

CASE = Path(__file__).parents[3] / "examples" / "two_reservoirs"
ENDLESS = 100_000

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("default::ResourceWarning", "default::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster(processes=True, n_workers=3, threads_per_worker=1, dashboard_address=":0") as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with Client(cluster) as client:
        client.wait_for_workers(3, timeout=60)
        yield client


@pytest.fixture(scope="module")
def local_result():
    return cobre.train(CASE, iterations=6)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_dask_gives_bits_of_one_process(client, local_result, ranks):
    result = cobre.dask.train(client, CASE, num_workers=ranks, iterations=6)

    assert result.digest == local_result.digest
    assert [record.lower_bound for record in result.history] == [record.lower_bound for record in local_result.history]
    assert result.stop_reason == local_result.stop_reason
    assert [report.backend for report in result.workers] == ["tcp"] * ranks
    assert {report.pid for report in result.workers} <= set(client.run(os.getpid).values())


def test_uses_all_workers_and_reports_every_iteration_of_each(client, local_result):
    events = []

    result = cobre.dask.train(client, CASE, iterations=6, threads=2, progress_callback=events.append)

    assert result.digest == local_result.digest
    expected = [(iteration, worker) for iteration in range(1, 7) for worker in range(3)]
    assert [(event.iteration, event.worker) for event in events] == expected
    assert events[-1].lower_bound == local_result.lower_bound


def test_loaded_case_and_overrides_are_accepted(client, local_result):
    loaded = cobre.load_case(CASE, {"training.stopping_rules": [{"type": "iteration_limit", "limit": 6}]})
    overrides = {"training.selection.forward_passes": 2}

    assert cobre.dask.train(client, loaded, num_workers=2).digest == local_result.digest
    own = cobre.load_case(CASE)
    assert cobre.dask.train(client, own, num_workers=np.int64(2), iterations=np.int64(6)).digest == local_result.digest
    other = cobre.dask.train(client, CASE, num_workers=2, iterations=3, config_overrides=overrides)
    assert other.digest == cobre.train(CASE, iterations=3, config_overrides=overrides).digest


def test_resumes_from_a_checkpoint_with_the_same_bits(client, local_result, tmp_path):
    cobre.dask.train(client, CASE, num_workers=3, iterations=4, checkpoints=tmp_path, checkpoint_every=2)

    resumed = cobre.dask.train(client, CASE, num_workers=2, iterations=6, checkpoints=tmp_path, resume=True)

    assert resumed.digest == local_result.digest


def test_warm_start_uses_cuts_of_policy(client, local_result):
    begun = cobre.dask.train(client, CASE, num_workers=2, iterations=2, warm_start=local_result.policy)

    assert begun.digest == cobre.train(CASE, iterations=2, warm_start=local_result.policy).digest


def test_time_limit_ends_training_with_the_result_so_far(client):
    result = cobre.dask.train(client, CASE, num_workers=2, iterations=ENDLESS, time_limit_s=0.5)

    assert "time limit" in result.stop_reason
    assert 1 <= result.iterations < ENDLESS


@pytest.mark.parametrize(("ranks", "victim"), [(3, 0), (3, 2), (1, 0)])
def test_killed_worker_ends_the_run_and_is_named(client, ranks, victim):
    pids = {}

    def kill_at_third_iteration(event):
        if event.iteration == 3 and not pids:
            addresses = sorted(client.nthreads())
            pids[victim] = client.run(os.getpid, workers=[addresses[victim]])[addresses[victim]]
            os.kill(pids[victim], signal.SIGKILL)

    with pytest.raises(WorkerError) as caught:
        cobre.dask.train(client, CASE, num_workers=ranks, iterations=ENDLESS, progress_callback=kill_at_third_iteration)

    assert caught.value.rank == victim
    assert f"pid {pids[victim]}" in str(caught.value)
    assert "was lost" in str(caught.value)


def test_cluster_is_usable_after_a_killed_worker(client, local_result):
    assert cobre.dask.train(client, CASE, num_workers=3, iterations=6).digest == local_result.digest


def test_exception_of_a_rank_reaches_the_caller(client, tmp_path):
    with pytest.raises(WorkerError) as caught:
        cobre.dask.train(client, CASE, num_workers=3, iterations=2, checkpoints=tmp_path / "none", resume=True)

    assert caught.value.rank == 0
    assert type(caught.value.inner).__name__ == "CheckpointError"
    assert caught.value.__cause__ is caught.value.inner


def test_invalid_case_is_refused_before_anything_is_started(client, tmp_path):
    with pytest.raises(cobre.InvalidCaseError):
        cobre.dask.train(client, tmp_path)


def test_callback_exception_ends_run(client):
    def fail(_):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        cobre.dask.train(client, CASE, num_workers=2, iterations=ENDLESS, progress_callback=fail)

    assert cobre.dask.train(client, CASE, num_workers=3, iterations=1).iterations == 1  # the workers are free again


def test_port_in_use_is_named(client):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(WorkerError, match=f"{port} is in use"):
            cobre.dask.train(client, CASE, num_workers=2, iterations=1, port=port, connect_timeout_s=5.0)


def test_ctrl_c_keeps_the_result_so_far():
    program = textwrap.dedent(
        f"""
        import os, signal
        from distributed import Client, LocalCluster
        import cobre.dask

        def interrupt(event):
            if event.iteration == 3 and event.worker == 0:
                os.kill(os.getpid(), signal.SIGINT)

        if __name__ == "__main__":
            with LocalCluster(processes=True, n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
                with Client(cluster) as client:
                    result = cobre.dask.train(client, {str(CASE)!r}, iterations={ENDLESS}, progress_callback=interrupt)
                    print(result.iterations, result.stop_reason)
        """
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=False)

    assert done.returncode == 0, done.stderr
    iterations, reason = done.stdout.strip().split(" ", 1)
    assert 3 <= int(iterations) < ENDLESS
    assert "Ctrl-C" in reason


class TestRefusals:
    def test_more_ranks_than_workers_is_refused(self, client):
        with pytest.raises(PlacementError, match=r"4 ranks need 4 workers.*has 3"):
            cobre.dask.train(client, CASE, num_workers=4)

    @pytest.mark.parametrize("count", [0, -1, True])
    def test_zero_ranks_is_refused(self, client, count):
        with pytest.raises((TypeError, ValueError), match="num_workers: expected"):
            cobre.dask.train(client, CASE, num_workers=count)

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ({"threads": -3}, "threads: expected 1 to 1024, got -3"),
            ({"iterations": 0}, "iterations: expected 1 to 10000000, got 0"),
            ({"time_limit_s": float("nan")}, "time_limit_s: expected a number of seconds, 0 or more"),
            ({"checkpoints": "c", "checkpoint_every": 0}, "checkpoint_every: expected 1 or more, got 0"),
            ({"warm_start": 5}, "warm_start: expected a policy or the path of one, got 5"),
            ({"port": 70000}, "port: expected 1 to 65535, got 70000"),
            ({"connect_timeout_s": None}, "connect_timeout_s: expected a number of seconds, got None"),
        ],
    )
    def test_invalid_arguments_are_refused(self, client, arguments, words):
        with pytest.raises((TypeError, ValueError), match=words):
            cobre.dask.train(client, CASE, **arguments)

    def test_changed_invalid_case_is_refused(self, client):
        broken = changed(cobre.load_case(CASE), {"config.training.selection.forward_passes": 0})
        with pytest.raises(cobre.InvalidCaseError, match="forward_passes: is 0"):
            cobre.dask.train(client, broken, iterations=1)

    def test_closed_client_is_refused(self, cluster):
        with Client(cluster) as client:
            pass
        with pytest.raises(PlacementError, match="the client is closed"):
            cobre.dask.train(client, CASE, iterations=1)

    def test_non_client_is_refused(self):
        with pytest.raises(TypeError, match="expected a Dask client"):
            cobre.dask.train("tcp://scheduler:8786", CASE, iterations=1)

    def test_thread_workers_are_refused(self):
        options = {"processes": False, "n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
        refused = pytest.raises(PlacementError, match="processes=True")
        with LocalCluster(**options) as cluster, Client(cluster) as client, refused:
            cobre.dask.train(client, CASE)

    def test_cluster_without_workers_is_refused(self):
        with pytest.raises(PlacementError, match="wait_for_workers"):
            choose_workers([], None)

    def test_two_workers_in_one_process_are_refused(self):
        here = WorkerProcess("node7", 11, cobre.__version__)
        with pytest.raises(PlacementError, match="2 workers share process 11 on node7"):
            check_processes({"tcp://a:1": here, "tcp://a:2": here})

    def test_other_version_on_worker_is_refused(self):
        with pytest.raises(PlacementError, match=r"tcp://a:1 runs cobre 0\.0\.9"):
            check_processes({"tcp://a:1": WorkerProcess("node7", 11, "0.0.9")})

    def test_resume_without_checkpoint_folder_is_refused(self, client):
        with pytest.raises(ValueError, match="checkpoints="):
            cobre.dask.train(client, CASE, resume=True)


def test_host_is_parsed_from_address():
    assert host_of("tls://10.0.0.5:41233") == "10.0.0.5"
    assert host_of("tcp://[fe80::1]:41233") == "[fe80::1]"
    with pytest.raises(PlacementError):
        host_of("unix:")


def test_secret_is_not_shown(client):
    assignment = cobre.dask.placement.assign_ranks(client, 1, None, None, 5.0)[0]

    assert len(assignment.world.secret) == 64
    assert assignment.world.secret not in repr(assignment)
