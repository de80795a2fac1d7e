"""Tests of signalling process groups, including leaders whose pid was reused."""

import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cobre.comm.launch import orphan_reaper
from cobre.comm.launch.orphan_reaper import ProcessGroup, start_ticks_of

DEADLINE_S = 30.0
PARENT = "import subprocess; print(subprocess.Popen(['sleep', '1000']).pid, flush=True); {then}"


@pytest.fixture(params=["by descriptor", "by number"])
def signal_method(request, monkeypatch):
    """Simulate old kernels, which do not know the flag, by a flag that no kernel knows."""
    if request.param == "by number":
        monkeypatch.setattr(orphan_reaper, "WHOLE_GROUP", 1 << 30)


def start_group(then):
    process = subprocess.Popen(
        [sys.executable, "-c", PARENT.format(then=then)], stdout=subprocess.PIPE, text=True, process_group=0
    )
    return process, int(process.stdout.readline())


def has_ended_in_time(pid):
    deadline = time.monotonic() + DEADLINE_S
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not is_alive(pid)


def is_alive(pid):
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def test_leader_and_members_are_signalled(signal_method):
    leader, member = start_group("import signal; signal.pause()")
    group = ProcessGroup(leader.pid, start_ticks_of(leader.pid))
    assert group.signal(signal.SIGKILL)
    assert leader.wait() == -signal.SIGKILL
    assert has_ended_in_time(member)
    leader.stdout.close()
    group.close()


def test_members_are_signalled_after_the_leader_was_reaped(signal_method):
    leader, member = start_group("")
    group = ProcessGroup(leader.pid, start_ticks_of(leader.pid))
    leader.wait()
    assert group.signal(signal.SIGKILL)
    assert has_ended_in_time(member)
    leader.stdout.close()
    group.close()


def test_process_that_reuses_the_pid_is_not_signalled(signal_method):
    other = subprocess.Popen(["sleep", "1000"], process_group=0)
    group = ProcessGroup(other.pid, start_ticks_of(other.pid) - 1)  # the one that was meant began before
    assert group.descriptor is None
    assert not group.signal(signal.SIGKILL)
    assert other.poll() is None
    other.kill()
    assert other.wait() == -signal.SIGKILL


def test_signalling_an_empty_group_returns_false(signal_method):
    process = subprocess.Popen(["true"], process_group=0)
    group = ProcessGroup(process.pid, start_ticks_of(process.pid))
    process.wait()
    assert not group.signal(signal.SIGKILL)
    group.close()


REAPER = "from cobre.comm.launch.orphan_reaper import main; main()"


def test_reaper_kills_the_groups_that_it_still_knows_and_unlinks_segments():
    """One group was taken back before the end of file, as the launcher does before it reaps a rank."""
    name = f"cobre-reaper-{secrets.token_hex(6)}"
    segments = [Path("/dev/shm") / name, Path("/dev/shm") / f"{name}-1"]
    for segment in segments:
        segment.touch()
    (doomed, grandchild), (spared, other) = (start_group("import time; time.sleep(1000)") for _ in range(2))
    lines = [f"={name}", *(f"+{leader.pid} {start_ticks_of(leader.pid)}" for leader in (doomed, spared))]
    text = "\n".join([*lines, f"-{spared.pid}", ""])
    reaper = subprocess.Popen([sys.executable, "-c", REAPER], stdin=subprocess.PIPE, text=True)
    reaper.stdin.write(text)
    reaper.stdin.close()
    try:
        assert doomed.wait(DEADLINE_S) == -signal.SIGKILL and has_ended_in_time(grandchild)
        assert reaper.wait(DEADLINE_S) == 0
        assert is_alive(spared.pid) and is_alive(other)
        assert not any(segment.exists() for segment in segments)
    finally:
        os.killpg(spared.pid, signal.SIGKILL)
        for process in (doomed, spared):
            process.communicate()
