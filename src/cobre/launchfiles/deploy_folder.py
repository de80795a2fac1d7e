"""Writes the launch files that the repository has in `deploy/`: `python -m cobre.launchfiles.deploy_folder deploy`."""

import sys
from collections.abc import Mapping
from pathlib import Path

from cobre import __version__
from cobre.launchfiles.compose import compose_file
from cobre.launchfiles.kubernetes import job_manifest, jobset_manifest
from cobre.launchfiles.settings import ContainerSettings, SlurmSettings
from cobre.launchfiles.slurm import mpi_script, tcp_script


def printed_files() -> Mapping[str, str]:
    """The launch files of a study of four ranks, by file name."""
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
