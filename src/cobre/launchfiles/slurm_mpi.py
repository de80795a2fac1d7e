"""The type of `srun --mpi` that fits the installed MPI: `SLURM_MPI_TYPE=$(python3 -m cobre.launchfiles.slurm_mpi)`.

Open MPI speaks PMIx only; MPICH and its relatives speak PMI-2, which every Slurm has. Cray's MPICH has its own way.
"""

import sys

from cobre.comm.doctor.mpi_library import LOAD_LIMIT_S, run_limited

CANNOT_TELL = 2
# Without initialising it: in a batch script there is nobody yet whom it could join.
SHOW_LIBRARY = "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI; print(MPI.Get_library_version())"
# The first name that is part of the library's decides.
MPI_TYPES = {"open mpi": "pmix", "cray": "cray_shasta"}
ANY_OTHER = "pmi2"


def mpi_type(library: str) -> str:
    """The value of `srun --mpi` for a library with that name."""
    return next((kind for name, kind in MPI_TYPES.items() if name in library.lower()), ANY_OTHER)


def main() -> int:
    """Print the value for `srun --mpi` that fits the MPI library of this environment."""
    code, text = run_limited([sys.executable, "-c", SHOW_LIBRARY], LOAD_LIMIT_S)
    if code:
        last = (text.splitlines() or ["no reason given"])[-1]
        sys.stderr.write(f"cobre.launchfiles.slurm_mpi: cannot tell which MPI this is ({last}); set SLURM_MPI_TYPE\n")
        return CANNOT_TELL
    sys.stdout.write(f"{mpi_type(text)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
