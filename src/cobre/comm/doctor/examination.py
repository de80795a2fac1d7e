"""The whole visit: look at everything, try every backend."""

import os

from cobre.comm.config import BACKEND_VARIABLE
from cobre.comm.doctor.findings import Diagnosis, Finding
from cobre.comm.doctor.machine import look_at_machine
from cobre.comm.doctor.mpi_library import describe, look_for_mpi
from cobre.comm.doctor.network import look_at_network
from cobre.comm.doctor.trial import first_line
from cobre.comm.doctor.verdicts import judge_local, judge_mpi, judge_shm, judge_tcp
from cobre.comm.errors import BackendError
from cobre.comm.factory import select_backend


def examine() -> Diagnosis:
    """Takes a few seconds: worlds are started."""
    library = look_for_mpi()
    return Diagnosis(
        [judge_local(), judge_shm(), judge_tcp(), judge_mpi(library)],
        _selection(),
        {"Machine": look_at_machine(), "Network": look_at_network(), "MPI": describe(library)},
    )


def _selection() -> Finding:
    """What `create_communicator()` would do in this environment."""
    try:
        config, reason = select_backend(None, os.environ)
    except BackendError as error:
        return Finding("none", first_line(error), f"set {BACKEND_VARIABLE}, or correct the variables it names")
    return Finding(config.kind.value, f"{reason}; {BACKEND_VARIABLE} overrides this")
