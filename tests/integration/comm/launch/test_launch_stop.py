"""Ctrl-C, SIGTERM and the death of the parent: no process survives."""

import os
import signal
import subprocess

import pytest
from cli_runs import QUICK_CASE
from processes import finish, open_descriptors, own_children, printed, start_python, wait_for_pids, wait_until_gone

from cobre.comm import launch
from cobre.comm.launch import launcher
from cobre.comm.launch.spawning import child_command

# Every rank announces its pid as a file, then waits forever.
WAITS = """
import os, pathlib, signal, sys, time
from cobre.comm import create_communicator

def announce(folder):
    pathlib.Path(folder, str(os.getpid())).touch()

def wait():
    while True:
        time.sleep(0.01)
"""
SCRIPT = (
    WAITS
    + """
with create_communicator() as comm:
    announce(sys.argv[1])
    {how}
"""
)
FUNCTION = (
    WAITS
    + """
from cobre.comm import launch
from cobre.comm.launch import launcher
launcher.INTERRUPT_GRACE_S = {grace_s}

def work(comm, folder):
    {first}
    announce(folder)
    {how}

launch.run(work, 2, args=(sys.argv[1],))
"""
)


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "pids"
    path.mkdir()
    return path


def start_script(tmp_path, folder, how="wait()"):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(how=how))
    return start_python("-m", "cobre.comm.launch", "-n", "2", script, folder)


def start_function(tmp_path, folder, how="wait()", first="pass", grace_s=5.0):
    script = tmp_path / "script.py"
    script.write_text(FUNCTION.format(how=how, first=first, grace_s=grace_s))
    return start_python(script, folder)


@pytest.mark.parametrize("how", ["wait()", "comm.barrier() if comm.rank else wait()"])
def test_ctrl_c_stops_a_script_without_a_traceback(tmp_path, folder, how):
    process = start_script(tmp_path, folder, how)
    pids = wait_for_pids(folder, 2)
    process.send_signal(signal.SIGINT)
    code, out, err = finish(process)
    assert (code, out, printed(err)) == (130, "", ["interrupted; all ranks were stopped"])
    wait_until_gone(pids)


# Found before anything else on the way to a module: importing that one takes as long as the process lives. Ranks are
# forked by a fork server that loads for all of them, unless something has started a thread there.
SLOW_IMPORT = """
import os, pathlib, sys, threading, time

if {has_thread} and any(word == "fork-server" for word in sys.orig_argv):
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()

class Slow:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "cobre.comm.launch.rank_main" and any(word == {program!r} for word in sys.orig_argv):
            pathlib.Path({folder!r}, str(os.getpid())).touch()
            while True:
                time.sleep(0.01)

sys.meta_path.insert(0, Slow)
"""


@pytest.fixture(params=["fork-server", "rank"])
def importing(request, tmp_path, folder, monkeypatch):
    """Stop processes while they import; return how many of them announce themselves."""
    (tmp_path / "site").mkdir()
    is_forked = request.param == "fork-server"
    program = SLOW_IMPORT.format(program=request.param, folder=str(folder), has_thread=not is_forked)
    (tmp_path / "site" / "sitecustomize.py").write_text(program)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"), prepend=os.pathsep)
    return 1 if is_forked else 2


@pytest.mark.parametrize("to_all", [False, True], ids=["to the command", "to its process group"])
def test_ctrl_c_while_ranks_import_prints_one_line(tmp_path, folder, importing, to_all):
    process = start_script(tmp_path, folder)
    pids = wait_for_pids(folder, importing)
    (os.killpg if to_all else os.kill)(process.pid, signal.SIGINT)
    code, out, err = finish(process)
    assert (code, out, printed(err)) == (130, "", ["interrupted; all ranks were stopped"])
    wait_until_gone(pids)


@pytest.mark.parametrize(
    ("number", "expected", "words"),
    [(signal.SIGINT, 130, "cobre: interrupted"), (signal.SIGTERM, 143, "cobre: terminated")],
)
def test_signal_while_workers_import_prints_one_line(tmp_path, folder, importing, number, expected, words):
    command = ["-m", "cobre.cli", "run", QUICK_CASE, "--output", tmp_path / "output", "--workers", "2"]
    process = start_python(*command)
    pids = wait_for_pids(folder, importing)
    process.send_signal(number)
    code, out, err = finish(process)
    assert (code, out, printed(err)) == (expected, "", [words])
    wait_until_gone(pids)


