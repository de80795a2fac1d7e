"""SIGUSR1 to real processes: they report where a run hangs, and continue."""

import os
import signal

import pytest
from processes import finish, start_python, wait_until

from cobre.comm import AbortedError, launch

STUCK = """
import os, sys, time
from pathlib import Path
from cobre.comm import launch

def waits(comm, folder):
    comm.barrier(label="together")
    (Path(folder) / str(comm.rank)).write_text(str(os.getpid()))
    if comm.rank == 1:
        while not (Path(folder) / "go").exists():
            time.sleep(0.01)
    comm.barrier(label="alone")

launch.run(waits, 2, sys.argv[2], args=(sys.argv[1],))
"""

ALONE = """
import os, signal, sys
from cobre.comm import LocalConfig, create_communicator
{before}
comm = create_communicator(LocalConfig())
comm.barrier(label="gate")
{after}
os.kill(os.getpid(), signal.SIGUSR1)
print("still there")
"""


@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_hanging_rank_reports_where_it_waits_and_continues(tmp_path, backend):
    run = start_python("-c", STUCK, tmp_path, backend)
    lines = []

    def reads_report():
        lines.append(run.stderr.readline())
        return "now in #2 barrier 'alone', under way for" in lines[-1]

    try:
        wait_until(lambda: (tmp_path / "0").exists() and (tmp_path / "1").exists(), "both ranks are there")
        wait_until((tmp_path / "0").read_text, "rank 0 has said who it is")
        pid = int((tmp_path / "0").read_text())
        wait_until(lambda: request_report(pid, reads_report), "rank 0 has shown its report")
        assert any("in waits" in line for line in lines)  # where in the program
        assert any(f"rank 0 of 2 ({backend})" in line and f"pid {pid}: busy, 2 calls made" in line for line in lines)
    finally:
        (tmp_path / "go").touch()
    code, _, err = finish(run)
    assert code == 0, (lines, err)


def request_report(pid, reads_report):
    """Ask again: the rank may not have reached the call before."""
    os.kill(pid, signal.SIGUSR1)
    return any(reads_report() for _ in range(20))


def test_rank_in_a_long_computation_reports_where_it_is():
    after = "import hashlib; print('now', flush=True); hashlib.pbkdf2_hmac('sha256', b'', b'', (1 << 31) - 1)"
    process = start_python("-c", ALONE.format(before="", after=after))
    try:
        assert process.stdout.readline() == "now\n"
        os.kill(process.pid, signal.SIGUSR1)
        assert "most recent call first" in process.stderr.readline()
        assert 'File "<string>"' in process.stderr.readline()
    finally:
        process.kill()
        process.communicate()


def run_alone(before="", after=""):
    return finish(start_python("-c", ALONE.format(before=before, after=after)))


def test_report_shows_communicator_and_program_continues():
    code, out, err = run_alone()
    assert (code, out) == (0, "still there\n")
    assert "rank 0 of 1 (local)" in err
    assert "#1 barrier 'gate'" in err


def test_report_lists_open_communicators():
    code, _, err = run_alone(after="part = comm.split_local(); gone = comm.split_local(); gone.close()")
    assert code == 0
    assert err.count("rank 0 of 1 (local)") == 2


def test_report_without_communicators_states_it():
    code, _, err = run_alone(after="comm.close()")
    assert code == 0
    assert "no communicator is open" in err


def test_existing_handler_is_kept():
    code, _, err = run_alone(before="signal.signal(signal.SIGUSR1, lambda *_: print('mine'))")
    assert (code, err) == (0, "")


def test_ignored_signal_stays_ignored():
    code, out, err = run_alone(before="signal.signal(signal.SIGUSR1, signal.SIG_IGN)")
    assert (code, out, err) == (0, "still there\n", "")


def test_starting_in_a_thread_installs_no_handler():
    program = """
import threading, signal
from cobre.comm import LocalConfig, create_communicator
thread = threading.Thread(target=lambda: create_communicator(LocalConfig()).close())
thread.start(); thread.join()
assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL
"""
    assert finish(start_python("-c", program)) == (0, "", "")


def test_failing_run_shows_each_ranks_last_calls():
    def fail_on_rank_1(comm):
        comm.barrier(label="together")
        if comm.rank == 1:
            raise ValueError("no more")
        try:
            comm.barrier(label="alone")
        except AbortedError as error:
            print(*error.__notes__, flush=True)
            raise

    lines = []
    with pytest.raises(launch.WorkerError, match="last calls: #1 barrier 'together' took") as caught:
        launch.run(fail_on_rank_1, 2, output=lambda rank, stream, text: lines.append((rank, text)))
    assert caught.value.rank == 1
    assert "#2 barrier 'alone' under way for" in "".join(text for rank, text in lines if rank == 0)
