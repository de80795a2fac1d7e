"""What shared memory really costs, by PSS, which counts a page once however many ranks map it.

Two questions, asked of shm worlds: does a region cost its bytes once per node, and does a collective need a
window that does not grow with the payload? `python benchmarks/memory.py`; ends with 1 when an answer is no.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from cobre.comm import launch
from collectives.cases import BYTES_PER_ELEMENT, Case, select_cases
from collectives.footprint import Growth, fill_region, gather
from collectives.report import table

RANKS = 4
REGION_ELEMENTS = 2_600_000  # 20.8 MB: the opening tree of a production case
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
    """What the ranks use, and how much shared memory they may use together. shared: bytes by rank."""

    what: str
    payload_mb: float
    limit_mb: float
    shared: list[int]
    growths: list[Growth]

    @property
    def shared_mb(self) -> float:
        """Shared memory of all ranks together."""
        return sum(self.shared) / 1e6

    @property
    def fits(self) -> bool:
        """Whether that is within the limit."""
        return self.shared_mb <= self.limit_mb

    def row(self) -> list[str]:
        """A line of the table."""
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
    """Ask, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=RANKS, help=f"size of the world ({RANKS})")
    ranks = parser.parse_args(arguments).ranks
    findings = [measure_region(ranks), *(measure_window(ranks, case) for case in select_cases(PAYLOADS))]
    print(f"What {ranks} ranks use:\n\n{table(HEADER, [finding.row() for finding in findings])}\n")
    too_much = [finding.what for finding in findings if not finding.fits]
    print(f"too much: {', '.join(too_much)}" if too_much else "all within their limits")
    return 1 if too_much else 0


def measure_region(ranks: int) -> Finding:
    """A region that all ranks read."""
    payload_mb = REGION_ELEMENTS * BYTES_PER_ELEMENT / 1e6
    growths = launch.run(fill_region, ranks, "shm", (REGION_ELEMENTS,))
    shared = [growth.shared for growth in growths]
    return Finding("region", payload_mb, REGION_LIMIT * payload_mb, shared, growths)


def measure_window(ranks: int, case: Case) -> Finding:
    """The window that one collective passes its payload through; it may have been there from the start."""
    growths = launch.run(gather, ranks, "shm", (case,))
    shared = [growth.shared_before + growth.shared for growth in growths]
    return Finding(f"window of {case.name}", case.nbytes / 1e6, WINDOW_LIMIT_MB, shared, growths)


if __name__ == "__main__":
    sys.exit(main())
