"""Inspects what ranks on this machine share: cores, memory, shared memory, limits; and versions."""

import importlib.metadata
import os
import platform
import resource
import socket
from pathlib import Path

from cobre.comm.cores import affinity_cores, cgroup_quota, memory_limit_bytes, usable_cores
from cobre.comm.doctor.findings import Finding
from cobre.comm.shm_space import ADVICE, SHM_FOLDER

GIB = 1 << 30
MIB = 1 << 20
DOCKER_SHM_BYTES = 64 * MIB  # the default of docker run
FEW_FILES = 256
PACKAGES = ("cobre", "numpy", "cloudpickle", "mpi4py")


def inspect_machine() -> list[Finding]:
    """Findings about system, packages, cores, memory and limits."""
    return [_system(), _versions(), _cores(), _memory(), _shared_memory(Path(SHM_FOLDER)), _pidfd(), _limits()]


def _system() -> Finding:
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    return Finding("system", f"{system}, host {socket.gethostname()}, Python {platform.python_version()}")


def _versions() -> Finding:
    return Finding("packages", ", ".join(f"{name} {version_of(name)}" for name in PACKAGES))


def version_of(package: str) -> str:
    """The installed version of a package, read without importing it."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _cores() -> Finding:
    quota = cgroup_quota()
    limit = "none" if quota is None else f"{quota:g}"
    text = f"{usable_cores()} usable (machine {os.cpu_count()}, affinity {affinity_cores()}, cgroup quota {limit})"
    is_limited = usable_cores() < (os.cpu_count() or 1)
    return Finding(
        "cores", text, f"start at most {usable_cores()} ranks; more will run, but slower" if is_limited else ""
    )


def _memory() -> Finding:
    total, available = _meminfo("MemTotal"), _meminfo("MemAvailable")
    limit = memory_limit_bytes()
    cgroup = "none" if limit is None else f"{limit / GIB:.1f} GiB"
    return Finding("memory", f"{available / GIB:.1f} of {total / GIB:.1f} GiB available, cgroup limit {cgroup}")


def _meminfo(name: str) -> int:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:")), 0)


def _shared_memory(folder: Path) -> Finding:
    try:
        status = os.statvfs(folder)
    except OSError as error:
        return Finding(str(folder), f"not available ({error.strerror})", f"backend shm needs it: {ADVICE}")
    size, free = status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize
    advice = f"little space for shared regions: {ADVICE}" if free <= DOCKER_SHM_BYTES else ""
    return Finding(str(folder), f"{free / MIB:.1f} of {size / MIB:.1f} MiB free", advice)


def _pidfd() -> Finding:
    """Whether ranks can detect the death of another one at once."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (OSError, AttributeError) as error:
        return Finding("pidfd", f"not usable ({error})", "a dead rank is detected by polling, a few milliseconds later")
    return Finding("pidfd", "usable: a dead rank is detected at once")


def _limits() -> Finding:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    processes, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    is_low = files != resource.RLIM_INFINITY and files < FEW_FILES
    advice = "too few for many ranks: ulimit -n 4096" if is_low else ""
    return Finding("limits", f"{_count(files)} open files, {_count(processes)} processes", advice)


def _count(limit: int) -> str:
    return "unlimited" if limit == resource.RLIM_INFINITY else str(limit)
