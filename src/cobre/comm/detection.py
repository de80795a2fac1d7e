"""Detection of the backend that suits this process, from the environment and never by importing.

Importing `mpi4py.MPI` initialises MPI, which can end the process under a launcher of another MPI. So a launcher is
recognised by its environment variables, and a package by whether it can be found.
"""

import importlib.util
import shutil
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from cobre.comm import variables
from cobre.comm.errors import BackendNotAvailableError
from cobre.comm.types import BackendKind
from cobre.errors import install_command

INSTALL_MPI = install_command("[hpc]")
SLURM_RANK, SLURM_SIZE = "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"
SRUN_WITH_MPI = "srun --mpi=pmix for Open MPI, srun --mpi=pmi2 for MPICH and Intel MPI; `srun --mpi=list` shows all"

# The order in which "auto" prefers backends.
PREFERENCE = (BackendKind.MPI, BackendKind.TCP, BackendKind.SHM, BackendKind.LOCAL)
_MODULES = {
    BackendKind.MPI: "mpi4py",
    BackendKind.TCP: "cobre.comm.backends.tcp",
    BackendKind.SHM: "cobre.comm.backends.shm",
    BackendKind.LOCAL: "cobre.comm.backends.local",
}


@dataclass(frozen=True, slots=True)
class Launcher:
    """The variables that one kind of MPI launcher sets. is_node_size: the size counts the ranks of this node only."""

    name: str
    rank_variable: str
    size_variable: str
    is_node_size: bool = False


@dataclass(frozen=True, slots=True)
class Launch:
    """The MPI launcher that started this process, and the rank that it gave it."""

    launcher: Launcher
    rank: int
    size: int

    @property
    def world_size(self) -> int | None:
        """The number of processes that it started; None if unknown."""
        return None if self.launcher.is_node_size else self.size

    @property
    def evidence(self) -> str:
        """The variable that gives the size, for messages: "PMI_SIZE=4"."""
        return f"{self.launcher.size_variable}={self.size}"


# A rank without a size proves nothing: SLURM_PROCID is set under srun with or without MPI.
LAUNCHERS = (
    Launcher("mpiexec", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    Launcher("mpiexec", "PMI_RANK", "PMI_SIZE"),
    Launcher("srun", "PMIX_RANK", "SLURM_STEP_NUM_TASKS"),
    Launcher("mpiexec", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", is_node_size=True),
)


def find_launch(environ: Mapping[str, str]) -> Launch | None:
    """Return the MPI launcher that started this process: one whose variables for rank and size are both set."""
    for launcher in LAUNCHERS:
        rank = _as_number(environ.get(launcher.rank_variable))
        size = _as_number(environ.get(launcher.size_variable))
        if rank is not None and size is not None and rank < size:
            return Launch(launcher, rank, size)
    return None


def slurm_tasks(environ: Mapping[str, str]) -> int | None:
    """Return the number of tasks of the Slurm step that this process belongs to; None outside of a step."""
    rank, size = _as_number(environ.get(SLURM_RANK)), _as_number(environ.get(SLURM_SIZE))
    return None if rank is None else size


def installed_backends() -> tuple[BackendKind, ...]:
    """Return the backends whose packages are installed, in the order of preference of "auto"."""
    return tuple(kind for kind in PREFERENCE if importlib.util.find_spec(_MODULES[kind]) is not None)


def find_mpiexec() -> str:
    """Return the mpiexec next to this interpreter, where MPI wheels put it, else from PATH, else empty."""
    sibling = Path(sys.executable).parent / "mpiexec"
    return str(sibling) if sibling.exists() else shutil.which("mpiexec") or ""


def detect(environ: Mapping[str, str], installed: Collection[BackendKind]) -> tuple[BackendKind, str]:
    """Return the backend that "auto" chooses, and the reason.

    Raises `BackendNotAvailableError` if a launcher started several processes that could not join each other.
    """
    launch = find_launch(environ)
    if launch is not None and BackendKind.MPI in installed:
        return BackendKind.MPI, f"{launch.launcher.name} started this process ({launch.evidence})"
    for kind, required in ((BackendKind.TCP, variables.REQUIRED_BY_TCP), (BackendKind.SHM, variables.REQUIRED_BY_SHM)):
        set_variables = [name for name in required if environ.get(name)]
        if set_variables:
            return kind, f"{set_variables[0]} is set"
    if launch is not None and launch.size > 1:
        raise _unjoined_ranks(launch)
    if (tasks := slurm_tasks(environ)) is not None and tasks > 1:
        raise _unconnected_tasks(tasks)
    return (
        BackendKind.LOCAL,
        "no launcher was found in the environment" if launch is None else f"a world of one rank ({launch.evidence})",
    )


def require_installed(kind: BackendKind, installed: Collection[BackendKind]) -> None:
    """Raise `BackendNotAvailableError` if the backend is not installed; the message explains how to install it."""
    if kind in installed:
        return
    if kind is BackendKind.MPI:
        raise no_mpi4py()
    names = " and ".join(member.value for member in PREFERENCE if member in installed)
    raise BackendNotAvailableError(kind.value, f"this installation has {names}")


def no_mpi4py(reason: str = "mpi4py is not installed", alternative: str = "") -> BackendNotAvailableError:
    """Make the error for an environment without mpi4py. alternative: another remedy, appended to the command."""
    text = f"{reason}: {INSTALL_MPI}{alternative}"
    return BackendNotAvailableError(BackendKind.MPI.value, text, remedy=INSTALL_MPI, library="mpi4py")


def _unjoined_ranks(launch: Launch) -> BackendNotAvailableError:
    return no_mpi4py(
        f"{launch.launcher.name} started {launch.size} processes ({launch.evidence}), but mpi4py is not installed, "
        "so each would run on its own",
        f", or set {variables.BACKEND}=local if that is intended",
    )


def _unconnected_tasks(tasks: int) -> BackendNotAvailableError:
    return BackendNotAvailableError(
        BackendKind.AUTO.value,
        f"srun started {tasks} tasks ({SLURM_SIZE}={tasks}), but did not tell them how to join each other, so each "
        "would run on its own. Without MPI: srun ... python3 -m cobre.launchfiles.slurm_step COMMAND. "
        f"With MPI and mpi4py: {SRUN_WITH_MPI}. `cobre launch slurm` prints a script for either. "
        f"If each task is to run on its own, set {variables.BACKEND}=local",
        remedy="srun ... python3 -m cobre.launchfiles.slurm_step COMMAND",
    )


def _as_number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() else None
