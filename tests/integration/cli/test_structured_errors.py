"""Errors for programs: kind, backend, variable and remedy, by `--json`, in Python and in events."""

import itertools
import json
import os
import subprocess
import sys

import pytest
from studies import QUICK_CASE, small_copy

from cobre.cli import error_reporting
from cobre.cli.error_reporting import ExitCode
from cobre.comm import BackendError, MpiConfig, ShmConfig, TcpConfig, create_communicator, launch
from cobre.comm.errors import CommunicatorBusyError, InvalidBufferSizeError, InvalidRootError, NotLeaderError
from cobre.comm.launch import WorkerError
from cobre.errors import CobreError
from cobre.runs.events import read_events

MPIEXEC = {"PMI_RANK": "0", "PMI_SIZE": "2"}
LIMIT_S = 100
# Interpreters in which a library appears to be missing, or installed.
COMMAND = """
sys.argv[0] = "cobre"
runpy.run_module("cobre.cli", run_name="__main__", alter_sys=True)
"""
WITHOUT = """
import importlib.util, runpy, sys
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "{}" else found(name, *rest)
"""
WITHOUT_MPI4PY = WITHOUT.format("mpi4py") + COMMAND
WITH_MPI4PY = (
    """
import importlib.util, runpy, sys
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: found("json" if name == "mpi4py" else name, *rest)
"""
    + COMMAND
)
WITHOUT_DISTRIBUTED = """
import json, sys
sys.modules["distributed"] = None
from cobre.cli.error_reporting import exit_code_of
from cobre.errors import MissingLibraryError
try:
    import cobre.dask
except MissingLibraryError as error:
    print(json.dumps(error.details() | {"exit_code": exit_code_of(error)}))
"""
REMEDY_BY_CONSTRUCTOR = {
    "BackendError",
    "BackendNotAvailableError",
    "InitializationFailedError",
    "InvalidBackendError",
    "MissingConfigurationError",
    "MissingLibraryError",
    "RendezvousAbandonedError",
    "StageFailedError",
}
SELECTION = {
    "invalid": ((), {"COBRE_COMM_BACKEND": "rdma"}, "InvalidBackendError", "rdma", "COBRE_COMM_BACKEND"),
    "missing": ((), {"COBRE_TCP_RANK": "0"}, "MissingConfigurationError", "tcp", "COBRE_TCP_SIZE"),
    "malformed": (
        (),
        {"COBRE_TCP_RANK": "0", "COBRE_TCP_SIZE": "two"},
        "MissingConfigurationError",
        "tcp",
        "COBRE_TCP_SIZE",
    ),
    "initialisation": (
        (),
        {"COBRE_SHM_NAME": "a", "COBRE_SHM_RANK": "2", "COBRE_SHM_SIZE": "2"},
        "InitializationFailedError",
        "shm",
        "COBRE_SHM_RANK",
    ),
}


def printed_error(arguments, environ, program=("-m", "cobre.cli")):
    command = [sys.executable, *program, "run", *map(str, arguments), "--json"]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=LIMIT_S, env={**os.environ, **environ}
    )
    return json.loads(done.stdout.splitlines()[-1]), done.returncode


@pytest.mark.parametrize("name", SELECTION)
def test_backend_selection_errors_as_json(tmp_path, name):
    arguments, environ, kind, backend, variable = SELECTION[name]
    found, code = printed_error([QUICK_CASE, "--output", tmp_path / "out", *arguments], environ)
    assert (found["kind"], found["backend"], found["variable"]) == (kind, backend, variable)
    assert found["remedy"], found
    assert found["exit_code"] == code == ExitCode.USAGE


def test_mpi_without_a_launcher_names_the_launcher(tmp_path):
    arguments = [QUICK_CASE, "--output", tmp_path / "out", "--backend", "mpi", "--workers", "3"]
    found, code = printed_error(arguments, {}, ("-c", WITH_MPI4PY))
    assert (found["kind"], found["backend"], found["variable"]) == ("BackendNotAvailableError", "mpi", None)
    assert "mpiexec -n 3" in found["remedy"]
    assert found["exit_code"] == code == ExitCode.USAGE


