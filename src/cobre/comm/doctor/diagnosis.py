"""The whole diagnosis: inspect the machine, try every backend."""

import os

from cobre.comm.config import BACKEND_VARIABLE
from cobre.comm.doctor.backend_checks import check_local, check_mpi, check_shm, check_tcp
from cobre.comm.doctor.findings import Diagnosis, Finding
from cobre.comm.doctor.machine import inspect_machine
from cobre.comm.doctor.mpi_library import describe, find_mpi
from cobre.comm.doctor.network import inspect_network
from cobre.comm.doctor.trial import first_line
from cobre.comm.errors import BackendError
from cobre.comm.factory import select_backend


def diagnose() -> Diagnosis:
    """Examine this machine and process. Takes a few seconds, because worlds of two ranks are started."""
    library = find_mpi()
    return Diagnosis(
        [check_local(), check_shm(), check_tcp(), check_mpi(library)],
        _selection(),
        {"Machine": inspect_machine(), "Network": inspect_network(), "MPI": describe(library)},
    )


def _selection() -> Finding:
    """The backend that `create_communicator()` would choose in this environment."""
    try:
        config, reason = select_backend(None, os.environ)
    except BackendError as error:
        return Finding("none", first_line(error), f"set {BACKEND_VARIABLE}, or correct the variables named above")
    return Finding(str(config.kind), f"{reason}; {BACKEND_VARIABLE} overrides this")
