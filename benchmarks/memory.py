"""Real cost of shared memory, by PSS, which counts a page once however many ranks map it.

Two questions: does a region cost its bytes once per node, and does a collective need a window that does not grow with
the payload? `python benchmarks/memory.py` measures shm worlds; `mpiexec -n 4 python benchmarks/memory.py --joined`
measures the first question in the current world, mpi for example. The exit code is 1 if an answer is no.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np

from cobre.comm import create_communicator, launch
from collectives.cases import BYTES_PER_ELEMENT, Case, select_cases
from collectives.footprint import Growth, fill_region, gather
from collectives.report import table

RANKS = 4
# What ranks of a node share, with the sizes that the founding documents name for a production case; together the first
# two are the 20.8 MB of which sharing saves 62.4 MB in four ranks.
REGIONS = {
    "opening tree, 0.8 MB": 100_000,
    "case data, 20 MB": 2_500_000,
    "opening tree and case data, 20.8 MB": 2_600_000,
    "cut pool at capacity, 250 MB": 31_250_000,
}
PAYLOADS = ("allgatherv 3.2 MB", "allgatherv 206 MB")
REGION_LIMIT = 1.1  # times its bytes: pages of the control block come on top
WINDOW_LIMIT_MB = 64.0  # what a container has as /dev/shm by default
HEADER = (
    "MB",
    "payload",
    "shared, all ranks (PSS)",
    "limit",
    "shared, largest rank",
    "growth of private memory, largest rank",
    "growth of RSS, all ranks",
    "peak growth of RSS, largest rank",
)


@dataclass(frozen=True, slots=True)
class Finding:
    """Memory that the ranks use, and how much shared memory they may use together. shared: bytes by rank."""

    what: str
    payload_mb: float
    limit_mb: float
    shared: list[int]
    growths: list[Growth]

    @property
    def shared_mb(self) -> float:
        """Return the shared memory of all ranks together."""
        return sum(self.shared) / 1e6

    @property
    def fits(self) -> bool:
        """Return whether the memory is within the limit."""
        return self.shared_mb <= self.limit_mb

    def row(self) -> list[str]:
        """Return the cells of the table row, in MB."""
        values = (
            self.payload_mb,
            self.shared_mb,
            self.limit_mb,
            max(self.shared) / 1e6,
            max(growth.private for growth in self.growths) / 1e6,
            sum(growth.resident for growth in self.growths) / 1e6,
            max(growth.peak for growth in self.growths) / 1e6,
        )
        return [self.what, *(f"{value:.1f}" for value in values)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=RANKS, help=f"size of the world ({RANKS})")
    parser.add_argument("--joined", action="store_true", help="measure regions as a rank of the present world")
    options = parser.parse_args(arguments)
    if options.joined:
        return measure_joined()
    ranks = options.ranks
    regions = [measure_region(ranks, name) for name in REGIONS]
    findings = [*regions, *(measure_window(ranks, case) for case in select_cases(PAYLOADS))]
    print(f"What {ranks} ranks use:\n\n{table(HEADER, [finding.row() for finding in findings])}\n")
    too_much = [finding.what for finding in findings if not finding.fits]
    print(f"too much: {', '.join(too_much)}" if too_much else "all within their limits")
    return 1 if too_much else 0


def measure_region(ranks: int, name: str) -> Finding:
    """Measure the memory of a region that all ranks read."""
    return region_finding(name, launch.run(fill_region, ranks, "shm", (REGIONS[name],)))


def region_finding(name: str, growths: list[Growth]) -> Finding:
    payload_mb = REGIONS[name] * BYTES_PER_ELEMENT / 1e6
    return Finding(name, payload_mb, REGION_LIMIT * payload_mb, [growth.shared for growth in growths], growths)


def measure_joined() -> int:
    """Measure on every rank; rank 0 prints the memory of the regions in all ranks, and the saving."""
    too_much = False
    with create_communicator() as comm:
        for name, elements in REGIONS.items():
            # On mpi a window is freed when the next one is created, which must not be during the measurement.
            comm.create_shared_region(1, "u1").close()
            growth = fill_region(comm, elements)
            table_of = np.empty((comm.size, 5))
            comm.allgatherv(np.array(astuple(growth), np.float64), table_of.reshape(-1), [5] * comm.size)
            finding = region_finding(name, [Growth(*map(int, row)) for row in table_of.tolist()])
            private_mb = sum(growth.private for growth in finding.growths) / 1e6
            saved_mb = comm.size * finding.payload_mb - finding.shared_mb - private_mb
            too_much = too_much or not finding.fits
            if comm.rank == 0:
                print(
                    f"{comm.backend}, {comm.size} ranks: {name}: {finding.shared_mb:.1f} MB shared (PSS, all ranks), "
                    f"{private_mb:.1f} MB private, saves {saved_mb:.1f} of {comm.size * finding.payload_mb:.1f} MB"
                )
    return 1 if too_much else 0


def measure_window(ranks: int, case: Case) -> Finding:
    """Measure the window that carries the payload of one collective; it may exist before the call."""
    growths = launch.run(gather, ranks, "shm", (case,))
    shared = [growth.shared_before + growth.shared for growth in growths]
    return Finding(f"window of {case.name}", case.nbytes / 1e6, WINDOW_LIMIT_MB, shared, growths)


if __name__ == "__main__":
    sys.exit(main())
