"""Processes started by a rank end with it, whichever process is killed first."""

import os
import secrets
import signal
from pathlib import Path

import pytest
from processes import MARK, finish, is_alive, marked_processes, run_python, start_python, wait_until

from cobre.comm import launch

WORLD = """
import os, signal, subprocess, sys, time
from cobre.comm import launch

def work(comm, launcher):
    subprocess.Popen(["sleep", "1000"])
    comm.barrier()
    if comm.rank == comm.size - 1:
        os.kill(launcher, signal.SIGSTOP)
        {ends}
    time.sleep(1000)

launch.run(work, {size}, args=(os.getpid(),))
"""
ENDS = {
    "returns": "return",
    "fails": "raise LookupError",
    "exits": "sys.exit(3)",
    "is killed": "os.kill(os.getpid(), signal.SIGKILL)",
    "crashes": "os.kill(os.getpid(), signal.SIGSEGV)",
}


def start_marked(program):
    mark = secrets.token_hex(8)
    return start_python("-c", program, env=os.environ | {MARK: mark}), mark


def state_of(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def reaper_of(launcher):
    (reaper,) = (pid for pid in children(launcher) if b"orphan_reaper" in Path(f"/proc/{pid}/cmdline").read_bytes())
    return reaper


def has_dead_child(launcher):
    """Return whether there is a rank that has ended and that the launcher has not collected."""
    return any(state_of(pid) == "Z" for parent in (launcher, *children(launcher)) for pid in children(parent))


@pytest.mark.parametrize("how", ENDS)
def test_descendants_end_if_launcher_and_reaper_die_before_noticing_exit(how):
    launcher, mark = start_marked(WORLD.format(size=3, ends=ENDS[how]))
    wait_until(lambda: state_of(launcher.pid) == "T" and has_dead_child(launcher.pid), "a rank has ended unseen")
    for pid in (reaper_of(launcher.pid), launcher.pid):
        os.kill(pid, signal.SIGKILL)
    finish(launcher)
    wait_until(lambda: not marked_processes(mark), "all processes have gone")


@pytest.mark.parametrize("how", ["returns", "fails", "exits"])
def test_rank_without_fork_server_ends_its_descendants(how):
    launcher, mark = start_marked(WORLD.format(size=1, ends=ENDS[how]))
    wait_until(lambda: state_of(launcher.pid) == "T" and has_dead_child(launcher.pid), "the rank has ended unseen")
    wait_until(lambda: len(marked_processes(mark)) == 2, "only the launcher and its orphan reaper are there")
    for pid in (reaper_of(launcher.pid), launcher.pid):
        os.kill(pid, signal.SIGKILL)
    finish(launcher)
    wait_until(lambda: not marked_processes(mark), "all processes have gone")


def test_launcher_death_while_unregistering_group_leaves_no_process():
    dies = """
from cobre.comm.launch.supervision import OrphanReaper
release = OrphanReaper.unregister
def release_and_die(self, leader):
    release(self, leader)
    os.kill(os.getpid(), signal.SIGKILL)
OrphanReaper.unregister = release_and_die
"""
    world = WORLD.format(size=1, ends=ENDS["is killed"]).replace("os.kill(launcher, signal.SIGSTOP)", "")
    imports, rest = world.split("\n\n", 1)
    launcher, mark = start_marked(imports + dies + rest)
    finish(launcher)
    assert launcher.returncode == -signal.SIGKILL
    wait_until(lambda: not marked_processes(mark), "all processes have gone")


LOADS = """
import subprocess, sys
from pathlib import Path
Path({folder!r}, "loading").write_text(str(subprocess.Popen(["sleep", "1000"]).pid))
{then}
"""


@pytest.fixture
def loading(tmp_path):
    """Return a function that writes a module that starts a process on import; it returns a launcher that loads it."""

    def write(then=""):
        (tmp_path / "starts_a_process.py").write_text(LOADS.format(folder=str(tmp_path), then=then))
        return (
            f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
            "from cobre.comm import launch\n"
            "launch.run(lambda comm: comm.rank, 2, preload=['starts_a_process'])\n"
        )

    return write


THREAD = "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\n"


@pytest.mark.parametrize("then", ["", THREAD, "sys.exit(3)"], ids=["loaded", "with a thread", "exits"])
def test_processes_started_by_imports_end_with_fork_server(loading, tmp_path, then):
    code, _, err = run_python("-c", loading(then))
    assert code == 0, err
    started = int((tmp_path / "loading").read_text())
    wait_until(lambda: not is_alive(started), "the process that the module has started is gone")


def test_fork_server_ends_if_launcher_and_reaper_die_while_it_loads(loading, tmp_path):
    launcher, mark = start_marked(loading("import time; time.sleep(1000)"))
    wait_until((tmp_path / "loading").exists, "the fork server is loading")
    for pid in (reaper_of(launcher.pid), launcher.pid):
        os.kill(pid, signal.SIGKILL)
    finish(launcher)
    wait_until(lambda: not marked_processes(mark), "all processes have gone")


@pytest.mark.parametrize("who", ["rank", "fork server"])
def test_stopped_rank_ends_if_launcher_and_reaper_are_killed(who):
    world = WORLD.format(size=3, ends=ENDS["returns"]).replace("return\n", "pass\n")
    launcher, mark = start_marked(world)
    wait_until(lambda: state_of(launcher.pid) == "T", "all ranks run")
    (fork_server,) = (pid for pid in children(launcher.pid) if pid != reaper_of(launcher.pid))
    victim = {"fork server": fork_server, "rank": children(fork_server)[0]}[who]
    os.kill(victim, signal.SIGSTOP)
    wait_until(lambda: state_of(victim) == "T", "it is stopped")
    for pid in (reaper_of(launcher.pid), launcher.pid):
        os.kill(pid, signal.SIGKILL)
    finish(launcher)
    wait_until(lambda: not marked_processes(mark), "all processes have gone")


def test_rank_keeps_exit_code_after_ending_its_group(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import subprocess, sys\nfrom cobre.comm import create_communicator\n"
        "subprocess.Popen(['sleep', '1000'])\n"
        "with create_communicator() as comm:\n    comm.barrier()\n"
        "sys.exit(7 if comm.rank == 0 else 0)\n"
    )
    for size in (1, 2):
        with pytest.raises(launch.WorkerError) as caught:
            launch.run_script(str(script), size)
        assert caught.value.exit_code == 7
