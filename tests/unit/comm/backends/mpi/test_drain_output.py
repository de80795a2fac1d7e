"""Tests of waiting until the launcher has read a rank's output."""

import os
import pty
import select
import subprocess
import sys

DRAIN = """
import os, sys
from cobre.comm.backends.mpi.job import drain_output
os.write(2, b"the reason")
drained = drain_output(float(sys.argv[1]))
sys.exit(10 + drained + 2 * os.path.exists(sys.argv[2]))
"""
UNREAD, EMPTY, EMPTY_AFTER_READING = 10, 11, 13
LIMIT_S = 60


def start(limit_s, mark, stderr):
    command = [sys.executable, "-c", DRAIN, str(limit_s), str(mark)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr)


def test_drain_waits_until_pipe_is_read(tmp_path):
    mark = tmp_path / "begins to read"
    with start(LIMIT_S, mark, subprocess.PIPE) as process:
        select.select([process.stderr], [], [], LIMIT_S)
        mark.touch()
        assert os.read(process.stderr.fileno(), 100) == b"the reason"
        assert process.wait(LIMIT_S) == EMPTY_AFTER_READING


def test_drain_gives_up_at_its_limit(tmp_path):
    with start(0.05, tmp_path / "none", subprocess.PIPE) as process:
        assert process.wait(LIMIT_S) == UNREAD


def test_files_are_not_waited_for(tmp_path):
    with (tmp_path / "log").open("wb") as log, start(0, tmp_path / "none", log) as process:
        assert process.wait(LIMIT_S) == EMPTY


def test_unread_terminal_input_is_ignored(tmp_path):
    keyboard, terminal = pty.openpty()
    os.write(keyboard, b"typed ahead\n")
    with start(0, tmp_path / "none", terminal) as process:
        assert process.wait(LIMIT_S) == EMPTY
    os.close(keyboard)
    os.close(terminal)


def test_closed_streams_are_ignored():
    program = "import os; from cobre.comm.backends.mpi.job import drain_output; os._exit(10 + drain_output(0))"
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" -c "$1" >&- 2>&-', sys.executable, program], timeout=LIMIT_S, check=False
    )
    assert done.returncode == EMPTY
