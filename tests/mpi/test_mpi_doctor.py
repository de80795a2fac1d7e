"""The doctor where MPI is installed: it loads the library, and tries two ranks under its mpiexec."""

import json

NAMES = {"mpich": "MPICH", "openmpi": "Open MPI"}
NO_SUCH_MPI = {"MPI4PY_MPIABI": "none"}  # mpi4py finds no MPI library with this ABI
JOIN = """
from cobre.comm import BackendError, create_communicator
try:
    create_communicator("mpi")
except BackendError as error:
    print(type(error).__name__, error)
"""


def status_of_mpi(mpi, environ):
    done = mpi.run_alone([mpi.python, "-m", "cobre.comm.doctor", "--json"], environ)
    assert done.code == 0, done.output
    diagnosis = json.loads(done.output[done.output.index("{\n") :])
    (status,) = [status for status in diagnosis["backends"] if status["backend"] == "mpi"]
    return status


def test_two_ranks_are_tried_under_mpiexec(mpi):
    status = status_of_mpi(mpi, {})
    assert status["is_usable"] and status["reason"].startswith(NAMES[mpi.wheel]), status
    assert "2 ranks connected, reduced and gathered" in status["reason"]


def test_library_that_does_not_load_is_reported_with_the_reason(mpich):
    status = status_of_mpi(mpich, NO_SUCH_MPI)
    assert not status["is_usable"] and "MPI does not load: " in status["reason"], status
    assert "pip install mpich" in status["advice"]


def test_rank_without_a_library_reports_it(mpich):
    done = mpich.run_alone([mpich.python, "-c", JOIN], NO_SUCH_MPI)
    assert "BackendNotAvailableError" in done.output and "mpi4py cannot load an MPI library" in done.output
