"""Backend selection: environment x installed libraries x requested backend."""

import logging
import subprocess
import sys
from itertools import product

import pytest

from cobre.comm import (
    BackendKind,
    BackendNotAvailableError,
    InitializationFailedError,
    InvalidBackendError,
    LocalConfig,
    MissingConfigurationError,
    MpiConfig,
    available_backends,
    create_communicator,
)
from cobre.comm.config import BACKEND_VARIABLE
from cobre.comm.detection import find_launch
from cobre.comm.factory import select_backend
from cobre.comm.testing.leaks import no_leaks

SHM = {"COBRE_SHM_NAME": "n", "COBRE_SHM_RANK": "0", "COBRE_SHM_SIZE": "1"}
TCP = {"COBRE_TCP_COORDINATOR": "h", "COBRE_TCP_RANK": "0", "COBRE_TCP_SIZE": "1"}
MPICH = {"PMI_RANK": "0", "PMI_SIZE": "4"}
OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4"}
INTEL = {"MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"}
SRUN_PMIX = {"SLURM_PROCID": "0", "PMIX_RANK": "0", "SLURM_STEP_NUM_TASKS": "4"}
SLURM_ONLY = {"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_STEP_NUM_TASKS": "4"}

EVERYTHING = tuple(BackendKind(name) for name in ("mpi", "tcp", "shm", "local"))
WITHOUT_MPI = tuple(BackendKind(name) for name in ("tcp", "shm", "local"))

AUTO_TABLE = [
    # environment, with mpi4py, without mpi4py (None: refused, because N ranks would run N worlds)
    ({}, "local", "local"),
    (SHM, "shm", "shm"),
    ({"COBRE_SHM_NAME": "n"}, "shm", "shm"),
    (TCP, "tcp", "tcp"),
    ({"COBRE_TCP_RANK": "0"}, "tcp", "tcp"),
    ({"COBRE_TCP_SIZE": "2"}, "tcp", "tcp"),
    ({**SHM, **TCP}, "tcp", "tcp"),
    (MPICH, "mpi", None),
    (OPEN_MPI, "mpi", None),
    (INTEL, "mpi", None),
    (SRUN_PMIX, "mpi", None),
    (SLURM_ONLY, None, None),
    ({**SLURM_ONLY, "SLURM_STEP_NUM_TASKS": "1"}, "local", "local"),
    ({**SLURM_ONLY, **TCP}, "tcp", "tcp"),
    ({**SLURM_ONLY, **SHM}, "shm", "shm"),
    ({"SLURM_PROCID": "0"}, "local", "local"),
    ({"PMI_RANK": "0"}, "local", "local"),
    ({"PMI_SIZE": "4"}, "local", "local"),
    ({"PMI_RANK": "0", "OMPI_COMM_WORLD_SIZE": "4"}, "local", "local"),
    ({"PMIX_RANK": "0"}, "local", "local"),
    ({"PMI_RANK": "x", "PMI_SIZE": "4"}, "local", "local"),
    ({"PMI_RANK": "0", "PMI_SIZE": ""}, "local", "local"),
    ({"PMI_RANK": "0", "PMI_SIZE": "1"}, "mpi", "local"),
    ({**MPICH, **TCP}, "mpi", "tcp"),
    ({**MPICH, **SHM}, "mpi", "shm"),
    ({**MPICH, **TCP, **SHM}, "mpi", "tcp"),
]
CASES = [(environ, *way) for environ, *ways in AUTO_TABLE for way in zip(ways, (EVERYTHING, WITHOUT_MPI), strict=True)]
WORLDS = {"mpi": {}, "tcp": TCP, "shm": SHM, "local": {}}


def selected_backend(kind, environ, installed):
    """Return the name of the choice; None if the error names a remedy."""
    try:
        config, reason = select_backend(kind, _complete(environ), installed)
    except BackendNotAvailableError as error:
        assert error.backend in ("mpi", "auto")
        remedy = "pip install 'pycobre[hpc]'" if error.backend == "mpi" else "cobre.launchfiles.slurm_step"
        assert remedy in str(error) and remedy in error.remedy
        return None
    assert reason
    return config.kind.value


def _complete(environ):
    """Return the variables that a chosen backend needs in addition to the one that selects it."""
    complete = dict(environ)
    for world in (SHM, TCP):
        if set(world) & set(environ):
            complete = {**world, **complete}
    return complete


@pytest.mark.parametrize(
    ("name", "installed", "expected"),
    [
        ("rdma", (), InvalidBackendError),
        ("tcp", (BackendKind.LOCAL,), BackendNotAvailableError),
        ("tcp", (BackendKind.LOCAL, BackendKind.TCP), MissingConfigurationError),
    ],
)
def test_errors_are_raised_in_order_of_correction(name, installed, expected):
    """The name, then the installation, then missing variables, then invalid values."""
    everything_wrong = {"COBRE_TCP_RANK": "7", "COBRE_TCP_PORT": "0"}
    with pytest.raises(expected):
        select_backend(name, everything_wrong, installed)
    with pytest.raises(InitializationFailedError, match="must be"):
        select_backend("tcp", everything_wrong | {"COBRE_TCP_SIZE": "2", "COBRE_TCP_COORDINATOR": "h"})


