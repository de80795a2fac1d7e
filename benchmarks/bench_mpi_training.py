"""Cost of the contract in a whole training run on MPI, beside the same calls made by mpi4py directly.

Two ranks on MPICH and on Open MPI train an example; then they make the calls of that training again, back to back, in
three ways that take turns (`collectives/ranks/mpi_training.py`). Kept in benchmarks/results:
`python benchmarks/bench_mpi_training.py [--ranks 2] [--quick]`; quick: fewer iterations, printed only.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from collectives.contenders.base import WORLD_TIMEOUT_S, WorldFailedError
from collectives.contenders.mpi import MPICH, OPEN_MPI, SOURCES, Flavour
from collectives.contenders.processes import Command, environ_for, run_to_end
from collectives.environments import ROOT, UnavailableError, mpi_environment
from collectives.machine import describe_machine, restrict_to_cores
from collectives.report import table

RESULTS = Path(__file__).resolve().parent / "results"
STUDIES = {"four_regions": 30, "large": 10}  # iterations
QUICK_ITERATIONS = 4
CORES = 2
MILLI = 1e3


@dataclass(frozen=True, slots=True)
class Figures:
    """One training. Times are in seconds, of the slowest rank; inside: in calls, waiting for other ranks included.

    contract, direct, persistent: all calls of the training back to back, the median of the rounds.
    """

    study: str
    library: str
    iterations: int
    training: float
    calls: dict[str, int]
    inside: tuple[float, ...]
    contract: float
    direct: float
    persistent: float

    @property
    def cells(self) -> list[str]:
        """A row of the table."""
        calls = ", ".join(f"{count} {name}" for name, count in sorted(self.calls.items(), key=lambda item: -item[1]))
        share = (self.contract - self.direct) / self.training
        return [
            f"{self.study}, {self.iterations} iterations",
            self.library,
            f"{self.training:.2f}",
            calls,
            " to ".join(
                f"{100 * seconds / self.training:.2f}" for seconds in sorted({min(self.inside), max(self.inside)})
            ),
            f"{MILLI * self.contract:.2f}",
            f"{MILLI * self.direct:.2f}",
            f"**{100 * share:.3f}**",
            f"{MILLI * self.persistent:.2f}",
        ]


HEADER = (
    "study",
    "MPI",
    "training, s",
    "calls of a rank",
    "in calls, % of the training (ranks)",
    "contract, ms",
    "mpi4py directly, ms",
    "contract beyond mpi4py, % of the training",
    "persistent, ms",
)

EXPLANATION = """\
A training says by its trace how long its ranks were inside calls, waiting for each other included. Then its calls are
made again, back to back, in turns: by the contract, directly by mpi4py (sums folded in rank order by hand), and by
MPI's persistent collectives on fixed buffers. Medians of the rounds, of the slowest rank."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and store; return 1 if an MPI could not be measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2, help="ranks (2)")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ITERATIONS} iterations, printed only")
    options = parser.parse_args(arguments)
    restrict_to_cores(CORES)
    machine = describe_machine()
    figures, failures = [], []
    for study, iterations in STUDIES.items():
        for flavour in (MPICH, OPEN_MPI):
            try:
                figures.append(
                    measure(study, QUICK_ITERATIONS if options.quick else iterations, flavour, options.ranks)
                )
            except (UnavailableError, WorldFailedError) as error:
                print(f"{study} on {flavour.library}: {error}", file=sys.stderr)
                failures.append(f"{study} on {flavour.library}")
    page = to_markdown(figures, failures, machine, options.ranks)
    print(page)
    if not options.quick:
        (RESULTS / "mpi_training.md").write_text(page)
        content = {"machine": machine, "ranks": options.ranks, "trainings": [asdict(one) for one in figures]}
        (RESULTS / "mpi_training.json").write_text(json.dumps(content, indent=1) + "\n")
    return 1 if failures else 0


def measure(study: str, iterations: int, flavour: Flavour, size: int) -> Figures:
    """Measure one training and its calls on one MPI."""
    environment = mpi_environment(flavour.wheel)
    environment.ensure()
    mpiexec = [str(environment.program("mpiexec")), *flavour.arguments, "-n", str(size), str(environment.python)]
    with tempfile.TemporaryDirectory(prefix="cobre-bench-") as name:
        folder = Path(name)
        program = ["-m", "collectives.ranks.mpi_training", name, str(ROOT / "examples" / study), str(iterations)]
        environ = environ_for(environment.folder, SOURCES, **dict(flavour.environ))
        run_to_end([Command([*mpiexec, *program], environ)], folder, WORLD_TIMEOUT_S)
        ranks = [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(size)]
    if lost := sum(rank["lost"] for rank in ranks):
        raise WorldFailedError(f"{lost} calls are missing from the trace")
    seconds = {
        way: median(max(round_s) for round_s in zip(*(rank["seconds"][way] for rank in ranks), strict=True))
        for way in ("contract", "direct", "persistent")
    }
    return Figures(
        study,
        flavour.library,
        iterations,
        max(rank["wall"] for rank in ranks),
        ranks[0]["operations"],
        tuple(rank["inside"] for rank in ranks),
        **seconds,
    )


def to_markdown(figures: Sequence[Figures], failures: Sequence[str], machine: dict[str, str], size: int) -> str:
    """Return the page as Markdown."""
    facts = ", ".join(f"{name}: {value}" for name, value in machine.items())
    parts = [
        "# What the contract costs in a training on MPI",
        f"Measured {datetime.now(UTC):%Y-%m-%d} by `make bench-mpi`; {size} ranks; {facts}.",
        EXPLANATION,
        table(HEADER, [one.cells for one in figures]),
        *(f"Not measured: {failure}." for failure in failures),
    ]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.exit(main())
