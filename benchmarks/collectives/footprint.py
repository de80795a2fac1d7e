"""How much memory a rank uses, and by how much something made it grow."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cobre.comm import Backend
from collectives.cases import Case
from collectives.workload import check_ramp, part_of_ramp

KERNEL_ACCOUNT = Path("/proc/self/smaps_rollup")
RESET_PEAK = "5"  # value written to /proc/self/clear_refs to reset VmHWM


@dataclass(slots=True)
class Growth:
    """Bytes by which one rank grew.

    shared: its part of the pages of shared memory (PSS: a page that four ranks map counts a quarter in each).
    private: pages of its own. resident: everything that it maps, counted in full (RSS). peak: the most that
    the resident size grew meanwhile. shared_before: what it held of shared memory already.
    """

    shared_before: int = 0
    shared: int = 0
    private: int = 0
    resident: int = 0
    peak: int = 0


@contextmanager
def measure_growth(comm: Backend) -> Iterator[Growth]:
    """Fill in the growth at the end of the block, while all ranks still hold what they made in it."""
    growth = Growth()
    comm.barrier()
    before = memory_statistics()
    Path("/proc/self/clear_refs").write_text(RESET_PEAK)
    yield growth
    comm.barrier()
    after = memory_statistics()
    growth.shared_before = before["Pss_Shmem"]
    growth.shared = after["Pss_Shmem"] - before["Pss_Shmem"]
    growth.private = after["Pss_Anon"] - before["Pss_Anon"]
    growth.resident = after["Rss"] - before["Rss"]
    growth.peak = peak_bytes() - before["Rss"]
    comm.barrier()


def fill_region(comm: Backend, elements: int) -> Growth:
    """Fill a region on the leader and read all of it on every rank. Collective: call on every rank."""
    with measure_growth(comm) as growth:
        region = comm.create_shared_region(elements, "float64")
        if comm.is_leader:
            region.as_mut_array()[:] = 1.0
        region.fence()
        if region.as_array().sum() != elements:
            raise AssertionError("the region does not hold what the leader wrote")
    region.close()
    return growth


def gather(comm: Backend, case: Case) -> Growth:
    """Call allgatherv between private arrays allocated beforehand. Collective: call on every rank."""
    counts = case.counts(comm.size)
    send, recv = part_of_ramp(counts, comm.rank), np.full(case.elements, -1.0)
    with measure_growth(comm) as growth:
        comm.allgatherv(send, recv, counts)
    check_ramp(case, recv)
    return growth


def memory_statistics() -> dict[str, int]:
    """Return the kernel's memory statistics of this process, in bytes."""
    fields = (line.split() for line in KERNEL_ACCOUNT.read_text().splitlines()[1:])
    return {name.rstrip(":"): int(kilobytes) * 1024 for name, kilobytes, *_ in fields}


def peak_bytes() -> int:
    """Return the peak resident size since the last reset, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
