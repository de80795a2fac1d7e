"""Describe the machine without identifying it."""

import os
import platform
from pathlib import Path

import numpy as np


def describe_machine() -> dict[str, str]:
    """Return properties by name, in the order of the report."""
    return {
        "cores": str(usable_cores()),
        "CPU": cpu_model(),
        "memory": f"{memory_gib():.0f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "NumPy": np.__version__,
        "load at the start": f"{os.getloadavg()[0]:.1f}" + priority(),
    }


def priority() -> str:
    """Return a note if the process has real-time priority: then the load of other programs does not matter."""
    ordinary = os.sched_getscheduler(0) in (os.SCHED_OTHER, os.SCHED_BATCH, os.SCHED_IDLE)
    return "" if ordinary else " (this run had real-time priority)"


def usable_cores() -> int:
    """Return the number of cores that this process and its children may use."""
    return len(os.sched_getaffinity(0))


def restrict_to_cores(count: int) -> None:
    """Keep this process and its children on the first cores that it may use; all contenders alike."""
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, allowed[:count])


def cpu_model() -> str:
    """Return the model name of the first core."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def memory_gib() -> float:
    """Return the physical memory in GiB."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
