"""Only the process that holds a directory is asked to stop, for any content of its lock file."""

import signal
import socket
import subprocess
import sys

import pytest

from cobre.mcp.jobs import JobError, signal_owner

HOLDS = """
import fcntl, sys, time
stream = open(sys.argv[1], "r+")
fcntl.flock(stream, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(1000)
"""


@pytest.fixture
def holder(tmp_path):
    (tmp_path / "run.lock").touch()
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(tmp_path / "run.lock")], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


@pytest.fixture
def bystander():
    """Start a process whose command line contains the same word as ours."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)", "cobre"])
    yield process
    process.kill()
    process.wait()


def name_owner(folder, pid, host=None):
    (folder / "run.lock").write_text(f"pid {pid} on {host or socket.gethostname()}\n")


def test_holder_is_signalled(tmp_path, holder):
    name_owner(tmp_path, holder.pid)
    signal_owner(tmp_path, [signal.SIGTERM])
    assert holder.wait() == -signal.SIGTERM


@pytest.mark.parametrize("where", [None, "another-host"])
def test_process_that_does_not_hold_the_lock_is_not_signalled(tmp_path, holder, bystander, where):
    name_owner(tmp_path, bystander.pid, where)
    with pytest.raises(JobError, match="stop it there"):
        signal_owner(tmp_path, [signal.SIGINT, signal.SIGTERM])
    assert bystander.poll() is None and holder.poll() is None


def test_process_that_has_ended_is_not_signalled(tmp_path, holder):
    process = subprocess.Popen(["true"])
    process.wait()
    name_owner(tmp_path, process.pid)
    signal_owner(tmp_path, [signal.SIGTERM])
    assert holder.poll() is None


def test_lock_file_without_owner_signals_nobody(tmp_path, holder):
    with pytest.raises(JobError, match="is unknown"):
        signal_owner(tmp_path, [signal.SIGTERM])
