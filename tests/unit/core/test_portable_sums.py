"""Tests of sums with the same bits on every version of Python."""

import math
import random
import subprocess
import sys
from pathlib import Path

import pytest

from cobre.core.arrays import sum_in_order

ROOT = Path(__file__).resolve().parents[3]

# `sum` of floats as Python 3.12 and newer have it, up to its last bit: exact, then rounded once.
COMPENSATED = """
import builtins, math, sys
plain = builtins.sum
def compensated(values, /, start=0):
    values = list(values)
    kinds = {type(value) for value in values}
    if float in kinds and kinds <= {float, int}:
        return math.fsum([start, *values])
    return plain(values, start)
if sys.argv[1] == "compensated":
    builtins.sum = compensated
import cobre
case = sys.argv[2]
result = cobre.train(case, iterations=5, threads=1)
simulated = cobre.simulate(case, result.policy, scenarios=20, threads=1)
print(result.digest, repr(result.lower_bound), repr(result.upper_bound), repr(simulated.mean_cost))
"""


def test_sum_depends_on_order():
    values = [1e16, 1.0, -1e16, 3.5]
    assert sum_in_order(values) == 3.5
    assert math.fsum(values) == 4.5
    assert sum_in_order([]) == 0.0
    assert isinstance(sum_in_order([1, 2]), float)


def test_sum_is_a_left_fold():
    draw = random.Random(7)
    values = [draw.uniform(-1.0, 1.0) * 10.0 ** draw.randrange(12) for _ in range(500)]
    total = 0.0
    for value in values:
        total = total + value
    assert sum_in_order(iter(values)) == total


@pytest.mark.parametrize("case", ["two_reservoirs", "four_regions"])
def test_results_do_not_depend_on_how_python_adds(case):
    """A training and a simulation with the built-in `sum` of Python 3.12, whatever version this is."""
    printed = [
        subprocess.run(
            [sys.executable, "-c", COMPENSATED, way, ROOT / "examples" / case],
            capture_output=True,
            text=True,
            check=True,
            timeout=100,
        ).stdout
        for way in ("plain", "compensated")
    ]
    assert printed[0] == printed[1]
