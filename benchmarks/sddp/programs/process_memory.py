"""Memory of this process, from the kernel. Needs only what both environments have."""

from pathlib import Path


def resident_bytes(field: str = "VmRSS") -> int:
    """Return VmRSS (now) or VmHWM (peak); getrusage would include the parent before the start."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return 1024 * int(line.split()[1])
    raise LookupError(field)
