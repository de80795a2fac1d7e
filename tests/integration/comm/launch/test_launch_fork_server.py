"""The fork server: when it is used, and how its end affects ranks."""

import contextlib
import logging
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from processes import (
    DEADLINE_S,
    MARK,
    leaving_nothing_behind,
    marked_processes,
    start_python,
    wait_until,
    wait_until_gone,
)

from cobre.comm import InitializationFailedError, launch
from cobre.comm.launch import WorkerError, fork_server
from cobre.comm.launch.messages import MESSAGE_VARIABLE


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    with leaving_nothing_behind():
        yield


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Return a function that writes a module that this process could import but does not."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(text, name="given_module"):
        (tmp_path / f"{name}.py").write_text(text)
        return name

    return write


def parents(comm):
    return os.getppid()


def threads_of_parent(comm):
    return len(list(Path(f"/proc/{os.getppid()}/task").iterdir()))


def test_ranks_are_forks_of_one_process_without_threads():
    (parent,) = set(launch.run(parents, 3))
    assert parent != os.getpid()
    assert launch.run(threads_of_parent, 3) == [1, 1, 1]
    wait_until_gone([parent])


def test_single_rank_is_not_forked():
    assert launch.run(parents, 1) == [os.getpid()]


def test_fork_server_loads_modules_once(module, tmp_path):
    name = module(f"import os, pathlib\npathlib.Path({str(tmp_path)!r}, f'loaded-{{os.getpid()}}').touch()\n")

    def is_loaded(comm):
        return name in sys.modules, os.getppid()

    values = launch.run(is_loaded, 3, preload=[name])
    assert [path.name for path in tmp_path.glob("loaded-*")] == [f"loaded-{values[0][1]}"]
    assert {value[0] for value in values} == {True}


@pytest.mark.parametrize("text", ["raise LookupError\n", "import no_such_module\n", None])
def test_module_that_cannot_be_loaded_fails_only_the_rank_that_needs_it(module, text):
    name = "no_such_module" if text is None else module(text)
    assert len(set(launch.run(parents, 2, preload=[name]))) == 1


THREAD = "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\n"
ENDS = {
    "exits": "import sys\nsys.exit(3)\n",
    "is killed": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n",
    "crashes": "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n",
}


def test_no_fork_server_after_library_started_a_thread(module, caplog):
    name = module(THREAD)
    with caplog.at_level(logging.INFO, "cobre.comm"):
        assert launch.run(parents, 2, preload=[name]) == [os.getpid()] * 2
    assert "libraries have started threads" in caplog.text


@pytest.mark.parametrize("how", ENDS)
def test_separate_interpreters_if_fork_server_ends_while_loading(module, caplog, how):
    with caplog.at_level(logging.INFO, "cobre.comm"):
        assert launch.run(parents, 2, preload=[module(ENDS[how])]) == [os.getpid()] * 2
    assert "died while it was loading" in caplog.text


def test_no_fork_server_without_pidfds(monkeypatch):
    monkeypatch.delattr(os, "pidfd_open")
    assert launch.run(parents, 2) == [os.getpid()] * 2


def test_output_printed_while_loading_is_attributed_to_rank_0_without_blocking(module):
    """A megabyte exceeds the capacity of any pipe."""
    name = module("import sys\nprint('x' * 1_000_000)\nsys.stderr.write('y' * 1_000_000 + '\\n')\n")
    output = []
    launch.run(parents, 2, preload=[name], output=lambda *words: output.append(words))
    assert sorted(output) == [(0, "stderr", "y" * 1_000_000 + "\n"), (0, "stdout", "x" * 1_000_000 + "\n")]


def test_run_timeout_applies_while_loading(module):
    name = module("import time\ntime.sleep(1000)\n")
    with pytest.raises(TimeoutError, match=r"longer than 1 s; ranks \[0, 1\] were still running"):
        launch.run(parents, 2, preload=[name], timeout_s=1)


def test_ranks_draw_different_random_numbers():
    def draw(comm):
        import random

        import numpy as np

        return random.random(), float(np.random.random())

    values = launch.run(draw, 3, preload=["random", "numpy.random"])
    assert len({value for pair in values for value in pair}) == 6


def test_every_rank_has_its_own_environment():
    def variables(comm):
        shown = subprocess.run(["env"], capture_output=True, text=True, check=True).stdout
        return os.environ["COBRE_SHM_RANK"], f"COBRE_SHM_RANK={comm.rank}\n" in shown

    assert launch.run(variables, 3) == [("0", True), ("1", True), ("2", True)]


@pytest.mark.parametrize("size", [1, 2])
def test_processes_are_named_by_rank(size):
    def name(comm):
        return Path(f"/proc/{os.getpid()}/comm").read_text()

    assert launch.run(name, size) == [f"cobre rank {rank}\n" for rank in range(size)]


