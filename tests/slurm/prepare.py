"""Install Debian's Slurm packages where they are missing, or explain why Slurm cannot run here."""

import os
import shutil
import subprocess
import sys

# srun --mpi=pmix loads a library by the name that only the development package has.
PACKAGES = ("slurm-wlm", "munge", "iproute2", "libpmix-dev")
APT = ("apt-get", "--quiet=2", "--option", "Dpkg::Use-Pty=0")
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
    if not is_installed() and (problem := install()):
        return problem
    return None


def is_installed():
    if shutil.which("dpkg-query") is None:
        return False
    words = ["dpkg-query", "--show", "--showformat=${db:Status-Status} ", *PACKAGES]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    return done.stdout.split() == ["installed"] * len(PACKAGES)


def install():
    if shutil.which("apt-get") is None:
        return f"this is no Debian, whose packages it takes: {', '.join(PACKAGES)}"
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (("update",), ("install", "--yes", "--no-install-recommends", *PACKAGES)):
        done = subprocess.run([*APT, *words], check=False, capture_output=True, text=True, env=environ)
        if done.returncode:
            return f"apt-get {words[0]} failed: {(done.stderr or done.stdout).strip()}"
    return None


if __name__ == "__main__":
    sys.exit(f"no Slurm here: {reason}" if (reason := main()) else 0)
