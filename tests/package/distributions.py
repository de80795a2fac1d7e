"""Roots of other distributions, made from their packages, in which the wheels are installed and used: `make package`.

Nothing is pulled from a registry of images. `mmdebstrap` makes each root once, in build/roots, from the archive of its
distribution. What a wheel depends on is chosen by the pip of this machine, for the target, so the root needs no
network. A root of another architecture runs under qemu. Needs Linux, root, mmdebstrap and, for aarch64, Debian's
qemu-user-static and arch-test; a root that cannot be made is named with the reason.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
ROOTS = REPOSITORY / "build" / "roots"
KEYRING = "usr/share/keyrings/ubuntu-archive-keyring.gpg"
GLIBCS = ("2_28", "2_27", "2_26", "2_24", "2_17", "2_12", "2_5")
BINFMT = Path("/proc/sys/fs/binfmt_misc")
INSIDE = "/package"


class UnavailableError(Exception):
    """This machine cannot make a root; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """A root to be made. python: the version of its interpreter. keys_of: the distribution that has its keys."""

    name: str
    suite: str
    mirror: str
    python: str
    architecture: str = "x86_64"
    packages: tuple[str, ...] = ()
    components: str = "main"
    keys_of: str = ""


DEBIAN = "http://deb.debian.org/debian"
DISTRIBUTIONS = (
    # Debian signs the package with Ubuntu's keys: no key is taken on trust.
    Distribution("debian-13", "trixie", DEBIAN, "3.13", packages=("ubuntu-archive-keyring",)),
    Distribution(
        "ubuntu-24.04",
        "noble",
        "http://archive.ubuntu.com/ubuntu",
        "3.12",
        components="main,universe",
        keys_of="debian-13",
    ),
    Distribution("debian-12-aarch64", "bookworm", DEBIAN, "3.11", architecture="aarch64"),
    # Debian testing may have a newer Python than this machine, so its wheels are built inside the root.
    Distribution("debian-14", "forky", DEBIAN, "3.14", packages=("python3-dev",)),
)


def make_root(distribution: Distribution) -> Path:
    """Return the folder of the root file system, made if missing; raises `UnavailableError`."""
    root = ROOTS / distribution.name
    if (root / "usr" / "bin" / "python3").exists():
        return root
    if os.geteuid() != 0:
        raise UnavailableError("making a root needs root")
    if shutil.which("mmdebstrap") is None:
        raise UnavailableError("no mmdebstrap: apt-get install mmdebstrap")
    if distribution.architecture != os.uname().machine:
        enable_qemu()
    ROOTS.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(root, ignore_errors=True)
    packages = ("python3", "python3-venv", "ca-certificates", "libstdc++6", *distribution.packages)
    words = ["mmdebstrap", "--variant=minbase", f"--include={','.join(packages)}"]
    words += [f"--components={distribution.components}"]
    words += [f"--arch={ {'x86_64': 'amd64', 'aarch64': 'arm64'}[distribution.architecture] }"]
    # The lists of a distribution that is still being made expire within a week; a mirror may be older than that.
    words.append('--aptopt=Acquire::Check-Valid-Until "false"')
    if distribution.keys_of:
        words.append(f"--keyring={ROOTS / distribution.keys_of / KEYRING}")
    done = subprocess.run(
        [*words, distribution.suite, str(root), distribution.mirror], check=False, capture_output=True, text=True
    )
    if done.returncode:
        shutil.rmtree(root, ignore_errors=True)
        errors = [line for line in done.stderr.splitlines() if line.startswith("E:")]
        raise UnavailableError(f"mmdebstrap failed: {' '.join(errors) or done.stderr.strip()[-300:]}")
    return root


def enable_qemu() -> None:
    """Let the kernel run programs for aarch64 by qemu, in every root."""
    missing = [name for name in ("qemu-aarch64-static", "arch-test", "update-binfmts") if shutil.which(name) is None]
    if missing:
        raise UnavailableError(f"no {', '.join(missing)}: apt-get install qemu-user-static arch-test binfmt-support")
    if not (BINFMT / "register").exists():
        subprocess.run(["mount", "-t", "binfmt_misc", "binfmt_misc", str(BINFMT)], check=False)
    subprocess.run(["update-binfmts", "--enable", "qemu-aarch64"], check=False, capture_output=True)
    if not (BINFMT / "qemu-aarch64").exists():
        raise UnavailableError("the kernel does not let qemu run programs for aarch64 (binfmt_misc)")


