"""`launch.run`: values, functions from anywhere, sizes, nesting."""

import io
import logging
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from processes import DEADLINE_S, printed, run_python

import cobre
from cobre.comm import BackendNotAvailableError, InitializationFailedError, InvalidBackendError, cores, launch

LOCAL = {"size": 1, "backend": "local"}


def whoami(comm):
    return comm.rank, comm.size, comm.backend, os.getpid()


def allreduced_sum(comm, numbers, *, scale=1):
    mine = np.array([float(numbers[comm.rank])])
    everyone = np.empty_like(mine)
    comm.allreduce(mine, everyone)
    return scale * float(everyone[0])


def test_every_rank_returns_its_value_in_rank_order():
    values = launch.run(whoami, 3)
    assert [value[:3] for value in values] == [(0, 3, "shm"), (1, 3, "shm"), (2, 3, "shm")]
    pids = {value[3] for value in values}
    assert len(pids) == 3
    assert os.getpid() not in pids


def test_values_keep_rank_order_whatever_finishes_first():
    def reverse_order(comm):
        for turn in range(comm.size - 1, comm.rank - 1, -1):
            comm.barrier(label=f"turn {turn}")
        for turn in range(comm.rank):
            comm.barrier(label=f"turn {turn}")
        return comm.rank

    assert launch.run(reverse_order, 4) == [0, 1, 2, 3]


def test_arguments_reach_every_rank():
    assert launch.run(allreduced_sum, 2, "shm", ([1, 2],), {"scale": 10}) == [30.0, 30.0]
    assert launch.run(allreduced_sum, size=2, args=[[1, 2]]) == [3.0, 3.0]


def test_closures_lambdas_and_local_classes_are_sent_and_returned():
    class Plan:
        def __init__(self, cost):
            self.cost = cost

    offset = 5
    (value,) = launch.run(lambda comm, plan: Plan(plan.cost + offset), args=(Plan(2),), **LOCAL)
    assert isinstance(value, Plan)
    assert value.cost == 7


