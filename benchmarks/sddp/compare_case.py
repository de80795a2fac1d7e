"""Compare one case in Cobre and cobre-python, in turns on one thread: CPU time, solves, pivots.

`python benchmarks/sddp/compare_case.py CASE [--iterations 2] [--forward-passes 1] [--rounds 3]`

CPU time (user and system) is reported in addition to wall time, which other load on the machine affects.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from collectives.environments import UnavailableError
from collectives.report import table
from sddp.figures import first_bounds_apart, first_upper_bounds_apart
from sddp.peer_environment import peer_environment
from sddp.runs import Contender, Run, RunFailedError, ours, peer
from sddp.studies import Study

ROUNDS = 3
HEADER = (
    "round",
    "contender",
    "CPU, s",
    "wall, s",
    "solves",
    "pivots",
    "us per pivot",
    "CPU us per pivot",
    "first lower bound",
    "lower bound",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, print; 1 when a run failed, or when the first bounds are not the same."""
    options = parse(arguments)
    study = Study(options.case.name, options.case, options.iterations, forward_passes=options.forward_passes)
    contenders = [ours()]
    try:
        contenders += [] if options.alone else [peer(peer_environment().python)]
        rounds = [take_turns(study, contenders, number) for number in range(options.rounds)]
    except (RunFailedError, UnavailableError) as error:
        print(error, file=sys.stderr)
        return 1
    print(table(HEADER, [row(number, *entry) for number, runs in enumerate(rounds, 1) for entry in runs.items()]))
    return 0 if options.alone else judge(rounds, options.tolerance)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", type=Path, help="a case directory that both programs accept")
    parser.add_argument("--iterations", type=int, help="of training (as the case says)")
    parser.add_argument("--forward-passes", type=int, help="of an iteration (as the case says)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"turns of each ({ROUNDS})")
    parser.add_argument("--tolerance", type=float, default=1e-9, help="relative, of first lower bounds (1e-9)")
    parser.add_argument("--alone", action="store_true", help="ours only")
    return parser.parse_args(arguments)


def take_turns(study: Study, contenders: Sequence[Contender], number: int) -> dict[str, Run]:
    """Let each program train once, in rotating order."""
    order = contenders if number % 2 == 0 else reversed(contenders)
    return {contender.name: contender.run(study, 1, study.iterations) for contender in order}


def row(number: int, contender: str, run: Run) -> list[str]:
    """Return the cells of the table row."""
    pivots = sum(run.pivots)
    return [
        str(number),
        contender,
        f"{run.cpu_s:.2f}",
        f"{run.training_s:.2f}",
        str(sum(run.solves)),
        str(pivots),
        f"{run.us_per_pivot:.1f}",
        f"{1e6 * run.cpu_s / max(1, pivots):.1f}",
        f"{run.first_lower_bound:.6f}",
        f"{run.lower_bound:.6f}",
    ]


def judge(rounds: Sequence[dict[str, Run]], tolerance: float) -> int:
    """Print ratios and how far apart the first bounds are; 1: too far."""
    pairs = [(runs["cobre"], runs["cobre-python"]) for runs in rounds]
    for name in ("cpu_s", "training_s"):
        ratios = [getattr(one, name) / getattr(other, name) for one, other in pairs]
        what = "CPU time" if name == "cpu_s" else "wall time"
        print(f"{what}, ours by cobre-python's: {median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})")
    lower, upper = first_bounds_apart(*pairs[0]), first_upper_bounds_apart(*pairs[0])
    print(f"first bounds: lower {lower:.1e} apart, upper {upper:.1e}; at most {tolerance:g} is the same")
    return 0 if max(lower, upper) <= tolerance else 1


if __name__ == "__main__":
    sys.exit(main())