def test_unknown_backend_option_is_a_selection_error(tmp_path):
    found, code = printed_error([QUICK_CASE, "--output", tmp_path / "out", "--backend", "rdma"], {})
    assert (found["kind"], found["backend"], found["variable"]) == ("InvalidBackendError", "rdma", None)
    assert found["available"] == ["auto", "local", "shm", "tcp", "mpi"]
    assert found["remedy"] == "choose one of auto, local, shm, tcp, mpi"
    assert found["exit_code"] == code == ExitCode.USAGE


def test_usage_error_names_help_of_command(tmp_path):
    found, code = printed_error([QUICK_CASE, "--output", tmp_path / "out", "--workers", "none"], {})
    assert (found["kind"], found["exit_code"], code) == ("UsageError", ExitCode.USAGE, ExitCode.USAGE)
    assert "run --help` lists its options" in found["remedy"]


def test_unwritable_output_has_remedy(tmp_path):
    (tmp_path / "file").touch()
    found, code = printed_error([QUICK_CASE, "--output", tmp_path / "file" / "out"], {})
    assert (found["kind"], code) == ("WriteError", ExitCode.OUTPUT)
    assert found["remedy"]


@pytest.mark.parametrize(
    ("arguments", "environ"), [((), MPIEXEC), (("--backend", "mpi"), MPIEXEC), (("--backend", "mpi"), {})]
)
def test_missing_library_exits_with_missing_extra_code(tmp_path, arguments, environ):
    found, code = printed_error([QUICK_CASE, "--output", tmp_path / "out", *arguments], environ, ("-c", WITHOUT_MPI4PY))
    assert (found["kind"], found["backend"], found["library"]) == ("BackendNotAvailableError", "mpi", "mpi4py")
    assert found["remedy"].startswith("pip install 'pycobre[hpc]'")
    assert found["exit_code"] == code == ExitCode.MISSING_EXTRA


