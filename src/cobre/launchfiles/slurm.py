"""Batch scripts for Slurm: with the site's MPI, or over tcp without one."""

import shlex
from collections.abc import Sequence

from cobre.launchfiles.settings import ARRAY_INDEX, SlurmSettings, Verbatim, as_path, check_job_word, fill_shell

MPI_TYPE = "SLURM_MPI_TYPE=${SLURM_MPI_TYPE:-$(python3 -m cobre.launchfiles.slurm_mpi)}\nexport SLURM_MPI_TYPE"


def mpi_script(settings: SlurmSettings, mpi_type: str | None = None) -> str:
    """Return a script that starts ranks which MPI connects.

    mpi_type: of `srun --mpi`; None: determined when the job runs.
    """
    line = MPI_TYPE if mpi_type is None else f"export SLURM_MPI_TYPE={check_job_word('--mpi', mpi_type)}"
    return fill_shell("slurm-mpi.sh", _values(settings) | {"mpi_type": Verbatim(line)})


def tcp_script(settings: SlurmSettings) -> str:
    """Return a script without MPI.

    Each rank gets its number and the address of rank 0 from the step (`slurm_step`).
    """
    return fill_shell("slurm-tcp.sh", _values(settings))


def _values(settings: SlurmSettings) -> dict[str, object]:
    settings.checked()
    command = ["cobre", *settings.run_command(as_path(settings.case), as_path(settings.output))]
    return {
        "name": settings.name,
        "ranks": settings.ranks,
        "threads": settings.threads,
        "directives": Verbatim("".join(f"#SBATCH {shlex.quote(line)}\n" for line in _directives(settings))),
        "command": Verbatim(_joined(command) if settings.array else shlex.join(command)),
        "requeue": Verbatim(fill_shell("slurm_requeue.sh", {}) if settings.requeue else ""),
    }


def _directives(settings: SlurmSettings) -> list[str]:
    chosen = {
        "nodes": settings.nodes,
        "partition": settings.partition,
        "account": settings.account,
        "array": settings.array,
    }
    return [f"--time={settings.time_limit}"] + [f"--{name}={value}" for name, value in chosen.items() if value]


def _joined(command: Sequence[str]) -> str:
    """Return the command as words of a shell, with the index of the job in its array in place of `%a`."""
    index = '"$SLURM_ARRAY_TASK_ID"'
    return " ".join(index.join(_quoted(part) for part in word.split(ARRAY_INDEX)) for word in command)


def _quoted(part: str) -> str:
    return shlex.quote(part) if part else ""
