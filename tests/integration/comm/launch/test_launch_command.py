"""`python -m cobre.comm.launch`: scripts on several ranks, exit codes, usage."""

import signal
import subprocess
import sys

import pytest
from processes import finish, printed, run_python, start_python, wait_until_gone

LAUNCH = ("-m", "cobre.comm.launch")


@pytest.fixture
def script(tmp_path):
    def write(text, name="script.py"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def launch(*arguments, **options):
    return run_python(*LAUNCH, *arguments, **options)


COLLECTIVE = """
import sys
import numpy as np
from cobre.comm import create_communicator

with create_communicator() as comm:
    mine, everyone = np.array([comm.rank + 1]), np.zeros(1, int)
    comm.allreduce(mine, everyone)
    print(comm.backend, comm.rank, comm.size, everyone[0], sys.argv[1:])
"""


@pytest.mark.parametrize("options", [(), ("--backend", "shm"), ("--wait", "condvar"), ("--timeout", "50")])
def test_script_runs_on_every_rank(script, options):
    code, out, err = launch("-n", "3", *options, script(COLLECTIVE), "-n", "9", "--flag")
    assert (code, printed(err)) == (0, [])
    assert sorted(out.splitlines()) == [f"[rank {rank}] shm {rank} 3 6 ['-n', '9', '--flag']" for rank in range(3)]


def test_single_rank_runs_locally(script):
    code, out, _ = launch("-n", "1", "--backend", "local", script(COLLECTIVE))
    assert (code, out) == (0, "[rank 0] local 0 1 1 []\n")


def test_script_is_main_and_imports_siblings(script, tmp_path):
    script("VALUE = 41\n", "sibling.py")
    path = script(
        "import sys, sibling\n"
        "if __name__ == '__main__':\n"
        "    print(sibling.VALUE + 1, sys.argv, sys.path[0], __file__)\n"
    )
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    code, out, err = launch("-n", "1", path, cwd=elsewhere)
    assert (code, out) == (0, f"[rank 0] 42 ['{path}'] {tmp_path} {path}\n"), err


def test_module_option_runs_module(script, tmp_path):
    (tmp_path / "project").mkdir()
    script("", "project/__init__.py")
    script("import sys\nprint(__name__, __package__, sys.argv[1:])\n", "project/train.py")
    code, out, err = launch("-n", "1", "-m", "project.train", "--backend", "tcp", "-m", "x", cwd=tmp_path)
    assert (code, out) == (0, "[rank 0] __main__ project ['--backend', 'tcp', '-m', 'x']\n"), err


def test_env_option_reaches_all_ranks(script):
    path = script("import os\nprint(os.environ['A'], os.environ['COBRE_SHM_TIMEOUT_SECS'])\n")
    code, out, _ = launch("-n", "1", "--env", "A=b=c", "--env", "COBRE_SHM_TIMEOUT_SECS=5", path)
    assert (code, out) == (0, "[rank 0] b=c 5.0\n")


FAILS = """
from cobre.comm import create_communicator
with create_communicator() as comm:
    comm.barrier()
    if comm.rank == 1:
        {how}
    comm.barrier()
"""


@pytest.mark.parametrize(
    ("how", "code", "text"),
    [
        ("raise ValueError('boom')", 1, "ValueError: boom"),
        ("import sys; sys.exit(3)", 3, "SystemExit: 3"),
        ("import os; os._exit(4)", 4, "exited with code 4"),
        ("import os; os.kill(os.getpid(), 9)", 137, "killed by SIGKILL (signal 9)"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", 143, "killed by SIGTERM (signal 15)"),
    ],
)
def test_exit_code_is_that_of_first_failed_rank(script, how, code, text):
    path = script(FAILS.format(how=how))
    exit_code, _, err = launch("-n", "2", path)
    assert exit_code == code
    assert "rank 1 (host " in err
    assert text in err
    assert err.endswith("1 other rank was healthy and has exited.\n")
    assert "AbortedError" not in "".join(printed(err))
    assert "runpy" not in err


def test_error_is_printed_once(script):
    _, _, err = launch("-n", "2", script(FAILS.format(how="raise ValueError('boom')")))
    assert err.count("Traceback (most recent call last)") == 1
    assert err.count("raise ValueError('boom')") == 1


@pytest.mark.parametrize("leave", ["sys.exit()", "sys.exit(0)", "os._exit(0)"])
def test_script_may_exit_with_success(script, leave):
    code, out, err = launch("-n", "2", script(f"import os, sys\n{leave}\n"))
    assert (code, out, printed(err)) == (0, "", [])


def test_script_that_does_not_compile_is_reported(script):
    code, _, err = launch("-n", "1", script("def f(:\n"))
    assert code == 1
    assert "SyntaxError" in err


def test_timeout_ends_run(script):
    code, _, err = launch("-n", "1", "--timeout", "0.5", script("import time\nwhile True: time.sleep(0.01)\n"))
    assert (code, err) == (124, "the run took longer than 0.5 s; ranks [0] were still running\n")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("-n", "0", "script.py"), "from 1 to 1024, got '0'"),
        (("-n", "-1", "script.py"), "from 1 to 1024"),
        (("-n", "many", "script.py"), "from 1 to 1024, got 'many'"),
        (("-n", "1025", "script.py"), "from 1 to 1024"),
        (("script.py",), "required: -n"),
        (("-n", "2"), "expected a script"),
        (("-n", "2", "-m"), "expected a script, or a module after -m"),
        (("-n", "2", "no_such_script.py"), "script not found: 'no_such_script.py'"),
        (("-n", "2", "-m", "no_such.module"), "module not found: 'no_such.module'"),
        (("-n", "2", "--wait", "sleep", "script.py"), "invalid choice: 'sleep'"),
        (("-n", "2", "--timeout", "-1", "script.py"), "positive number of seconds"),
        (("-n", "2", "--env", "A", "script.py"), "NAME=VALUE"),
        (("-n", "2", "--backend", "pigeon", "script.py"), "unknown backend 'pigeon'"),
        (("-n", "2", "--backend", "mpi", "script.py"), "backend 'mpi' is not available"),
        (("-n", "2", "--backend", "local", "script.py"), "backend local has one rank"),
        (("-n", "2", "--env", "COBRE_SHM_WAIT=sleep", "script.py"), "COBRE_SHM_WAIT"),
    ],
)
def test_wrong_command_line_is_explained(script, tmp_path, arguments, text):
    script("")
    code, out, err = launch(*arguments, cwd=tmp_path)
    assert (code, out) == (2, "")
    assert text in err
    assert "Traceback" not in err


def test_help_has_an_example():
    code, out, _ = launch("--help")
    assert code == 0
    assert "python -m cobre.comm.launch -n 4 --backend shm" in out


def test_broken_pipe_ends_the_run_without_output(script):
    path = script("import os\nprint(os.getpid())\nwhile True: print('more')\n")
    process = start_python(*LAUNCH, "-n", "1", path)
    pid = int(process.stdout.readline().split()[-1])
    process.stdout.close()
    process.stdout = None
    code, _, err = finish(process)
    assert (code, err) == (128 + signal.SIGPIPE, "")
    wait_until_gone([pid])


def test_importing_the_launcher_starts_no_process_and_imports_no_pickler():
    program = "import sys, cobre.comm.launch as l; print('cloudpickle' in sys.modules, l.run.__name__)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout == "False run\n"


def test_with_a_safe_path_the_directory_of_the_script_is_not_searched(script):
    path = script("import sys; print(sys.path[0] == sys.argv[1])")
    for flags, expected in (((), "True"), (("-P",), "False")):
        code, out, err = run_python(*flags, *LAUNCH, "-n", "1", path, path.parent)
        assert (code, expected in out) == (0, True), out + err
