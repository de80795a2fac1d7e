"""The factorised basis against dense linear algebra, on bases that HiGHS meets in stage LPs of the examples.

Random matrices have no structure. A stage's basis has: cascades, lines between buses, slacks, and cuts that are dense
in the states.
"""

from pathlib import Path

import highspy
import numpy as np
import pytest
from factorised_basis import Basis

from cobre.io.case import load_case
from cobre.solver.program import StageProgram
from cobre.study.preparation.prepare import prepare

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
CUTS = 30
PIVOTS = (0, 3, 10, 30, 100, 300, 10_000)


def programs(name: str) -> list[StageProgram]:
    """Return the LPs of the first stage, of one in the middle and of the last."""
    stages = prepare(load_case(EXAMPLES / name)).problem.stages
    return [stages[at].program for at in (0, len(stages) // 2, -1)]


def with_cuts(program: StageProgram, random: np.random.Generator) -> np.ndarray:
    """Return the matrix of the stage and random cuts: the future cost is above a plane that falls with every state."""
    rows, columns = len(program.row_lower), len(program.cost)
    whole = np.zeros((rows + CUTS, columns))
    for row in range(rows):
        inside = slice(program.row_start[row], program.row_start[row + 1])
        whole[row, program.column_index[inside]] = program.value[inside]
    whole[rows:, program.state_column] = random.uniform(0.0, 3.0, (CUTS, program.num_decided))
    whole[rows:, program.future_cost] = 1.0
    return whole


def solver(program: StageProgram, whole: np.ndarray, random: np.random.Generator) -> highspy.Highs:
    """Return a feasible LP: equations hold at a random point within the bounds, and cuts are near it."""
    rows, columns = len(program.row_lower), len(program.cost)
    lower, upper = program.column_lower, program.column_upper
    low, high = np.maximum(lower, -100.0), np.minimum(upper, 100.0)
    point = low + random.random(columns) * np.maximum(0.0, high - low)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = columns, rows + CUTS
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = program.cost, lower, upper
    at = whole @ point
    is_equation = program.row_lower == program.row_upper
    cuts = at[rows:] - random.uniform(0.0, 50.0, CUTS)
    lp.row_lower_ = [*np.where(is_equation, at[:rows], np.minimum(program.row_lower, at[:rows])), *cuts]
    lp.row_upper_ = [*np.where(is_equation, at[:rows], np.maximum(program.row_upper, at[:rows])), *[np.inf] * CUTS]
    entries = [np.flatnonzero(row) for row in whole]
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.cumsum([0, *map(len, entries)])
    lp.a_matrix_.index_ = np.concatenate(entries)
    lp.a_matrix_.value_ = np.concatenate([whole[row, index] for row, index in enumerate(entries)])
    highs = highspy.Highs()
    highs.silent()
    highs.setOptionValue("presolve", "off")
    highs.setOptionValue("solver", "simplex")
    highs.passModel(lp)
    return highs


def basic(status: list[highspy.HighsBasisStatus]) -> np.ndarray:
    return np.array([one == highspy.HighsBasisStatus.kBasic for one in status])


@pytest.mark.parametrize("name", ["two_reservoirs", "four_regions", "large"])
def test_bases_along_the_pivots_are_factorised(name: str) -> None:
    random = np.random.default_rng(3)
    seen = set()
    for program in programs(name):
        whole = with_cuts(program, random)
        highs = solver(program, whole, random)
        for pivots in PIVOTS:
            highs.setOptionValue("simplex_iteration_limit", pivots)
            highs.run()
            basis = highs.getBasis()
            columns, slacks = basic(basis.col_status), basic(basis.row_status)
            assert columns.sum() + slacks.sum() == len(whole)
            Basis(whole[:, columns], slacks).check(random, 1e-7)
            seen.add(int(columns.sum()))
        assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
        assert not slacks[-CUTS:].all()  # some cut is active
    assert len(seen) > 3  # bases of several sizes
