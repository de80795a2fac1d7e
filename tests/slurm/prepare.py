"""Install Debian's Slurm packages if they are missing, or explain why Slurm cannot run here."""

import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from debian_packages import are_installed, install

# srun --mpi=pmix loads a library by the name that only the development package has.
PACKAGES = ("slurm-wlm", "munge", "iproute2", "libpmix-dev")
NAMESPACES = (
    "unshare",
    "--uts",
    "--ipc",
    "--mount",
    "--net",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
    "true",
)


def main():
    if os.geteuid() != 0:
        return "Slurm's daemons start jobs of any user, and machines are namespaces: run this as root"
    if subprocess.run(NAMESPACES, check=False, capture_output=True).returncode:
        return "namespaces cannot be made here (in a container: --privileged)"
    if not are_installed(PACKAGES) and (problem := install(PACKAGES)):
        return problem
    return None


if __name__ == "__main__":
    sys.exit(f"no Slurm here: {reason}" if (reason := main()) else 0)
