"""Cost of an iteration with many cuts, relative to one with few, on one thread.

`python benchmarks/bench_many_cuts.py late CASE` trains for 400 iterations. Iterations that begin with all of its cuts
are then compared with iterations that begin with those of the first 40, in turns.
`... filled CASE` trains until there are 100 cuts a stage, adds random convex combinations of them up to 10,000, and
compares likewise. Such combinations are valid and nowhere above all real cuts: solves make the same pivots, and what
remains is the cost of the cuts.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np

from cobre.comm.backends.local import LocalCommunicator
from cobre.io.case import load_case
from cobre.policy.object import Policy
from cobre.runs.events import Event
from cobre.sddp.cut_pool import CutSet
from cobre.study.preparation.on_ranks import ReadyStudy
from cobre.study.preparation.prepare import prepare
from cobre.study.preparation.study_solver import make_solver
from cobre.study.requests import Overrides, TrainingRequest, with_iterations
from cobre.study.training.train import train_study
from collectives.machine import describe_machine
from collectives.report import table

EARLY, LATE = 40, 400  # iterations whose cuts are compared
FEW, MANY, PASSES = 100, 10_000, 4  # cuts a stage, and the forward passes of an iteration that makes them
FIRST, LAST = 2, 4  # iterations that count in each turn: the first one has no bases to start from
ROUNDS = 5
PARTS = 3  # real cuts in a convex combination


@dataclass(frozen=True, slots=True)
class Iteration:
    """One iteration of a training. cuts: of a stage, at its end."""

    cpu_s: float
    solves: int
    pivots: int
    cuts: int


class Training:
    """A case that is trained several times."""

    def __init__(self, case: Path, overrides: Overrides | None, iterations: int) -> None:
        self.study = prepare(load_case(case, with_iterations(overrides, iterations)))
        self.solver = make_solver(self.study, 1)

    def run(self, start: Policy | None = None) -> tuple[list[Iteration], Policy]:
        """Train; return every iteration, and the policy."""
        clock = [0.0]

        def emit(event: Event) -> None:
            if event["event"] == "iteration":
                clock.append(time.process_time())

        with LocalCommunicator() as comm:
            clock[0] = time.process_time()
            ready = ReadyStudy(self.study, self.solver)
            trained = train_study(comm, ready, TrainingRequest(None, warm_start=start), emit)
            found = [
                Iteration(end - begin, record.solves, record.simplex_iterations, record.cuts)
                for (begin, end), record in zip(pairwise(clock), trained.history, strict=True)
            ]
            return found, Policy.of(self.study, trained.context.pool, trained.history)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pools", choices=("late", "filled"), help="what is compared")
    parser.add_argument("case", type=Path, help="a case directory")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"turns of either pool ({ROUNDS})")
    options = parser.parse_args(arguments)
    overrides: Overrides = {"training.cut_selection": {}}
    if options.pools == "filled":
        overrides["training.selection"] = {"method": "sampled", "forward_passes": PASSES}
    print(", ".join(f"{name}: {value}" for name, value in describe_machine().items()), end="\n\n")
    pools = late_pools(options.case, overrides) if options.pools == "late" else filled_pools(options.case, overrides)
    print(compare(Training(options.case, overrides, LAST), *pools, options.rounds))
    return 0


def late_pools(case: Path, overrides: Overrides) -> tuple[Policy, Policy]:
    """Return the policies after the early and after the late iteration."""
    _, late = Training(case, overrides, LATE).run()
    slots = int((late.created <= EARLY).sum())
    cuts = tuple(CutSet(stage.intercepts[:slots], stage.coefficients[:slots]) for stage in late.cuts)
    return with_cuts(late, cuts), late


def filled_pools(case: Path, overrides: Overrides) -> tuple[Policy, Policy]:
    """Return a policy of few cuts, and one with random convex combinations of them after them."""
    _, few = Training(case, overrides, FEW // PASSES).run()
    random = np.random.default_rng(1)
    cuts = []
    for stage in few.cuts:
        chosen = random.integers(0, FEW, (MANY - FEW, PARTS)) if len(stage) else np.zeros((0, PARTS), np.intp)
        weights = random.dirichlet(np.ones(PARTS), len(chosen))
        intercepts = (weights * stage.intercepts[chosen]).sum(axis=1)
        coefficients = (weights[:, :, None] * stage.coefficients[chosen]).sum(axis=1)
        cuts.append(
            CutSet(np.concatenate([stage.intercepts, intercepts]), np.concatenate([stage.coefficients, coefficients]))
        )
    return few, with_cuts(few, tuple(cuts))


def with_cuts(policy: Policy, cuts: tuple[CutSet, ...]) -> Policy:
    """Return a policy with other cuts, all of them active."""
    slots = np.zeros(max(map(len, cuts)), np.int32)
    active = tuple(np.ones(len(stage), np.uint8) for stage in cuts)
    return replace(policy, cuts=cuts, active=active, created=slots, forward_pass=slots)


def compare(training: Training, few: Policy, many: Policy, rounds: int) -> str:
    """Return a table of iterations that begin with either policy, and of their ratios, by round."""
    rows, ratios = [], []
    for number in range(rounds):
        policies = (few, many) if number % 2 == 0 else (many, few)
        runs = sorted((training.run(policy)[0][FIRST - 1 :] for policy in policies), key=lambda run: run[0].cuts)
        ratios.append(cpu_ms(runs[1]) / cpu_ms(runs[0]))
        rows += [[str(number + 1), *cells(run)] for run in runs]
    rows.append(["", "ratio of CPU", f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})", ""])
    return table(("round", "cuts a stage", "CPU of an iteration, ms", "pivots a solve"), rows)


def cpu_ms(run: Sequence[Iteration]) -> float:
    """Return the CPU time of the median iteration."""
    return 1e3 * median(iteration.cpu_s for iteration in run)


def cells(run: Sequence[Iteration]) -> list[str]:
    """Return the cells of some iterations that began with the same cuts."""
    per_solve = sum(iteration.pivots for iteration in run) / sum(iteration.solves for iteration in run)
    return [f"{run[-1].cuts:,}", f"{cpu_ms(run):.1f}", f"{per_solve:.2f}"]


if __name__ == "__main__":
    sys.exit(main())
