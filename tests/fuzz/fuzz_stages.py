"""Solves of decks and generated systems, unchanged and in other units, against HiGHS: `make fuzz-stages`.

`python tests/fuzz/fuzz_stages.py [--solves 100000] [--seed 1] [--reference-every 20] [--case NAME ...]`. Every case
trains for a few iterations; its backward passes are solved again, solve by solve, in units that random powers of ten
change. Each solve must end within 50 times the median pivots of its case and fail nowhere, and its primal and dual
values must be feasible and close the duality gap; every n-th optimum is also compared with HiGHS's of the LP in its own
units. LPs that HiGHS does not solve in any way are counted. Prints a line for each case and scale, and every solve that
breaks a rule.

With `--case`, which may be repeated, only these cases are solved, each exactly as in a run of all of them: so a run can
be split over processes, and a broken rule repeated alone.
"""

import argparse
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from published_data import DECKS, ROOT
from stage_lps import Call, Solved, record, rescaled, solve_each
from stage_references import WrittenLp, optimality, reference_costs

from cobre.solver.program import MAX_DENSE_ROWS

SPREADS = (0.0, 0.0, 1.0, 2.0)  # decades by which units change
MOST_PIVOTS = 50
TOLERANCE = 1e-6  # HiGHS's own: reduced costs of 1e-9 times ranges of 1e5
# Case, iterations, forward passes (None: those of the case), and its part of the solves: large LPs take a hundred times
# as long as small ones.
CASES = (
    (DECKS / "pmo_2018_never_ends", 5, 4, 2),
    (DECKS / "pmo_2018_common_12", 4, 2, 2),
    (DECKS / "pmo_2025_12_first_12", 2, 1, 0.4),
    (DECKS / "pmo_2025_12_v19_first_12", 1, 1, 0.4),
    (DECKS / "decomp_2024_05", 20, None, 0.4),  # a tree
    (DECKS / "decomp_2025_12_w1", 2, None, 0.4),
    (DECKS / "d12-par-annual", 6, 2, 1),
    (DECKS / "d28-decomp-weekly-monthly", 6, 2, 1),
    (DECKS / "d29-weekly-par-noise-sharing", 6, 2, 1),
    (DECKS / "d30-multi-resolution-monthly-quarterly", 6, 2, 1),
    (ROOT / "examples" / "large", 6, 4, 2),
    (ROOT / "examples" / "four_regions", 6, 4, 2),
)
GENERATED = (("--hydros", "80"), ("--hydros", "40", "--planes", "25"), ("--hydros", "160", "--openings", "10"))
GENERATED_PART = 2


@dataclass
class Tally:
    """Outcomes of the solves of one case in one spread of units."""

    pivots: list[int] = field(default_factory=list)
    library: int = 0
    failed: int = 0
    compared: int = 0
    without_reference: int = 0
    wrong: int = 0
    worst: float = 0.0
    widest_gap: float = 0.0

    def sentence(self) -> str:
        median, most = self._median, max(self.pivots or [0])
        return (
            f"{len(self.pivots)} solves, median {median:.0f} pivots, most {most} ({most / median:.1f} times),"
            f" library {self.library}, failed {self.failed}, widest gap {self.widest_gap:.1e};"
            f" {self.compared} against HiGHS, worst {self.worst:.1e}, {self.without_reference} without a reference"
        )

    @property
    def _median(self) -> float:
        """Return the median of solves that need pivots at all: a basis of the same LP needs none."""
        return float(np.median([pivots for pivots in self.pivots if pivots] or [1]))

    @property
    def is_clean(self) -> bool:
        """Return whether no rule is broken."""
        within = max(self.pivots or [0]) <= MOST_PIVOTS * self._median
        return within and self.failed == 0 and self.wrong == 0


def names() -> list[str]:
    """Return the names of the cases that are here."""
    decks = [path.name for path, _, _, _ in CASES if path.is_dir()]
    return [*decks, *(f"generated-{number}" for number in range(len(GENERATED)))]