@pytest.fixture
def default_signals():
    """Restore default signals: background shells ignore SIGINT, nohup ignores SIGHUP, and ranks would inherit that."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGHUP)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("default_signals")
@pytest.mark.parametrize("size", [1, 2], ids=["spawned", "forked"])
def test_rank_starts_with_default_signal_handlers(size):
    def handlers(comm):
        dispositions = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [])
        return dispositions == [signal.default_int_handler, signal.SIG_DFL, signal.SIG_DFL], blocked

    assert launch.run(handlers, size) == [(True, set())] * size
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_ctrl_c_raises_keyboard_interrupt_from_run(tmp_path, folder):
    process = start_function(tmp_path, folder)
    pids = wait_for_pids(folder, 2)
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert code == -signal.SIGINT
    assert err.endswith("KeyboardInterrupt\n")
    wait_until_gone(pids)


def test_ranks_may_clean_up_after_ctrl_c(tmp_path, folder):
    how = "try: wait()\n    except KeyboardInterrupt: print('saved')"
    process = start_function(tmp_path, folder, how)
    wait_for_pids(folder, 2)
    process.send_signal(signal.SIGINT)
    _, out, _ = finish(process)
    assert sorted(out.splitlines()) == ["[rank 0] saved", "[rank 1] saved"]


def test_ranks_ignoring_ctrl_c_are_killed_after_pause(tmp_path, folder):
    ignore = "signal.signal(signal.SIGINT, signal.SIG_IGN)"
    process = start_function(tmp_path, folder, first=ignore, grace_s=0.2)
    pids = wait_for_pids(folder, 2)
    process.send_signal(signal.SIGINT)
    assert finish(process)[0] == -signal.SIGINT
    wait_until_gone(pids)


def test_second_ctrl_c_kills_at_once(tmp_path, folder):
    handler = "signal.signal(signal.SIGINT, lambda *_: announce(folder + '/../interrupted'))"
    (tmp_path / "interrupted").mkdir()
    process = start_function(tmp_path, folder, first=handler, grace_s=100_000)
    pids = wait_for_pids(folder, 2)
    process.send_signal(signal.SIGINT)
    wait_for_pids(tmp_path / "interrupted", 2)
    process.send_signal(signal.SIGINT)
    assert finish(process)[0] == -signal.SIGINT
    wait_until_gone(pids)


def test_sigterm_stops_a_script(tmp_path, folder):
    process = start_script(tmp_path, folder)
    pids = wait_for_pids(folder, 2)
    process.send_signal(signal.SIGTERM)
    code, _, err = finish(process)
    assert (code, "Traceback" in err) == (143, False)
    wait_until_gone(pids)


def test_sigterm_reaches_the_ranks(tmp_path, folder):
    handled = tmp_path / "handled"
    handled.mkdir()
    handler = "signal.signal(signal.SIGTERM, lambda *_: sys.exit('saved'))"
    process = start_script(tmp_path, folder, f"{handler}; announce({str(handled)!r}); wait()")
    wait_for_pids(handled, 2)
    process.send_signal(signal.SIGTERM)
    code, _, err = finish(process)
    assert (code, sorted(printed(err))) == (143, ["[rank 0] saved", "[rank 1] saved"])


@pytest.mark.parametrize("start", [start_script, start_function])
@pytest.mark.parametrize("how", ["wait()", "comm.barrier() if comm.rank else wait()"])
def test_nothing_survives_the_death_of_the_parent(tmp_path, folder, start, how):
    process = start(tmp_path, folder, how)
    pids = wait_for_pids(folder, 2)
    process.kill()
    process.communicate(timeout=60)
    wait_until_gone(pids)


def test_inner_runs_die_with_the_outermost_parent(tmp_path, folder):
    nested = "launch.run(lambda inner: (announce(folder), wait()), 2)"
    process = start_function(tmp_path, folder, nested)
    pids = wait_for_pids(folder, 6)
    process.kill()
    process.communicate(timeout=60)
    wait_until_gone(pids)


@pytest.mark.parametrize("how", ["wait()", "os.kill(os.getpid(), signal.SIGSTOP)"])
def test_processes_started_by_ranks_end_with_the_parent(tmp_path, folder, how):
    child = "import subprocess; child = subprocess.Popen(['sleep', '1000'])"
    process = start_function(tmp_path, folder, how, f"{child}; pathlib.Path(folder, str(child.pid)).touch()")
    pids = wait_for_pids(folder, 4)
    process.kill()
    process.communicate(timeout=60)
    wait_until_gone(pids)


def test_rank_in_native_code_ends_with_the_parent(tmp_path, folder):
    # One regular expression blocks the interpreter for longer than any test.
    process = start_function(tmp_path, folder, "import re; re.match(r'(a+)+$', 'a' * 60 + 'b')")
    pids = wait_for_pids(folder, 2)
    process.kill()
    process.communicate(timeout=60)
    wait_until_gone(pids)


def test_rank_without_parent_does_not_start():
    worker = [*child_command("rank"), "1", "0", "0", "0"]
    assert subprocess.run(worker, timeout=60, check=False).returncode == -signal.SIGKILL


def test_end_of_the_parent_pipe_ends_the_rank_and_its_processes():
    program = (
        "import subprocess, sys, time\n"
        "from cobre.comm.launch.rank_main import watch_lifeline\n"
        "watch_lifeline(int(sys.argv[1]), 0)\n"
        "print(subprocess.Popen(['sleep', '1000'], stdout=subprocess.DEVNULL).pid, flush=True)\n"
        "while True: time.sleep(0.01)\n"
    )
    reading, writing = os.pipe()
    process = start_python("-c", program, reading, pass_fds=[reading])
    child = int(process.stdout.readline())
    os.close(writing)
    os.close(reading)
    assert finish(process)[0] == -signal.SIGKILL
    wait_until_gone([child])


def test_interrupt_leaves_no_processes_or_files():
    pids = []
    descriptors = open_descriptors()
    children = own_children()

    def interrupt(rank, stream, text):
        if stream == "stdout":
            pids.append(int(text))
            os.kill(os.getpid(), signal.SIGINT)

    def announces(comm):
        import time

        print(os.getpid())
        while True:
            time.sleep(0.01)

    with pytest.raises(KeyboardInterrupt):
        launch.run(announces, 2, output=interrupt)
    wait_until_gone(pids)
    assert open_descriptors() == descriptors
    assert own_children() <= children


def test_pause_before_kill_matches_documentation():
    assert launcher.INTERRUPT_GRACE_S == 5.0
