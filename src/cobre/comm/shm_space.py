"""Free space in shared memory, and the message for when it is not enough."""

import os

MIB = 1 << 20
SHM_FOLDER = "/dev/shm"  # noqa: S108 - where Linux, and the MPIs on it, keep POSIX shared memory
ADVICE = "docker run --shm-size=512m, in Kubernetes an emptyDir with medium: Memory mounted at /dev/shm, or backend tcp"


def free_shm_bytes() -> int | None:
    """Bytes that can still be allocated in `/dev/shm`; None if it does not exist."""
    try:
        status = os.statvfs(SHM_FOLDER)
    except OSError:
        return None
    return status.f_bavail * status.f_frsize


def no_shm_space(nbytes: int, cause: str = "") -> str:
    """The message for a failed allocation: what was needed, what is free, the cause, and what to do about it."""
    free = free_shm_bytes()
    have = "" if free is None else f", {SHM_FOLDER} has {free / MIB:.1f} MiB free"
    reason = f" ({cause})" if cause else ""
    return f"need {nbytes / MIB:.1f} MiB of shared memory{have}{reason}: {ADVICE}"
