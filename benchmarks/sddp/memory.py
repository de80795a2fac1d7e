"""Memory of all ranks of a study, by PSS, which counts a page once however many ranks map it.

`python benchmarks/sddp/memory.py`: the large example on 1 and on 4 shm ranks. Ends with 1 when the shareable data is
held more than once.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

from cobre.comm import Backend, launch  # noqa: E402
from cobre.io.case import load_case  # noqa: E402
from cobre.sddp.ranks import build_once_per_node  # noqa: E402
from cobre.study.preparation.on_ranks import ReadyStudy  # noqa: E402
from cobre.study.preparation.prepare import prepare  # noqa: E402
from cobre.study.preparation.study_solver import make_solver  # noqa: E402
from cobre.study.requests import with_iterations  # noqa: E402
from cobre.study.training.train import train_study  # noqa: E402
from collectives.footprint import Growth, measure_growth  # noqa: E402
from collectives.report import table  # noqa: E402

RANKS = (1, 4)
ITERATIONS = 4
PAGE_SLACK_BYTES = 1 << 20  # control blocks, ends of pages, and what collectives use of their window
HEADER = (
    "ranks",
    "problem, MB",
    "cuts, MB",
    "shared, all ranks (PSS), MB",
    "once would be, MB",
    "saved, MB",
    "growth of private memory, largest rank, MB",
    "growth of RSS, all ranks, MB",
)


@dataclass(frozen=True, slots=True)
class Held:
    """Memory of one rank at the end of a training run, in bytes."""

    problem: int
    saved: int
    pool: int
    cuts: int
    cut_stages: int
    growth: Growth


@dataclass(frozen=True, slots=True)
class Finding:
    """Memory of all ranks of a run."""

    ranks: list[Held]

    @property
    def once(self) -> int:
        """Return the size of the shareable data."""
        return self.ranks[0].problem + self.ranks[0].pool

    @property
    def shared(self) -> int:
        """Return the shared memory of all ranks together."""
        return sum(rank.growth.shared for rank in self.ranks)

    @property
    def is_held_once(self) -> bool:
        """Return whether no shareable data is stored twice."""
        return self.shared <= self.once + PAGE_SLACK_BYTES

    def row(self) -> list[str]:
        """Return the cells of the table row, in MB."""
        first = self.ranks[0]
        private = max(rank.growth.private for rank in self.ranks)
        resident = sum(rank.growth.resident for rank in self.ranks)
        sizes = (first.problem, first.pool, self.shared, self.once, first.saved, private, resident)
        return [str(len(self.ranks)), *(f"{size / 1e6:.2f}" for size in sizes)]


def hold(comm: Backend, folder: str, iterations: int) -> Held:
    """Prepare and train a study from its folder; return its memory. Collective: call on every rank."""
    with measure_growth(comm) as growth:
        shared = build_once_per_node(comm, lambda: prepare(load_case(folder, with_iterations(None, iterations))))
        study = shared.value
        pool = train_study(comm, ReadyStudy(study, make_solver(study, 1))).context.pool
    return Held(shared.shared_bytes, shared.saved_bytes, pool.nbytes, pool.count, pool.num_stages, growth)


def measure(ranks: int, folder: Path, iterations: int) -> Finding:
    """Measure one run on shm."""
    return Finding(launch.run(hold, ranks, "shm", (str(folder), iterations)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", type=Path, default=ROOT / "examples" / "large", help="a case directory (large)")
    parser.add_argument("--iterations", type=int, default=ITERATIONS, help=f"of training ({ITERATIONS})")
    options = parser.parse_args(arguments)
    findings = [measure(ranks, options.case, options.iterations) for ranks in RANKS]
    print(table(HEADER, [finding.row() for finding in findings]))
    held = findings[0].ranks[0]
    print(f"\n{held.pool / max(1, held.cuts * held.cut_stages):.0f} bytes per cut and stage; ", end="")
    print(f"{held.problem / held.cut_stages:.0f} bytes of the problem per stage")
    twice = [str(len(finding.ranks)) for finding in findings if not finding.is_held_once]
    print(f"held more than once on {', '.join(twice)} ranks" if twice else "the shareable data is held once")
    return 1 if twice else 0


if __name__ == "__main__":
    sys.exit(main())
