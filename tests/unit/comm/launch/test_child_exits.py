"""Detection of exited children without pidfds, on real processes."""

import os
import subprocess

import pytest

from cobre.comm.launch.fork_server import ForkedChild
from cobre.comm.launch.spawning import SpawnedChild


@pytest.fixture
def process():
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


@pytest.mark.parametrize("kind", [ForkedChild, SpawnedChild])
def test_exit_is_seen_while_running_as_zombie_and_when_collected(process, kind):
    child = ForkedChild(None, process.pid) if kind is ForkedChild else SpawnedChild(process)
    assert not child.has_exited()
    process.stdin.close()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert child.has_exited()
    os.waitpid(process.pid, 0)  # by somebody else in the program
    assert child.has_exited()