def test_ranks_hold_no_descriptors_of_each_other():
    def open_descriptors(comm):
        links = []
        for descriptor in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(OSError):  # of the listing, and closed by a thread in the meantime
                links.append(str(descriptor.readlink()))
        numbers = (1, 2, int(os.environ[MESSAGE_VARIABLE]))
        streams = [str(Path(f"/proc/self/fd/{number}").readlink()) for number in numbers]
        return streams, links

    answers = launch.run(open_descriptors, 6, on_message=lambda *_: None)
    for rank, (streams, _) in enumerate(answers):
        assert all(link.startswith("pipe:") for link in streams)
        for other, (_, links) in enumerate(answers):
            assert rank == other or not set(streams) & set(links)


def test_fork_server_ignores_job_wide_signal():
    """A batch system sends SIGTERM to all processes of a job; ranks handle it themselves."""

    def handle_sigterm(comm):
        received = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: received.set())
        comm.barrier()
        if comm.rank == 0:
            os.kill(os.getppid(), signal.SIGTERM)
            os.kill(os.getppid(), signal.SIGINT)
            os.kill(os.getppid(), signal.SIGHUP)
            os.kill(os.getppid(), signal.SIGUSR1)
        comm.barrier()
        os.kill(os.getpid(), signal.SIGTERM)
        return received.wait(DEADLINE_S)

    assert launch.run(handle_sigterm, 2) == [True, True]


def test_error_names_fork_server_if_ranks_end_with_it():
    def kill_parent(comm):
        subprocess.Popen(["sleep", "1000"])
        comm.barrier()
        if comm.rank == 1:
            os.kill(os.getppid(), signal.SIGKILL)
        while True:
            comm.barrier()

    ended = r"fork server of the ranks \(pid \d+\) was killed by SIGKILL \(signal 9\)"
    with pytest.raises(WorkerError, match=ended) as caught:
        launch.run(kill_parent, 3)
    assert caught.value.exit_code == -signal.SIGKILL
    assert str(caught.value).endswith("2 other ranks were healthy and have exited.")


def test_fork_server_that_does_not_reply_is_killed(monkeypatch):
    monkeypatch.setattr(fork_server, "REPLY_S", 0.5)

    def stop_parent(comm):
        comm.barrier()
        if comm.rank == 1:
            os.kill(os.getppid(), signal.SIGSTOP)
        comm.barrier()

    silent = r"fork server of the ranks \(pid \d+\) did not reply within 0.5 s, and was killed$"
    with pytest.raises(WorkerError, match=re.compile(silent, re.MULTILINE)):
        launch.run(stop_parent, 2)


WORLD = """
import subprocess, sys
from cobre.comm import launch
from cobre.comm.launch.messages import MESSAGE_VARIABLE

def work(comm):
    subprocess.Popen(["sleep", "1000"])
    for _ in range(50):
        comm.create_shared_region(1000, "float64").close()
    return comm.rank

assert launch.run(work, 4, preload=["cobre.comm.factory", "json", "decimal"]) == [0, 1, 2, 3]
"""


def program_of(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


VICTIMS = [
    "the fork server",
    "a fork",
    "the launcher",
    "the launcher and its orphan reaper",
    "the launcher and the fork server",
]


@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("attempt", range(3))
def test_fork_server_killed_at_any_moment_leaves_no_process(tmp_path, victim, attempt):
    """The fork server and its forks have the same command line; the oldest is the fork server."""
    mark = f"{os.getpid()}-{VICTIMS.index(victim)}-{attempt}"
    script = tmp_path / "world.py"
    script.write_text(WORLD)
    launcher = start_python(script, env=os.environ | {MARK: mark})
    wait_until(lambda: launcher.poll() is not None or find(mark, "fork-server"), "there is a fork server")
    time.sleep(random.Random(mark).random() * 0.8)  # kill at a random instant during the start
    forks = find(mark, "fork-server")
    victims = {
        "the fork server": forks[:1],
        "a fork": forks[-1:],
        "the launcher": [launcher.pid],
        "the launcher and its orphan reaper": [*find(mark, "orphan_reaper"), launcher.pid],
        "the launcher and the fork server": [launcher.pid, *forks[:1]],
    }[victim]
    for pid in victims:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    _, err = launcher.communicate(timeout=DEADLINE_S)
    assert launcher.returncode in (0, -signal.SIGKILL) or any(
        error.__name__ in err for error in (WorkerError, InitializationFailedError)
    ), err
    wait_until(lambda: not marked_processes(mark), "all processes have gone")


def find(mark, program):
    return sorted(pid for pid in marked_processes(mark) if program in program_of(pid))


FEW_DESCRIPTORS = """
import os, resource
free = os.dup(0)
os.close(free)
resource.setrlimit(resource.RLIMIT_NOFILE, (free + 1, free + 1))  # room for one of those that come with a fork
"""
ENDS_AT_FORK = "import os; os.register_at_fork(before=lambda: os._exit(3))"


def test_fork_server_without_free_descriptors_reports_it(module):
    with pytest.raises(InitializationFailedError, match="Too many open files"):
        launch.run(parents, 2, preload=[module(FEW_DESCRIPTORS)])


def test_fork_server_death_at_fork_is_named(module):
    with pytest.raises(InitializationFailedError, match=r"the fork server of the ranks \(pid \d+\) exited with code 3"):
        launch.run(parents, 2, preload=[module(ENDS_AT_FORK)])