def cases(folder: Path, seed: int, wanted: Sequence[str]) -> Iterator[tuple[str, float, list[Call]]]:
    """Record the decks that are here, the examples, and systems generated from the seed; each with its part."""
    for path, iterations, passes, part in CASES:
        if path.is_dir() and path.name in wanted:
            yield path.name, part, record(path, iterations, passes)
    for number, options in enumerate(GENERATED):
        path = folder / f"generated-{number}"
        if path.name not in wanted:
            continue
        program = ROOT / "examples" / "generate_sized.py"
        command = [sys.executable, program, path, *options, "--stages", "6", "--seed", str(seed)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        yield f"{path.name} ({' '.join(options)})", GENERATED_PART, record(path, 2, 2)


def check(call: Call, tally: Tally, spread: float, seed: int, every: int) -> None:
    """Solve all items of one call."""
    program = call.program if spread == 0.0 else rescaled(call.program, spread, seed)
    other = Call(program, call.cuts, call.chains)
    items = np.arange(len(call.chains.realisation_index), dtype=np.int32)
    where = f"seed {seed}, spread {spread}, {len(program.row_lower)} rows"
    written = WrittenLp.of(other)
    compared = items[(seed + items) % every == 0]
    expected = dict(zip(compared.tolist(), reference_costs(call, compared), strict=True))
    for item, one in enumerate(solve_each(other, items, MAX_DENSE_ROWS)):
        if one.failure:
            tally.failed += 1
            print(f"  failed: {where}, item {item}: {one.failure}", flush=True)
            continue
        tally.pivots.append(one.pivots)
        tally.library += one.is_by_library
        judge(written, item, one, tally, where)
        if item in expected:
            compare(one, expected[item], tally, f"{where}, item {item}")


def judge(written: WrittenLp, item: int, solved: Solved, tally: Tally, where: str) -> None:
    """Check that a solution is optimal by its own primal and dual values."""
    found = optimality(written, item, solved)
    tally.widest_gap = max(tally.widest_gap, found.gap)
    if not found.worst <= TOLERANCE:
        tally.wrong += 1
        print(f"  infeasible by {found.infeasibility:.2e}, gap {found.gap:.2e}: {where}, item {item}", flush=True)


def compare(solved: Solved, expected: float | None, tally: Tally, where: str) -> None:
    """Compare the cost of a solution with HiGHS's optimum; None: it found none."""
    if expected is None:
        tally.without_reference += 1
        print(f"  no optimum of HiGHS: {where}", flush=True)
        return
    error = abs(solved.objective - expected) / (1.0 + abs(expected))
    tally.compared += 1
    tally.worst = max(tally.worst, error)
    if not error <= TOLERANCE:
        tally.wrong += 1
        print(f"  {error:.2e} from HiGHS: {where}", flush=True)


def main() -> int:
    """Cycle through the cases until there are enough solves; return a non-zero code if a rule is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--solves", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reference-every", type=int, default=20)
    parser.add_argument("--case", action="append", choices=names(), help="solve this case alone; may be repeated")
    wanted = parser.parse_args()
    done, without, is_clean = 0, 0, True
    folder = tempfile.TemporaryDirectory()
    parts = sum(part for path, _, _, part in CASES if path.is_dir()) + GENERATED_PART * len(GENERATED)
    for name, part, calls in cases(Path(folder.name), wanted.seed, wanted.case or names()):
        share = math.ceil(wanted.solves * part / parts)
        tallies = {spread: Tally() for spread in SPREADS}
        order = np.random.default_rng(wanted.seed).permutation(len(calls) * len(SPREADS))
        solved = 0
        for turn in range(10_000):
            if solved >= share:
                break
            at = int(order[turn % len(order)])
            call, spread = calls[at % len(calls)], SPREADS[at // len(calls)]
            check(call, tallies[spread], spread, wanted.seed + turn, wanted.reference_every)
            solved += len(call.chains.realisation_index)
        for spread, tally in tallies.items():
            print(f"{name}, units by 10^{spread:g}: {tally.sentence()}", flush=True)
            is_clean = is_clean and tally.is_clean
            without += tally.without_reference
        done += solved
    folder.cleanup()
    verdict = "every rule holds" if is_clean else "some rule is broken, see above"
    print(f"{done} solves, {without} without a reference: {verdict}")
    return 0 if is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
