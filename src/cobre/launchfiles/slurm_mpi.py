"""The type of `srun --mpi` that fits the installed MPI: `SLURM_MPI_TYPE=$(python3 -m cobre.launchfiles.slurm_mpi)`.

Open MPI uses PMIx only; MPICH and what derives from it use PMI-2, which every Slurm has; Cray's MPICH has its own type.
"""

import sys

from cobre.comm.machine import LOAD_LIMIT_S, run_limited

UNKNOWN_LIBRARY = 2
# Without initialising MPI: the batch script itself is not a rank.
SHOW_LIBRARY = "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI; print(MPI.Get_library_version())"
# By a part of the library's name, in lower case; the first that matches decides.
MPI_TYPES = {"open mpi": "pmix", "cray": "cray_shasta"}
DEFAULT_TYPE = "pmi2"


def mpi_type(library: str) -> str:
    """Return the value of `srun --mpi` for a library of this name, as MPI_Get_library_version reports it."""
    return next((kind for name, kind in MPI_TYPES.items() if name in library.lower()), DEFAULT_TYPE)


def main() -> int:
    """Print the value for `srun --mpi` that fits the MPI library of this environment."""
    code, text = run_limited([sys.executable, "-c", SHOW_LIBRARY], LOAD_LIMIT_S)
    if code:
        last = (text.splitlines() or ["no reason given"])[-1]
        sys.stderr.write(f"cobre.launchfiles.slurm_mpi: cannot tell which MPI this is ({last}); set SLURM_MPI_TYPE\n")
        return UNKNOWN_LIBRARY
    sys.stdout.write(f"{mpi_type(text)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
