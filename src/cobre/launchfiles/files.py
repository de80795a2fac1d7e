"""Write launch files: batch scripts for Slurm, files for Docker Compose and Kubernetes."""

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import indent

from cobre import __version__
from cobre.launchfiles.settings import (
    ARRAY_INDEX,
    CASE_MOUNT,
    OUTPUT_MOUNT,
    ContainerSettings,
    SlurmSettings,
    Verbatim,
    as_path,
    check_claim,
    check_job_word,
    escape_dollars,
    fill_shell,
    fill_yaml,
)

# Batch scripts for Slurm: with the site's MPI, or over tcp without one.

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
        "command": Verbatim(_command_line(command) if settings.array else shlex.join(command)),
        "requeue": Verbatim(fill_shell("slurm_requeue.sh", {}) if settings.requeue else ""),
    }


def _directives(settings: SlurmSettings) -> list[str]:
    values = {
        "nodes": settings.nodes,
        "partition": settings.partition,
        "account": settings.account,
        "array": settings.array,
    }
    return [f"--time={settings.time_limit}"] + [f"--{name}={value}" for name, value in values.items() if value]


def _command_line(command: Sequence[str]) -> str:
    """Return the command as words of a shell, with the index of the job in its array in place of `%a`."""
    index = '"$SLURM_ARRAY_TASK_ID"'
    return " ".join(index.join(_quote(part) for part in word.split(ARRAY_INDEX)) for word in command)


def _quote(part: str) -> str:
    return shlex.quote(part) if part else ""


# A compose file: one service for each rank, on a private network.


def compose_file(settings: ContainerSettings) -> str:
    """Return the text of compose.yaml."""
    settings.checked()
    return fill_yaml(
        "compose.yaml",
        {
            "ranks": settings.ranks,
            "ranks_text": str(settings.ranks),
            "name": settings.name,
            "image": escape_dollars(settings.image),
            "command": [escape_dollars(word) for word in settings.run_command(CASE_MOUNT, OUTPUT_MOUNT)],
            "threads": settings.threads,
            "memory": _bytes(settings.memory),
            "case": escape_dollars(settings.case),
            "output": escape_dollars(settings.output),
            "mkdir": Verbatim(shlex.quote(as_path(settings.output))),
            "port_text": str(settings.port),
            "services": Verbatim(
                "".join(
                    fill_yaml("compose_rank.yaml", {"rank": rank, "rank_text": str(rank)})
                    for rank in range(settings.ranks)
                )
            ),
        },
    )


def _bytes(quantity: str) -> str:
    """Return the size as compose writes it: 2g where Kubernetes writes 2Gi; both mean powers of 1024."""
    return quantity.removesuffix("i").lower()


# Kubernetes manifests: an Indexed Job with what it needs, or a JobSet, which restarts all ranks together.

UNUSABLE_SECRET = "replace me"  # noqa: S105 - too short to be accepted: no run has a public secret


def job_manifest(settings: ContainerSettings, secret: str = UNUSABLE_SECRET) -> str:
    """Return Secret, headless Service, NetworkPolicy and Indexed Job. The index of a pod is its rank."""
    coordinator = f"{settings.name}-0.{settings.name}"
    pod = _pod(settings, coordinator, "metadata.labels['batch.kubernetes.io/controller-uid']")
    values = {"prerequisites": _prerequisites(settings, secret), "pod": _indent(pod, 6), "port": settings.port}
    return fill_yaml("kubernetes.yaml", _world(settings) | values)


def jobset_manifest(settings: ContainerSettings, secret: str = UNUSABLE_SECRET) -> str:
    """Return Secret, NetworkPolicy and a JobSet, which creates the Service and restarts all ranks after a failure."""
    coordinator = f"{settings.name}-ranks-0-0.{settings.name}"
    pod = _pod(settings, coordinator, "metadata.labels['jobset.sigs.k8s.io/restart-attempt']")
    values = {"prerequisites": _prerequisites(settings, secret), "pod": _indent(pod, 14)}
    return fill_yaml("jobset.yaml", _world(settings) | values)


def _indent(text: str, spaces: int) -> Verbatim:
    return Verbatim(indent(text, " " * spaces).rstrip())


def _world(settings: ContainerSettings) -> dict[str, object]:
    """Return the beginning of both manifests.

    label: the name without quotes, for comments; `checked` allows no line break.
    """
    return {"ranks": settings.ranks, "name": settings.name, "label": Verbatim(settings.name)}


def _prerequisites(settings: ContainerSettings, secret: str) -> Verbatim:
    """Return the Secret, and the NetworkPolicy that admits ranks of this job only."""
    values = {
        "name": settings.name,
        "secret_name": _secret_name(settings),
        "port": settings.port,
        "secret": secret,
    }
    return Verbatim(fill_yaml("kubernetes_prerequisites.yaml", values))


def _secret_name(settings: ContainerSettings) -> str:
    return f"{settings.name}-secret"


def _pod(settings: ContainerSettings, coordinator: str, run_id: str) -> str:
    """Return the pod of a rank.

    run_id: the field that differs between attempts, so that a late pod joins no other attempt.
    """
    settings.checked()
    values = {
        "image": settings.image,
        "command": [escape_dollars(word) for word in settings.run_command(CASE_MOUNT, OUTPUT_MOUNT)],
        "threads": settings.threads,
        "memory": settings.memory,
        "case": check_claim("--case", settings.case),
        "output": check_claim("--output", settings.output),
        "port": settings.port,
        "port_text": str(settings.port),
        "ranks_text": str(settings.ranks),
        "secret_name": _secret_name(settings),
        "coordinator": coordinator,
        "run_id": run_id,
    }
    return fill_yaml("kubernetes_pod.yaml", values)


# Writes the launch files that the repository has in `deploy/`: `python -m cobre.launchfiles.files deploy`.


def printed_files() -> Mapping[str, str]:
    """Return the launch files of a study of four ranks, by file name."""
    image = f"cobre:{__version__}"
    folders = ContainerSettings(ranks=4, image=image, case="./case", output="./output")
    claims = ContainerSettings(ranks=4, image=image, case="cobre-case", output="cobre-output")
    slurm = SlurmSettings(ranks=4, case="case", output="output")
    return {
        "compose.yaml": compose_file(folders),
        "kubernetes.yaml": job_manifest(claims),
        "jobset.yaml": jobset_manifest(claims),
        "slurm-mpi.sh": mpi_script(slurm),
        "slurm-tcp.sh": tcp_script(slurm),
    }


def main(folder: Path) -> None:
    """Write all launch files into a folder."""
    for name, text in printed_files().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