@pytest.mark.parametrize("workers", [1, 2])
def test_missing_solver_exits_with_missing_extra_code(tmp_path, monkeypatch, workers):
    """Ranks look for the solver after the case was read."""
    (tmp_path / "sitecustomize.py").write_text(WITHOUT.format("highspy"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)  # in the workers as well
    arguments = [QUICK_CASE, "--output", tmp_path / "out", "--workers", workers]
    found, code = printed_error(arguments, {})
    assert (found["kind"], found["library"]) == ("MissingLibraryError", "highspy")
    assert found["remedy"].startswith("pip install 'highspy")
    assert found["exit_code"] == code == ExitCode.MISSING_EXTRA


def test_missing_live_view_exits_with_missing_extra_code(tmp_path):
    """Also in a pipe, where the state would be printed once."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "events.jsonl").write_text("")
    program = "import sys; sys.modules['textual_plotext'] = None; from cobre.cli.main import main; main()"
    command = [sys.executable, "-c", program, "top", tmp_path / "out"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=LIMIT_S)
    assert (done.returncode, done.stdout) == (ExitCode.MISSING_EXTRA, "")
    assert done.stderr.startswith("cobre: the live view is not installed: pip install 'pycobre[top]'")


def test_missing_dask_exits_with_missing_extra_code():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_DISTRIBUTED], check=True, capture_output=True, text=True, timeout=LIMIT_S
    )
    found = json.loads(done.stdout)
    assert (found["kind"], found["library"]) == ("MissingLibraryError", "distributed")
    assert found["remedy"].startswith("pip install 'pycobre[dask]'")
    assert found["exit_code"] == ExitCode.MISSING_EXTRA


@pytest.mark.parametrize(
    ("given", "variable"), [("nothing", None), ({"COBRE_COMM_BACKEND": "x"}, "COBRE_COMM_BACKEND")]
)
def test_backend_selection_errors_in_python(monkeypatch, given, variable):
    for name, value in given.items() if isinstance(given, dict) else ():
        monkeypatch.setenv(name, value)
    with pytest.raises(BackendError) as caught:
        create_communicator(None if variable else given)
    found = caught.value.details()
    assert found["kind"] == "InvalidBackendError"
    assert found["variable"] == caught.value.variable == variable if variable else found["variable"] is None
    assert found["available"] == ["auto", "mpi", "tcp", "shm", "local"]
    assert found["remedy"] == caught.value.remedy == "choose one of auto, mpi, tcp, shm, local"


def test_invalid_case_lists_its_problems(tmp_path):
    case = small_copy(QUICK_CASE, tmp_path)
    (case / "penalties.json").unlink()
    found, code = printed_error([case, "--output", tmp_path / "out", "--workers", "2"], {})
    assert (found["kind"], code) == ("InvalidCaseError", ExitCode.INVALID_CASE)
    assert found["problems"][0]["file"] == "penalties.json"
    last = list(read_events(tmp_path / "out"))[-1]
    assert (last["event"], last["kind"], last["problems"]) == ("run_failed", "InvalidCaseError", found["problems"])


def kill_second_rank(comm):
    if comm.rank == 1:
        os._exit(7)
    comm.barrier()


def test_lost_worker_is_named(tmp_path):
    with pytest.raises(WorkerError) as caught:
        launch.run(kill_second_rank, 2, output=launch.discard)
    found = caught.value.details()
    assert (found["kind"], found["rank"], found["worker_exit_code"]) == ("WorkerError", 1, 7)


def kinds_below(*kinds):
    pending, seen = list(kinds), set()
    while pending:
        kind = pending.pop()
        seen.add(kind)
        pending.extend(set(kind.__subclasses__()) - seen)
    return seen


def test_every_error_with_an_exit_code_has_a_remedy():
    groups = (group if isinstance(group, tuple) else (group,) for group, _ in error_reporting.exit_codes())
    with_code = kinds_below(*itertools.chain(*groups))
    assert len(with_code) > 40
    assert {kind.__name__ for kind in with_code if not kind.remedy} == REMEDY_BY_CONSTRUCTOR


@pytest.mark.parametrize("kind", [InvalidBufferSizeError, InvalidRootError, CommunicatorBusyError, NotLeaderError])
def test_retryable_errors_do_not_advise_a_new_run(kind):
    assert "start the run again" not in kind.remedy


def test_error_details_are_json_serialisable():
    errors = [example_error(kind) for kind in kinds_below(CobreError)]
    assert len(errors) > 30
    for error in errors:
        found = json.loads(json.dumps(error.details()))
        assert found["kind"] == type(error).__name__
        assert isinstance(found["remedy"], str)


def example_error(kind):
    """Build an error as it arrives from a worker, with the attributes that constructors set."""
    error = kind.__new__(kind)
    facts = {
        "case": "case",
        "findings": (),
        "missing": (),
        "saved": None,
        "status": "infeasible",
        "operation": "barrier",
        "sequence": 1,
        "mpi_error_code": 0,
        "peers": (),
        "requested_bytes": 1,
        "library": "",
        "available": (),
        "rank": 0,
        "exit_code": 1,
        "inner": None,
    }
    for name, value in facts.items():
        if not isinstance(getattr(kind, name, None), property):
            error.__dict__[name] = value
    return error


def test_config_error_names_invalid_field():
    with pytest.raises(BackendError) as caught:
        ShmConfig("name", 0, 2, wait="spin")
    assert caught.value.details() == {
        "kind": "InitializationFailedError",
        "remedy": "set COBRE_SHM_WAIT to futex or condvar",
        "backend": "shm",
        "variable": "COBRE_SHM_WAIT",
    }


@pytest.mark.parametrize(
    ("make", "remedy"),
    [
        (lambda: TcpConfig("h", 1, 2, port=0), "set COBRE_TCP_PORT to a port from 1 to 65535"),
        (lambda: TcpConfig("h", 0, 2, ring_bytes=-1), "set COBRE_TCP_RING_BYTES to a number of bytes from 0 (no ring)"),
        (lambda: MpiConfig(max_message_bytes=0), "set COBRE_MPI_MAX_MESSAGE_BYTES to a number of bytes from 1 to"),
        (lambda: ShmConfig("a", 0, 0), "set COBRE_SHM_SIZE to a number of ranks from 1 to 1024"),
    ],
)
def test_remedies_are_sentences(make, remedy):
    with pytest.raises(BackendError) as caught:
        make()
    assert caught.value.remedy.startswith(remedy)
