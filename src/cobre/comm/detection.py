"""Which backend fits this process: read from the environment, never found out by importing.

Importing `mpi4py.MPI` initialises MPI, and under a launcher of another MPI that can end the process. So a launcher
is recognised by what it writes into the environment, and a package by whether it could be found.
"""

import importlib.util
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from cobre.comm.config import BACKEND_VARIABLE
from cobre.comm.errors import BackendNotAvailableError
from cobre.comm.types import BackendKind

SHM_VARIABLES = ("COBRE_SHM_NAME", "COBRE_SHM_RANK", "COBRE_SHM_SIZE")
TCP_VARIABLES = ("COBRE_TCP_COORDINATOR", "COBRE_TCP_RANK", "COBRE_TCP_SIZE")
INSTALL_MPI = "pip install 'cobre[mpi]'"
SLURM_RANK, SLURM_SIZE = "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"
SRUN_WITH_MPI = "srun --mpi=pmix for Open MPI, srun --mpi=pmi2 for MPICH and Intel MPI; `srun --mpi=list` shows all"

# In the order in which auto prefers them.
PREFERENCE = (BackendKind.MPI, BackendKind.TCP, BackendKind.SHM, BackendKind.LOCAL)
_NEEDED = {
    BackendKind.MPI: "mpi4py",
    BackendKind.TCP: "cobre.comm.backends.tcp",
    BackendKind.SHM: "cobre.comm.backends.shm",
    BackendKind.LOCAL: "cobre.comm.backends.local",
}


@dataclass(frozen=True, slots=True)
class Launcher:
    """The variables of one kind of MPI launcher; `is_node_size`: it counts the ranks of this node only."""

    name: str
    rank_variable: str
    size_variable: str
    is_node_size: bool = False


@dataclass(frozen=True, slots=True)
class Launch:
    """An MPI launcher that started this process, as one of its ranks."""

    launcher: Launcher
    rank: int
    size: int

    @property
    def world_size(self) -> int | None:
        """How many processes it started, where that is known."""
        return None if self.launcher.is_node_size else self.size

    @property
    def evidence(self) -> str:
        """The size, as the environment says it."""
        return f"{self.launcher.size_variable}={self.size}"


# A rank alone proves nothing: SLURM_PROCID is there under srun with or without MPI.
LAUNCHERS = (
    Launcher("mpiexec", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    Launcher("mpiexec", "PMI_RANK", "PMI_SIZE"),
    Launcher("srun", "PMIX_RANK", "SLURM_STEP_NUM_TASKS"),
    Launcher("mpiexec", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", is_node_size=True),
)


def find_launch(environ: Mapping[str, str]) -> Launch | None:
    """The MPI launcher that started this process: one whose rank and size are both there."""
    for launcher in LAUNCHERS:
        rank = _number(environ.get(launcher.rank_variable))
        size = _number(environ.get(launcher.size_variable))
        if rank is not None and size is not None and rank < size:
            return Launch(launcher, rank, size)
    return None


def slurm_tasks(environ: Mapping[str, str]) -> int | None:
    """How many tasks the Slurm step has that this process is one of; None outside of a step."""
    rank, size = _number(environ.get(SLURM_RANK)), _number(environ.get(SLURM_SIZE))
    return None if rank is None else size


def installed_backends() -> tuple[BackendKind, ...]:
    """The backends whose packages are there, in the order in which auto prefers them."""
    return tuple(kind for kind in PREFERENCE if importlib.util.find_spec(_NEEDED[kind]) is not None)


def detect(environ: Mapping[str, str], installed: Collection[BackendKind]) -> tuple[BackendKind, str]:
    """What auto chooses, and why."""
    launch = find_launch(environ)
    if launch is not None and BackendKind.MPI in installed:
        return BackendKind.MPI, f"{launch.launcher.name} started this process ({launch.evidence})"
    for kind, variables in ((BackendKind.TCP, TCP_VARIABLES), (BackendKind.SHM, SHM_VARIABLES)):
        present = [variable for variable in variables if environ.get(variable)]
        if present:
            return kind, f"{present[0]} is set"
    if launch is not None and launch.size > 1:
        raise _lonely_worlds(launch)
    if (tasks := slurm_tasks(environ)) is not None and tasks > 1:
        raise _lonely_tasks(tasks)
    return (
        BackendKind.LOCAL,
        "no launcher's variables are set" if launch is None else f"a world of one ({launch.evidence})",
    )


def require_installed(kind: BackendKind, installed: Collection[BackendKind]) -> None:
    """Refuse a backend that was asked for by name and is not there; the message says how to install it."""
    if kind in installed:
        return
    if kind is BackendKind.MPI:
        raise BackendNotAvailableError(kind.value, f"mpi4py is not installed: {INSTALL_MPI}")
    names = " and ".join(member.value for member in PREFERENCE if member in installed)
    raise BackendNotAvailableError(kind.value, f"this installation has {names}")


def _lonely_worlds(launch: Launch) -> BackendNotAvailableError:
    return BackendNotAvailableError(
        BackendKind.MPI.value,
        f"{launch.launcher.name} started {launch.size} processes ({launch.evidence}) but mpi4py is not installed, "
        f"so each would run alone: {INSTALL_MPI}, or set {BACKEND_VARIABLE}=local if that is meant",
    )


def _lonely_tasks(tasks: int) -> BackendNotAvailableError:
    return BackendNotAvailableError(
        BackendKind.AUTO.value,
        f"srun started {tasks} tasks ({SLURM_SIZE}={tasks}) and told none of them how to join the others, so each "
        "would run alone. Without MPI: srun ... python3 -m cobre.launchfiles.slurm_step COMMAND. "
        f"With MPI and mpi4py: {SRUN_WITH_MPI}. `cobre launch slurm` prints a script that does either. "
        f"If each task shall run alone, set {BACKEND_VARIABLE}=local",
    )


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() else None
