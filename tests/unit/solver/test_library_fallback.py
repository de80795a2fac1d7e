"""LPs without a dual feasible start, which our own simplex may leave to HiGHS: right optima and slopes.

Power of the thermal plant has no lower bound here: what is too much is sold at its price. No bound holds such a column
at the slack basis. The sparse simplex ends with primal pivots. Some LPs of the dense one end at HiGHS, which is given
the violated cuts a few at a time; the rest of a chain starts from its basis.
"""

from dataclasses import replace
from pathlib import Path

import highspy
import numpy as np
import pytest
from small_programs import (
    HYDROS,
    all_chains,
    cut_rows,
    program,
    random_cuts,
    random_states,
    realisations,
    reference_cost,
)

from cobre.solver.batches import Batch, Chains, Outputs, Realisations, SolveFailedError, no_bases
from cobre.solver.program import StageProgram
from cobre.solver.simplex import SimplexOptions, SimplexSolver

THERMAL = 7
CUTS, OPENINGS = 300, 6
BOTH_METHODS = pytest.mark.parametrize("max_dense_rows", [100, 0], ids=["dense", "sparse"])


def selling(order: int) -> StageProgram:
    stage = program(order)
    lower = stage.column_lower.copy()
    lower[THERMAL] = -np.inf
    return replace(stage, column_lower=lower)


def small_loads() -> Realisations:
    noise = realisations(OPENINGS)
    return Realisations(noise.inflow_m3s, noise.load_mw / 8.0, noise.availability)


def solved(stage: StageProgram, states: np.ndarray, max_dense_rows: int, threads: int = 1) -> tuple[Batch, tuple]:
    cuts = random_cuts(CUTS, states.shape[1])
    solver = SimplexSolver(threads, SimplexOptions(max_dense_rows=max_dense_rows, max_added_per_round=3))
    solver.load(0, stage)
    starts = np.full(len(states), -1, np.int32)
    chains = all_chains(states, small_loads(), np.arange(OPENINGS, dtype=np.int32), no_bases(stage), starts)
    wanted = Outputs(gradient=True, solution=True, basis=True)
    return solver.solve(0, cut_rows(*cuts), chains, wanted), cuts


@BOTH_METHODS
@pytest.mark.parametrize("order", [0, 1, 2])
def test_optimum_equals_full_lp(order: int, max_dense_rows: int) -> None:
    stage, states, noise = selling(order), random_states(4, order), small_loads()
    batch, cuts = solved(stage, states, max_dense_rows)
    if max_dense_rows == 0:
        assert batch.library_solves == 0  # primal pivots correct what has the wrong sign
    elif order == 0:
        assert batch.library_solves > 0  # the number varies with the random LPs
    expected = [
        reference_cost(state, noise.inflow_m3s[w], noise.load_mw[w, 0], cuts, stage.column_lower)
        for state in states
        for w in range(OPENINGS)
    ]
    np.testing.assert_allclose(batch.objective, expected, rtol=1e-7, atol=1e-6)


@BOTH_METHODS
def test_gradients_are_slopes_of_the_cost(max_dense_rows: int) -> None:
    """A cut made from one is below the true cost everywhere, and equal to it at its own state."""
    stage, states, noise = selling(1), random_states(2, 1), small_loads()
    batch, cuts = solved(stage, states, max_dense_rows)
    for number, (state, w) in enumerate((state, w) for state in states for w in range(OPENINGS)):
        for other in random_states(10, 1, seed=9):
            true = reference_cost(other, noise.inflow_m3s[w], noise.load_mw[w, 0], cuts, stage.column_lower)
            below = batch.objective[number] + batch.gradient[number] @ (other - state)
            assert below <= true + 1e-5 * max(1.0, abs(true))


@BOTH_METHODS
def test_threads_do_not_change_a_bit(max_dense_rows: int) -> None:
    states = random_states(9, 1)
    batches = [solved(selling(1), states, max_dense_rows, threads)[0] for threads in (1, 3)]
    for name in ("objective", "gradient", "primal", "dual", "basis_status", "basis_cuts"):
        assert np.array_equal(*(getattr(batch, name) for batch in batches)), name
    assert batches[0].library_solves == batches[1].library_solves


FUTURE_COST = 2


@BOTH_METHODS
def test_saved_lp_lists_cuts_that_made_it_infeasible(max_dense_rows: int, tmp_path: Path) -> None:
    """The future may cost 1 at most: without cuts that is feasible, with them it is not."""
    stage = program()
    upper = stage.column_upper.copy()
    upper[FUTURE_COST] = 1.0
    solver = SimplexSolver(1, SimplexOptions(max_dense_rows=max_dense_rows, max_added_per_round=3))
    solver.load(0, replace(stage, column_upper=upper))
    intercepts, slopes = random_cuts(CUTS, HYDROS)
    chains = Chains.single(random_states(1), small_loads(), np.zeros(1, np.int32), no_bases(stage))
    with pytest.raises(SolveFailedError, match="infeasible"):
        solver.solve(0, cut_rows(intercepts, slopes), chains, Outputs())
    solver.save_failed(0, tmp_path / "failed.mps")
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    model.readModel(str(tmp_path / "failed.mps"))
    lp = model.getLp()
    rows, cuts = lp.row_names_[: len(stage.names.rows)], lp.row_names_[len(stage.names.rows) :]
    assert (tuple(lp.col_names_), tuple(rows)) == (stage.names.columns, stage.names.rows)
    numbers = [int(name.removeprefix("cut_")) for name in cuts]
    assert numbers and len(set(numbers)) == len(numbers)
    # Each row is the cut that its name says: theta - slopes . storage >= intercept.
    np.testing.assert_allclose(lp.row_lower_[len(rows) :], intercepts[numbers])
