"""Resources that this process may use: cores, memory, and the space in /dev/shm."""

import math
import os
from pathlib import Path

CGROUP_ROOT = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")
NO_LIMIT = 1 << 60  # cgroup v1 writes a number near 2^63 if there is no limit


def usable_cores() -> int:
    """Count the cores that this process may use: the smaller of affinity mask and CPU quota, at least 1."""
    quota = cgroup_quota()
    cores = affinity_cores()
    return max(1, cores if quota is None else min(cores, math.ceil(quota)))


def affinity_cores() -> int:
    """Count the cores in this process's affinity mask; all cores if the platform has none."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cgroup_quota(root: Path = CGROUP_ROOT, membership: Path = MEMBERSHIP) -> float | None:
    """Return the tightest CPU quota of this process's cgroup and its parents, in cores; None: no limit."""
    folders = cgroup_folders("cpu", root, membership)
    quotas = [quota for folder in folders if (quota := _quota(folder)) is not None]
    return min(quotas, default=None)


def memory_limit_bytes(root: Path = CGROUP_ROOT, membership: Path = MEMBERSHIP) -> int | None:
    """Return the tightest memory limit of this process's cgroup and its parents; None: no limit."""
    files = [
        folder / name
        for folder in cgroup_folders("memory", root, membership)
        for name in ("memory.max", "memory.limit_in_bytes")  # cgroup v2, v1
    ]
    return min((limit for file in files if (limit := _limit(file)) is not None), default=None)


def cgroup_folders(controller: str, root: Path = CGROUP_ROOT, membership: Path = MEMBERSHIP) -> list[Path]:
    """Return the folders of this process's cgroups and their parents, for a controller such as "cpu" or "memory".

    Both versions are read: v2 has one hierarchy for all controllers, v1 a folder for each. The root folders are always
    among them: in a container they may be its own cgroup, while `membership` has the path on the host.
    """
    folders = [root, root / controller]
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return folders
    for line in lines:
        _, controllers, path = line.split(":", 2)
        base = root if not controllers else root / controller if controller in controllers.split(",") else None
        if base is not None:
            folder = base / path.lstrip("/")
            folders += [folder, *(parent for parent in folder.parents if parent.is_relative_to(base))]
    return folders


def _quota(folder: Path) -> float | None:
    try:
        limit, period = (folder / "cpu.max").read_text().split()  # cgroup v2
    except (OSError, ValueError):
        try:
            limit = (folder / "cpu.cfs_quota_us").read_text().strip()  # cgroup v1
            period = (folder / "cpu.cfs_period_us").read_text().strip()
        except OSError:
            return None
    if limit in ("max", "-1"):
        return None
    return int(limit) / int(period)


def _limit(file: Path) -> int | None:
    try:
        text = file.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() and int(text) < NO_LIMIT else None


# Free space in shared memory, and the message for when it is not enough.

MIB = 1 << 20
SHM_FOLDER = "/dev/shm"  # noqa: S108 - where Linux, and the MPIs on it, keep POSIX shared memory
ADVICE = "docker run --shm-size=512m, in Kubernetes an emptyDir with medium: Memory mounted at /dev/shm, or backend tcp"


def free_shm_bytes() -> int | None:
    """Return the bytes that can still be allocated in `/dev/shm`; None if it does not exist."""
    try:
        status = os.statvfs(SHM_FOLDER)
    except OSError:
        return None
    return status.f_bavail * status.f_frsize


def no_shm_space(nbytes: int, cause: str = "") -> str:
    """Return the message for a failed allocation: required and free bytes, the cause, and the remedy."""
    free = free_shm_bytes()
    available = "" if free is None else f", {SHM_FOLDER} has {free / MIB:.1f} MiB free"
    reason = f" ({cause})" if cause else ""
    return f"need {nbytes / MIB:.1f} MiB of shared memory{available}{reason}: {ADVICE}"