def target_options(distribution: Distribution) -> list[str]:
    """Return the options that make pip choose wheels for a distribution."""
    arch = distribution.architecture
    platforms = [f"--platform=manylinux_{glibc}_{arch}" for glibc in GLIBCS] + [f"--platform=manylinux2014_{arch}"]
    return [*platforms, f"--python-version={distribution.python}", "--implementation=cp", "--only-binary=:all:"]


def install(wheel: Path, distribution: Distribution, root: Path) -> list[str]:
    """Install a wheel into the root; return the path of its interpreter there."""
    place = root / INSIDE.lstrip("/")
    if distribution.architecture != os.uname().machine:
        # By the pip of this machine, for that system: under qemu, pip alone would take minutes.
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(place / "site")]
        subprocess.run([*pip, *target_options(distribution), str(wheel)], check=True, stderr=subprocess.DEVNULL)
        return ["env", f"PYTHONPATH={INSIDE}/site", "python3"]
    download([str(wheel)], distribution, place / "wheels")
    python = f"{INSIDE}/env/bin/python"
    offline = ["--no-index", "--find-links", f"{INSIDE}/wheels"]
    venv = ["python3", "-m", "venv", f"{INSIDE}/env"]
    run_inside(root, [venv, [python, "-m", "pip", "install", "--quiet", *offline, "pycobre"]])
    return [python]


def run_inside(root: Path, commands: Sequence[Sequence[str]]) -> str:
    """Run commands in the root, one after the other and without network; return their output.

    In namespaces of their own: mounts and processes end with them.
    """
    quoted = " && ".join(" ".join(f"'{word}'" for word in command) for command in commands)
    mounts = f"mount -t proc proc {root}/proc && mount --rbind /dev {root}/dev"
    inside = f'{mounts} && exec chroot {root} /usr/bin/env -i PATH=/usr/bin:/bin HOME=/tmp LANG=C.UTF-8 sh -ec "$1"'
    namespaces = ["unshare", "--mount", "--pid", "--net", "--fork", "--kill-child"]
    command = [*namespaces, "sh", "-ec", f"ip link set lo up; {inside}", "sh", f"cd {INSIDE} && {quoted}"]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def download(requirements: Sequence[str], distribution: Distribution, folder: Path) -> None:
    """Choose wheels and their dependencies for a distribution, with the pip of this machine."""
    words = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(folder)]
    subprocess.run([*words, *target_options(distribution), *requirements], check=True, stderr=subprocess.DEVNULL)


def build_in_root(
    distribution: Distribution, requirements: Sequence[str], arguments: Sequence[str], output: Path
) -> list[Path]:
    """Run `build_wheels.py` in the root of a distribution, on a copy of the sources; returns the wheels in `output`."""
    root = make_root(distribution)
    place = root / INSIDE.lstrip("/")
    shutil.rmtree(place, ignore_errors=True)
    try:
        download(requirements, distribution, place / "wheels")
        listed = subprocess.check_output(["git", "ls-files", "-z"], cwd=REPOSITORY, text=True).split("\0")
        for name in filter(None, listed):
            (place / "source" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, place / "source" / name)
        offline = ["env", "PIP_NO_INDEX=1", f"PIP_FIND_LINKS={INSIDE}/wheels"]
        script = [f"python{distribution.python}", f"{INSIDE}/source/tests/package/build_wheels.py"]
        run_inside(root, [[*offline, *script, *arguments, "--output", f"{INSIDE}/built"]])
        output.mkdir(parents=True, exist_ok=True)
        return [Path(shutil.copy2(wheel, output)) for wheel in sorted((place / "built").glob("*.whl"))]
    finally:
        shutil.rmtree(place, ignore_errors=True)


def use_wheel(wheel: Path, distribution: Distribution, program: str, study: Sequence[Sequence[str]]) -> str:
    """Install a wheel into a root and use it; return the output of the last command of the study (after `cobre`)."""
    root = make_root(distribution)
    place = root / INSIDE.lstrip("/")
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    try:
        python = install(wheel, distribution, root)
        if distribution.architecture == os.uname().machine:
            (place / "program.py").write_text(program)
            kit = [*python, "-m", "cobre.comm.testing", "--backend", "shm", "--ranks", "2", "--quick"]
            print(run_inside(root, [[*python, f"{INSIDE}/program.py"], kit]), end="", flush=True)
        else:
            # Under qemu 7 ranks do not find each other's segment: one worker, whose bits are those of any number.
            study = [[*words, "--workers", "1"] if "--workers" in words else words for words in study]
            print("one worker, no kit: ranks do not find each other under qemu", flush=True)
        return run_inside(root, [[*python, "-m", "cobre.cli", *words] for words in study])
    finally:
        shutil.rmtree(place, ignore_errors=True)
