"""Failed ranks: one error about the rank that failed first, and no leftovers."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from processes import is_alive, leaving_nothing_behind, printed, wait_until_gone

from cobre.comm import AbortedError, launch
from cobre.comm.launch import WorkerError, supervision

LOCAL = {"size": 1, "backend": "local"}


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    with leaving_nothing_behind():
        yield


@pytest.fixture
def short_timeouts(monkeypatch):
    monkeypatch.setattr(supervision, "FAILURE_GRACE_S", 0.2)


class InflowError(Exception):
    def __init__(self, stage):
        super().__init__(stage)
        self.stage = stage


def stages(comm, bad_rank):
    comm.barrier()
    if comm.rank == bad_rank:
        raise InflowError(stage=87)
    comm.barrier()


def compute_forever(comm):
    """Compute forever, outside any collective."""
    while True:
        time.sleep(0.01)


def test_error_names_the_rank_and_shows_its_traceback():
    with pytest.raises(WorkerError) as caught:
        launch.run(stages, 4, args=(2,))
    error = caught.value
    text = str(error)
    assert (error.rank, error.exit_code) == (2, 1)
    assert isinstance(error.inner, InflowError)
    assert error.inner.stage == 87
    assert error.__cause__ is error.inner
    assert text.startswith(f"Run stopped: rank 2 (host {socket.gethostname()}, pid ")
    assert "Traceback (most recent call last):\n  File" in text
    assert "raise InflowError(stage=87)" in text
    assert "launch/rank_main.py" not in text
    assert text.endswith("3 other ranks were healthy and have exited.")


def test_rank_killed_by_another_is_the_cause():
    def kill_rank_2(comm):
        from numpy import array, empty

        pids = empty(comm.size, "int64")
        comm.allgatherv(array([os.getpid()], "int64"), pids, [1] * comm.size)
        if comm.rank == 0:
            os.kill(int(pids[2]), signal.SIGKILL)
        for _ in range(1_000_000):
            comm.barrier()

    with pytest.raises(WorkerError) as caught:
        launch.run(kill_rank_2, 3)
    error = caught.value
    assert (error.rank, error.exit_code, error.inner) == (2, -signal.SIGKILL, None)
    assert "killed by SIGKILL (signal 9): likely out of memory. Try fewer ranks." in str(error)
    assert str(error).endswith("2 other ranks were healthy and have exited.")


def test_native_crash_shows_location(capsys):
    with pytest.raises(WorkerError, match=r"SIGSEGV \(signal 11\)") as caught:
        launch.run(lambda comm: os.kill(os.getpid(), signal.SIGSEGV), **LOCAL)
    assert caught.value.exit_code == -signal.SIGSEGV
    assert "in <lambda>" in str(caught.value)
    assert "[rank 0] Fatal Python error: Segmentation fault" in capsys.readouterr().err


@pytest.mark.parametrize("leave", [sys.exit, os._exit])
def test_exiting_rank_fails_with_its_code(leave):
    with pytest.raises(WorkerError, match="rank 1") as caught:
        launch.run(lambda comm: leave(3) if comm.rank == 1 else comm.barrier(), 2)
    assert (caught.value.rank, caught.value.exit_code) == (1, 3)


@pytest.mark.parametrize("leave", [sys.exit, os._exit])
def test_exit_0_without_value_is_a_failure(leave):
    with pytest.raises(WorkerError) as caught:
        launch.run(lambda comm: leave(0), **LOCAL)
    assert caught.value.exit_code == 0


def test_exit_text_is_printed_and_reported(capsys):
    with pytest.raises(WorkerError, match="SystemExit: no such case") as caught:
        launch.run(lambda comm: sys.exit("no such case"), **LOCAL)
    assert caught.value.exit_code == 1
    assert printed(capsys.readouterr().err) == ["[rank 0] no such case"]


def test_computing_ranks_are_stopped(short_timeouts):
    def one_fails(comm):
        if comm.rank == 1:
            raise ValueError("boom")
        compute_forever(comm)

    with pytest.raises(WorkerError, match="boom") as caught:
        launch.run(one_fails, 3)
    assert caught.value.rank == 1
    assert str(caught.value).endswith("2 other ranks were healthy and have exited.")


def test_ranks_ignoring_stop_are_killed(short_timeouts):
    def ignore_sigterm(comm):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        comm.barrier()
        if comm.rank == 0:
            raise ValueError("boom")
        compute_forever(comm)

    with pytest.raises(WorkerError, match="boom") as caught:
        launch.run(ignore_sigterm, 2)
    assert caught.value.rank == 0


def test_stopped_process_is_killed(short_timeouts):
    def frozen(comm):
        comm.barrier()
        if comm.rank == 0:
            raise ValueError("boom")
        os.kill(os.getpid(), signal.SIGSTOP)

    with pytest.raises(WorkerError, match="boom"):
        launch.run(frozen, 2)


def test_rank_that_wraps_the_error_of_another_is_not_the_cause():
    def wraps(comm):
        if comm.rank == 1:
            raise KeyError("the true cause")
        try:
            comm.barrier()
        except AbortedError as error:
            raise RuntimeError("training failed") from error

    with pytest.raises(WorkerError, match="the true cause") as caught:
        launch.run(wraps, 3)
    assert caught.value.rank == 1


def test_rank_that_returns_early_is_reported_by_the_others():
    with pytest.raises(WorkerError) as caught:
        launch.run(lambda comm: comm.barrier() if comm.rank == 0 else None, 2)
    assert caught.value.rank == 0
    assert str(caught.value).endswith("1 other rank was healthy and has exited.")


def test_unpicklable_exception_keeps_its_text():
    class TwoArgumentsError(Exception):
        def __init__(self, first, second):
            super().__init__(f"{first} and {second}")

    def fails(comm):
        raise TwoArgumentsError("this", "that")

    with pytest.raises(WorkerError, match="TwoArgumentsError: this and that") as caught:
        launch.run(fails, **LOCAL)
    assert caught.value.inner is None
    assert caught.value.__cause__ is None


def test_unpicklable_value_is_named():
    with pytest.raises(WorkerError, match=r"cannot pickle the return value \(a generator\)") as caught:
        launch.run(lambda comm: (x for x in ()), **LOCAL)
    assert isinstance(caught.value.inner, TypeError)


def test_value_that_fails_to_unpickle_is_named():
    def foreign(comm):
        import types

        module = types.ModuleType("only_in_the_rank")
        exec("class Thing: pass", module.__dict__)
        sys.modules["only_in_the_rank"] = module
        return module.Thing()

    with pytest.raises(WorkerError, match=r"cannot be unpickled here: .*only_in_the_rank"):
        launch.run(foreign, **LOCAL)


def test_function_that_cannot_be_imported_on_the_rank_is_reported(tmp_path, monkeypatch):
    (tmp_path / "here_only.py").write_text("def work(comm):\n    return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    import here_only

    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry != str(tmp_path)])
    with pytest.raises(WorkerError, match="No module named 'here_only'"):
        launch.run(here_only.work, **LOCAL)


def test_error_of_an_inner_run_is_raised_by_the_outer_one():
    def outer(comm):
        launch.run(stages, 2, args=(1,))

    with pytest.raises(WorkerError, match="InflowError") as caught:
        launch.run(outer, **LOCAL)
    assert isinstance(caught.value.inner, WorkerError)
    assert caught.value.inner.rank == 1
    assert caught.value.inner.inner.stage == 87


def test_run_timeout_ends_run():
    with pytest.raises(TimeoutError, match=r"longer than 0\.5 s; ranks \[0, 1\] were still running"):
        launch.run(compute_forever, 2, timeout_s=0.5)


def test_run_ended_before_joining_leaves_no_name(tmp_path, short_timeouts):
    """Rank 1 never joins, so rank 0 holds the rendezvous name when it is stopped; the fixture checks for leftovers."""
    script = tmp_path / "never_joins.py"
    script.write_text("""
