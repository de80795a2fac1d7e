"""Batch scripts for Slurm: with the site's MPI, or over tcp when there is none."""

import shlex

from cobre.launchfiles.filling import Verbatim, fill_shell
from cobre.launchfiles.settings import SlurmSettings, as_path


def mpi_script(settings: SlurmSettings) -> str:
    """`srun` starts the ranks and MPI joins them."""
    return fill_shell("slurm-mpi.sh", _values(settings))


def tcp_script(settings: SlurmSettings) -> str:
    """`srun` starts the ranks; each learns its rank and where rank 0 is from the step (`slurm_step`)."""
    return fill_shell("slurm-tcp.sh", _values(settings))


def _values(settings: SlurmSettings) -> dict[str, object]:
    settings.checked()
    command = ["cobre", *settings.run_command(as_path(settings.case), as_path(settings.output))]
    return {
        "name": settings.name,
        "ranks": settings.ranks,
        "threads": settings.threads,
        "directives": Verbatim("".join(f"#SBATCH {shlex.quote(line)}\n" for line in _directives(settings))),
        "command": Verbatim(shlex.join(command)),
    }


def _directives(settings: SlurmSettings) -> list[str]:
    chosen = {"nodes": settings.nodes, "partition": settings.partition, "account": settings.account}
    return [f"--time={settings.time_limit}"] + [f"--{name}={value}" for name, value in chosen.items() if value]
