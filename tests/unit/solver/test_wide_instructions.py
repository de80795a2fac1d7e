"""Processors without wide instructions give the same bits: solves and folds, once with them and once without."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import hashlib
import numpy as np
from small_programs import all_chains, cut_rows, program, random_cuts, random_states, realisations
from cobre._native import fold
from cobre.solver.batches import Chains, Outputs, no_bases
from cobre.solver.simplex import SimplexOptions, SimplexSolver

digest = hashlib.sha256()
for max_dense_rows in (100, 0):
    stage, states, noise = program(2), random_states(20, 2), realisations(8)
    solver = SimplexSolver(1, SimplexOptions(max_dense_rows=max_dense_rows))
    solver.load(0, stage)
    starts = np.full(len(states), -1, np.int32)
    chains = all_chains(states, noise, np.arange(8, dtype=np.int32), no_bases(stage), starts)
    wanted = Outputs(gradient=True, solution=True, basis=True)
    batch = solver.solve(0, cut_rows(*random_cuts(300, 6)), chains, wanted)
    for name in ("objective", "gradient", "primal", "dual"):
        digest.update(np.ascontiguousarray(getattr(batch, name)).tobytes())
random = np.random.default_rng(5)
for dtype in (np.float32, np.float64, np.int16):
    inputs = [(1000.0 * random.standard_normal(1001)).astype(dtype) for _ in range(5)]
    for op in range(3):
        out = np.empty_like(inputs[0])
        fold(inputs, out, op)
        digest.update(out.tobytes())
print(digest.hexdigest())
"""


def digest(value: str) -> str:
    environ = {**os.environ, "COBRE_WIDE_INSTRUCTIONS": value}
    command = [sys.executable, "-c", PROGRAM]
    return subprocess.check_output(command, text=True, timeout=100, env=environ, cwd=Path(__file__).parent)


def test_same_bits_without_wide_instructions() -> None:
    assert digest("1") == digest("0")