import os
from pathlib import Path
from cobre.comm import create_communicator

if os.environ["COBRE_SHM_RANK"] == "0":
    create_communicator()
while not (Path("/dev/shm") / os.environ["COBRE_SHM_NAME"]).exists():
    pass
raise SystemExit(7)
""")
    with pytest.raises(WorkerError) as caught:
        launch.run_script(str(script), 2, environment={"COBRE_SHM_RENDEZVOUS": "name"})
    assert (caught.value.rank, caught.value.exit_code) == (1, 7)


def test_ranks_killed_while_creating_region_leave_no_name(short_timeouts):
    """Each rank kills itself inside a call that creates a region; the fixture looks for leftovers."""

    def watched(comm):
        def kill_inside():
            while comm.sequence < 5 or comm.state != "busy":
                time.sleep(0)
            os.kill(os.getpid(), signal.SIGKILL)

        threading.Thread(target=kill_inside, daemon=True).start()
        while True:
            comm.create_shared_region(1 << 20, "float64").close()

    with pytest.raises(WorkerError) as caught:
        launch.run(watched, 2)
    assert caught.value.exit_code == -signal.SIGKILL


def test_processes_started_by_rank_end_with_it():
    def parent(comm):
        return subprocess.Popen(["sleep", "1000"]).pid

    wait_until_gone(launch.run(parent, 2))


def test_process_holding_output_open_does_not_block_run():
    def parent(comm):
        print("printed")
        return subprocess.Popen(["sleep", "1000"], start_new_session=True).pid

    (pid,) = launch.run(parent, **LOCAL)
    assert is_alive(pid)
    os.kill(pid, signal.SIGKILL)


def test_successful_run_leaves_no_processes_or_files():
    assert launch.run(lambda comm: comm.rank, 2) == [0, 1]