def test_large_arguments_and_results_are_transferred():
    table = np.arange(50 * 2**20 // 8, dtype=np.float64)
    values = launch.run(lambda comm, numbers: numbers + comm.rank, 2, args=(table,))
    assert all(np.array_equal(value, table + rank) for rank, value in enumerate(values))


def test_shm_world_of_one_rank():
    assert launch.run(allreduced_sum, 1, args=([4],)) == [4.0]


def test_rank_may_start_nested_ranks():
    def outer(comm):
        values = launch.run(lambda inner, base: (base, inner.rank), 2, args=(comm.rank,), output=launch.forward)
        comm.barrier()
        return values

    assert launch.run(outer, 2) == [[(0, 0), (0, 1)], [(1, 0), (1, 1)]]


def test_run_works_from_any_thread():
    results = []
    thread = threading.Thread(target=lambda: results.append(launch.run(whoami, 2)))
    thread.start()
    thread.join(60)
    assert [value[0] for value in results[0]] == [0, 1]


@pytest.mark.parametrize("missing", [("pidfd_open",), ("pidfd_open", "waitid"), ("memfd_create",)])
def test_run_works_without_newer_system_calls(monkeypatch, missing):
    for name in missing:
        monkeypatch.delattr(os, name)
    assert [value[0] for value in launch.run(whoami, 2)] == [0, 1]


def test_world_options_come_from_environment():
    def wait_and_read_environment(comm):
        comm.barrier()
        return os.environ["COBRE_SHM_WAIT"], os.environ["MINE"]

    environment = {"COBRE_SHM_WAIT": "condvar", "MINE": "yes"}
    assert launch.run(wait_and_read_environment, 2, environment=environment) == [("condvar", "yes")] * 2


def test_numerical_libraries_get_one_thread(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert launch.run(lambda comm: os.environ["OMP_NUM_THREADS"], **LOCAL) == ["1"]


def test_more_ranks_than_cores_warns_once(caplog):
    size = cores.usable_cores() + 1
    with caplog.at_level(logging.WARNING, "cobre.comm"):
        assert len(launch.run(whoami, size)) == size
    assert len(caplog.records) == 1
    assert f"{size} ranks on {size - 1} usable cores" in caplog.text


@pytest.mark.parametrize("size", [0, -3, 1025, 2.0, "2", None])
def test_invalid_size_starts_no_process(size):
    with pytest.raises(InitializationFailedError, match="number of ranks"):
        launch.run(whoami, size)


@pytest.mark.parametrize(
    ("backend", "error"),
    [("mpi", BackendNotAvailableError), ("pigeon", InvalidBackendError)],
)
def test_unknown_backend_starts_no_process(backend, error):
    with pytest.raises(error):
        launch.run(whoami, 2, backend)


@pytest.mark.parametrize("timeout_s", [0, -1, float("nan"), float("inf")])
def test_invalid_timeout_starts_no_process(timeout_s):
    with pytest.raises(ValueError, match="positive number of seconds"):
        launch.run(whoami, 2, timeout_s=timeout_s)


def test_timeout_of_years_is_accepted():
    assert len(launch.run(whoami, 1, timeout_s=1e9)) == 1


def test_non_callable_raises():
    with pytest.raises(TypeError, match="expected a function"):
        launch.run("whoami", 2)


def test_unpicklable_function_raises():
    lock = threading.Lock()
    with pytest.raises(TypeError, match=r"cannot pickle function .*<lambda> to send it to the ranks: cannot pickle"):
        launch.run(lambda comm: lock, 2)


def test_too_many_ranks_for_the_system_raise(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import os, resource\n"
        "from cobre.comm import InitializationFailedError, launch\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))\n"
        "before = os.listdir('/proc/self/fd')\n"
        "try:\n"
        "    launch.run(lambda comm: 0, 40)\n"
        "except InitializationFailedError as error:\n"
        "    print('refused:', error)\n"
        "assert os.listdir('/proc/self/fd') == before\n"
    )
    code, out, err = run_python(script)
    assert (code, "ulimit -n" in out) == (0, True), err


# Functions from a script, a shell, a notebook.

SCRIPT = """
import sibling
from cobre.comm import launch

BASE = 100

class Answer:
    def __init__(self, value):
        self.value = value

def work(comm):
    return Answer(BASE + sibling.STEP * comm.rank)

values = launch.run(work, 2)
print([answer.value for answer in values], all(type(answer) is Answer for answer in values))
"""


def test_script_needs_no_main_guard_and_may_import_its_siblings(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "sibling.py").write_text("STEP = 7\n")
    (folder / "script.py").write_text(SCRIPT)
    # Libraries take precedence over modules in the current folder, as for the script itself.
    (tmp_path / "numpy.py").write_text("raise ImportError('the wrong numpy')\n")
    code, out, err = run_python(folder / "script.py", cwd=tmp_path)
    assert (code, out) == (0, "[100, 107] True\n"), err


def test_program_from_stdin_runs():
    program = "from cobre.comm import launch\ndef f(comm):\n    return comm.rank\nprint(launch.run(f, 2))\n"
    code, out, err = run_python("-", typed=program)
    assert (code, out) == (0, "[0, 1]\n"), err


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("closed", ["<&-", "<&- >&- 2>&-"])
def test_ranks_work_when_the_parents_streams_are_closed(tmp_path, closed, size):
    """The launcher's own files would get the numbers of the streams, and ranks would lose them."""
    program = "import sys\nfrom cobre.comm import launch\nopen(sys.argv[1], 'w').write(str(launch.run({}, {})))\n"
    script = tmp_path / "script.py"
    script.write_text(program.format("lambda comm: comm.rank", size))
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, script, tmp_path / "values"]
    assert subprocess.run(command, check=False, timeout=DEADLINE_S).returncode == 0
    assert (tmp_path / "values").read_text() == str(list(range(size)))


def test_interactive_shell_runs():
    lines = ["from cobre.comm import launch", "step = 3", "def f(comm):", "    return step * comm.rank", ""]
    typed = "\n".join([*lines, "launch.run(f, 2)", ""])
    code, out, err = run_python("-i", "-q", typed=typed)
    assert (code, out) == (0, "[0, 3]\n"), err


def test_ranks_receive_script_arguments(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import sys\nfrom cobre.comm import launch\nprint(launch.run(lambda comm: sys.argv[1:], 1))\n")
    assert run_python(script, "--case", "4ree")[1] == "[['--case', '4ree']]\n"


def test_ranks_receive_interpreter_flags(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nfrom cobre.comm import launch\nprint(launch.run(lambda comm: sys.flags.optimize, 1))\n"
    )
    assert run_python("-OO", script)[1] == "[2]\n"


def test_run_causes_no_warnings(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("from cobre.comm import launch\nlaunch.run(lambda comm: comm.rank, 2)\n")
    code, out, err = run_python("-X", "dev", "-W", "error", script)
    assert (code, out, printed(err)) == (0, "", [])


def test_ranks_find_the_package_where_the_script_found_it(tmp_path):
    script = tmp_path / "script.py"
    root = Path(cobre.__file__).parent.parent
    script.write_text(
        f"import sys\nsys.path.insert(0, {str(root)!r})\n"
        "from cobre.comm import launch\nprint(launch.run(lambda comm: comm.rank, 1))\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    code, out, err = run_python(script, env=environment)
    assert (code, out) == (0, "[0]\n"), err


def test_notebook_gets_its_output_and_its_source_in_the_traceback(monkeypatch):
    import linecache

    source = "def cell(comm):\n    print('from the cell')\n    raise ValueError('bad inflow')\n"
    monkeypatch.setitem(linecache.cache, "<cell 3>", (len(source), None, source.splitlines(True), "<cell 3>"))
    namespace = {"__name__": "__main__"}
    exec(compile(source, "<cell 3>", "exec"), namespace)
    notebook = io.StringIO()
    monkeypatch.setattr(sys, "stdout", notebook)
    with pytest.raises(launch.WorkerError, match=r"raise ValueError\('bad inflow'\)"):
        launch.run(namespace["cell"], **LOCAL)
    assert notebook.getvalue() == "[rank 0] from the cell\n"
