"""Random stage programs against HiGHS for a given time: `python tests/fuzz/fuzz_lp.py --seconds 600 [--seed 1]`.

Every program is solved with the sparse factorisation and with the dense inverse, and as a whole by highspy. A
difference ends the search and prints the seed that shows it.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit" / "solver"))

from random_programs import Shape, random_program, right_sides, whole_lp
from small_programs import all_chains, cut_rows, random_cuts

from cobre.solver.batches import Outputs, Realisations, no_bases
from cobre.solver.simplex import SimplexOptions, SimplexSolver

OPENINGS = 6
TOLERANCE = 1e-7


def random_shape(random: np.random.Generator) -> Shape:
    """Draw a shape: small or large, square or wide, with ties and with coefficients that are decades apart."""
    rows = int(random.integers(1, 120))
    columns = rows + int(random.integers(6, 200))
    return Shape(
        rows=rows,
        columns=columns,
        states=int(random.integers(1, min(columns, 20))),
        degenerate=bool(random.random() < 0.4),
        spread=float(random.choice([0.0, 0.0, 2.0, 4.0])),
        inequalities=float(random.random()),
        boxed=float(random.random()),
        tiers=int(random.integers(0, 4)),
        free=int(random.integers(0, 4)) if random.random() < 0.3 else 0,
    )


def check(seed: int) -> int:
    """Solve one program in all ways; return how many solves the library had to do."""
    random = np.random.default_rng(seed)
    shape = random_shape(random)
    program, right = random_program(shape, seed), right_sides(shape, OPENINGS, seed)
    cuts = random_cuts(int(random.integers(1, 80)), shape.states, seed)
    expected = [whole_lp(program, side, cuts) for side in right]
    states, items = np.zeros((1, shape.states)), np.arange(OPENINGS, dtype=np.int32)
    noise, none = np.zeros((OPENINGS, 0)), np.full(1, -1, np.int32)
    library = 0
    for max_dense_rows in (0, 1000):
        solver = SimplexSolver(1, SimplexOptions(max_dense_rows=max_dense_rows))
        solver.load(0, program)
        chains = all_chains(states, Realisations(right, noise, noise), items, no_bases(program), none)
        batch = solver.solve(0, cut_rows(*cuts), chains, Outputs(gradient=True))
        error = np.abs(batch.objective - expected) / (1.0 + np.abs(expected))
        if not error.max() <= TOLERANCE:
            raise AssertionError(f"seed {seed}, {shape}, dense up to {max_dense_rows} rows: {error.max():.3g} apart")
        library += batch.library_solves
    return library


def main() -> None:
    """Check random programs until the time is up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=1)
    wanted = parser.parse_args()
    end, programs, library = time.monotonic() + wanted.seconds, 0, 0
    while time.monotonic() < end:
        library += check(wanted.seed + programs)
        programs += 1
    solves = programs * OPENINGS * 2
    print(f"{programs} programs, {solves} solves, all as HiGHS has them; the library did {library} of them")


if __name__ == "__main__":
    main()