@pytest.mark.parametrize("environ,expected,installed", CASES)
@pytest.mark.parametrize(
    "setting", [{}, {BACKEND_VARIABLE: ""}, {BACKEND_VARIABLE: "auto"}, {BACKEND_VARIABLE: " Auto "}]
)
def test_auto_follows_the_table(environ, expected, installed, setting):
    assert selected_backend(None, {**environ, **setting}, installed) == expected


@pytest.mark.parametrize("environ,expected,installed", CASES)
def test_backend_named_auto_equals_default(environ, expected, installed):
    assert (
        selected_backend("auto", environ, installed)
        == selected_backend(BackendKind.AUTO, environ, installed)
        == expected
    )


@pytest.mark.parametrize(
    "name,environ,installed",
    list(product(WORLDS, [row[0] for row in AUTO_TABLE], [EVERYTHING, WITHOUT_MPI])),
)
def test_explicit_backend_wins_over_environment(name, environ, installed):
    expected = name if BackendKind(name) in installed else None
    complete = {**WORLDS[name], **environ}
    assert selected_backend(name, complete, installed) == expected
    assert selected_backend(None, {**complete, BACKEND_VARIABLE: name}, installed) == expected
    other = "local" if name != "local" else "shm"
    assert selected_backend(name, {**complete, BACKEND_VARIABLE: other}, installed) == expected, "the argument wins"


@pytest.mark.parametrize("name", ["mpich", "", "sockets", "LOCAL "])
def test_unknown_backend_error_lists_known_backends(name):
    if name.strip().lower() in ("", "local"):
        assert selected_backend(name, {}, EVERYTHING) == "local"
        return
    with pytest.raises(InvalidBackendError, match="choose one of auto, mpi, tcp, shm, local"):
        select_backend(name, {}, EVERYTHING)
    with pytest.raises(InvalidBackendError):
        select_backend(None, {BACKEND_VARIABLE: name}, EVERYTHING)


def test_backend_of_wrong_type_raises():
    with pytest.raises(InvalidBackendError, match="42"):
        create_communicator(42)


def test_missing_backend_error_lists_installed_backends():
    with pytest.raises(BackendNotAvailableError, match="this installation has tcp and local"):
        select_backend("shm", {}, [BackendKind.TCP, BackendKind.LOCAL])


def test_error_without_mpi4py_has_number_of_ranks():
    with pytest.raises(BackendNotAvailableError, match=r"mpiexec started 4 processes \(PMI_SIZE=4\).*mpi4py is not"):
        select_backend(None, MPICH, WITHOUT_MPI)


def test_error_for_unconnected_tasks_has_their_number():
    with pytest.raises(BackendNotAvailableError, match=r"srun started 4 tasks \(SLURM_STEP_NUM_TASKS=4\).*on its own"):
        select_backend(None, SLURM_ONLY, EVERYTHING)


def test_shm_without_its_variables_raises():
    with pytest.raises(MissingConfigurationError, match="COBRE_SHM_NAME"):
        select_backend("shm", {}, EVERYTHING)


@pytest.mark.parametrize(
    "environ,size,world_size",
    [(MPICH, 4, 4), (OPEN_MPI, 4, 4), (SRUN_PMIX, 4, 4), (INTEL, 2, None), ({**MPICH, **INTEL}, 4, 4)],
)
def test_launchers_are_recognised_by_their_variables(environ, size, world_size):
    launch = find_launch(environ)
    assert (launch.size, launch.world_size) == (size, world_size)


def test_reason_for_choice_is_logged_once(caplog, monkeypatch):
    monkeypatch.delenv(BACKEND_VARIABLE, raising=False)
    with caplog.at_level(logging.INFO, "cobre.comm"):
        create_communicator().close()
    (record,) = caplog.records
    assert record.levelno == logging.INFO
    reason = "no launcher was found in the environment"
    assert record.getMessage() == f"backend local: {reason}; COBRE_COMM_BACKEND overrides this"


def test_config_is_used_as_it_is(monkeypatch):
    monkeypatch.setenv(BACKEND_VARIABLE, "shm")
    with create_communicator(LocalConfig()) as comm:
        assert comm.backend == "local"


def test_available_backends_are_in_the_order_of_preference():
    available = available_backends()
    assert list(available) == [kind.value for kind in EVERYTHING if kind.value in available]
    assert {"tcp", "shm", "local"} <= set(available)


def test_mpi_config_round_trips_through_environment():
    for config in (MpiConfig(), MpiConfig(checked=True, max_message_bytes=1000)):
        assert MpiConfig.from_env(config.to_env()) == config
    with pytest.raises(MissingConfigurationError, match="COBRE_MPI_CHECKED"):
        MpiConfig.from_env({"COBRE_MPI_CHECKED": "perhaps"})


LOOK = """
import sys
import cobre.comm
from cobre.comm.factory import select_backend
select_backend(None, {"PMI_RANK": "0", "PMI_SIZE": "2"}, tuple(cobre.comm.BackendKind))
cobre.comm.available_backends()
sys.exit("mpi4py" in sys.modules)
"""


def test_selection_does_not_import_mpi4py():
    with no_leaks():
        assert subprocess.run([sys.executable, "-c", LOOK], check=False, timeout=60).returncode == 0
