"""Badly scaled LPs: every solve terminates at the optimum."""

from dataclasses import replace
from pathlib import Path

import highspy
import numpy as np
import pytest
from random_programs import EMPTY, Shape, random_program, right_sides, whole_lp
from small_programs import cut_rows, random_cuts
from stage_lps import Call, Solved
from stage_references import WrittenLp, optimality

from cobre.solver.batches import Batch, Chains, Outputs, Realisations, SolveFailedError, no_bases
from cobre.solver.program import Names, StageProgram
from cobre.solver.simplex import SimplexOptions, SimplexSolver

BOTH_METHODS = pytest.mark.parametrize("max_dense_rows", [100, 0], ids=["dense", "sparse"])
HARRIS_TOLERANCE = 1e-10


def one_row(coefficient: list[float], cost: list[float], upper: list[float]) -> StageProgram:
    """Return columns with these numbers and an expensive unlimited one in one row, which needs the inflow."""
    columns = len(cost) + 2  # the expensive column, and the future cost
    names = Names(tuple(f"column{j}" for j in range(columns)), ("row",))
    return StageProgram(
        cost=np.array([*cost, 1e12, 1.0]),
        column_lower=np.zeros(columns),
        column_upper=np.array([*upper, np.inf, np.inf]),
        row_lower=np.zeros(1),
        row_upper=np.full(1, np.inf),
        row_start=np.array([0, columns - 1], np.int32),
        column_index=np.arange(columns - 1, dtype=np.int32),
        value=np.array([*coefficient, 1.0]),
        column_scale=np.ones(columns),
        row_scale=np.ones(1),
        future_cost=columns - 1,
        state_column=np.arange(len(cost), dtype=np.int32),
        autoregression=np.zeros((0, 1)),
        lag_from=EMPTY,
        lag_share=np.zeros(0),
        passed_from=EMPTY,
        truncates=False,
        input_row=np.zeros(1, np.int32),
        input_index=np.full(1, len(cost), np.int32),
        input_value=np.ones(1),
        load_row=EMPTY,
        load_bus=EMPTY,
        load_factor=np.zeros(0),
        source_column=EMPTY,
        source_index=EMPTY,
        source_factor=np.zeros(0),
        source_is_pinned=np.zeros(0, np.uint8),
        names=names,
    )


def solved(
    program: StageProgram, need: float, max_dense_rows: int, cuts: tuple[np.ndarray, np.ndarray] | None = None
) -> Batch:
    solver = SimplexSolver(1, SimplexOptions(max_dense_rows=max_dense_rows))
    solver.load(0, program)
    states = program.num_decided
    nothing = np.zeros((1, 0))
    noise = Realisations(np.full((1, 1), need), nothing, nothing)
    chains = Chains.single(np.zeros((1, states)), noise, np.zeros(1, np.int32), no_bases(program))
    cut_arrays = cuts or (np.zeros(1), np.zeros((1, states)))
    return solver.solve(0, cut_rows(*cut_arrays), chains, Outputs(gradient=True))


def hidden_cost(coefficient: float) -> float:
    """Return a cost that hides the tolerance and is above its own ratio times the coefficient."""
    cost = 3.1e7
    while not (cost + HARRIS_TOLERANCE) / coefficient * coefficient < cost:
        cost = float(np.nextafter(cost, np.inf))
    return cost


@BOTH_METHODS
@pytest.mark.timeout(60)
def test_ratio_test_terminates_if_rounding_exceeds_tolerance(max_dense_rows: int) -> None:
    """The second column is the only candidate left, and rounding puts it beyond its own breakpoint."""
    coefficient = 4.9e8 / 2**17  # not so far from one that the stage would get other units
    cost = hidden_cost(coefficient)
    program = one_row([coefficient, coefficient], [cost / 2.0, cost], [1e-9, 1e-9])
    batch = solved(program, 1e9, max_dense_rows)
    expected = 1.5e-9 * cost + 1e12 * (1e9 - 2e-9 * coefficient)
    assert batch.objective[0] == pytest.approx(expected, rel=1e-12)
    assert batch.library_solves == 0


@BOTH_METHODS
@pytest.mark.parametrize(("slope", "volume"), [(9e-10, 1e7), (9e-13, 1e10)])
def test_small_cut_slopes_matter_for_large_volumes(slope: float, volume: float, max_dense_rows: int) -> None:
    """The cost-to-go rises from 1 to 1.009 with the volume, which replaces power that has no lower limit.

    The dense method hands such an LP to HiGHS, which drops entries up to 1e-9, and those up to 1e-12 in any case: the
    optimum was 1.
    """
    share = 2.0**-11
    program = one_row([share, 1.0], [0.0, 1.0], [volume, 10.0])
    program = replace(program, column_lower=np.array([0.0, -np.inf, 0.0, 0.0]), row_upper=np.zeros(1))
    cuts = np.ones(1), np.array([[slope, 0.0]])
    batch = solved(program, share * volume, max_dense_rows, cuts)
    assert batch.library_solves == (max_dense_rows > 0)
    assert batch.objective[0] == pytest.approx(1.009, rel=1e-12)


@pytest.mark.parametrize("column", [0, 1])
def test_duplicate_column_in_row_raises(column: int) -> None:
    program = one_row([1.0, 2.0], [1.0, 2.0], [5.0, 5.0])
    program.column_index[1] = program.column_index[0] = column
    with pytest.raises(ValueError, match="a row has a column twice"):
        SimplexSolver(1).load(0, program)


ROUND_IN_CIRCLES = Shape(
    rows=60, columns=400, spread=3.0, inequalities=0.5, boxed=0.8, tiers=1, cost_decades=13.0, size=1e4
)
"""Costs over thirteen decades and long ranges: a reduced cost of the wrong sign sends its variable to the other bound,
the pivots that follow lead back to the same basis, and so on. Found by a search through 48,000 random LPs."""


@pytest.mark.parametrize("item", [0, 3, 7, 8])
def test_cycling_bound_flips_end_in_primal_pivots(item: int) -> None:
    """Before, twenty rounds were made, twice, and HiGHS solved the LP.

    Still before, a basis that was infeasible after twenty rounds counted as optimal: the cost was right, and rows and
    bounds were violated by up to 65,000.
    """
    seed = 473106601
    program = random_program(ROUND_IN_CIRCLES, seed)
    need = right_sides(ROUND_IN_CIRCLES, 10, seed)[item]
    solver = SimplexSolver(1, SimplexOptions(max_dense_rows=0))
    solver.load(0, program)
    states, nothing = np.zeros((1, program.num_decided)), np.zeros((1, 0))
    noise = Realisations(need[None], nothing, nothing)
    chains = Chains.single(states, noise, np.zeros(1, np.int32), no_bases(program))
    no_cut = np.zeros(1), np.zeros((1, program.num_decided))
    batch = solver.solve(0, cut_rows(*no_cut), chains, Outputs(solution=True))
    assert (batch.library_solves, batch.retries) == (0, 0)
    assert batch.objective[0] == pytest.approx(whole_lp(program, need, no_cut), rel=1e-9)
    assert largest_violation(program, need, batch.primal[0]) <= 1e-9 * ROUND_IN_CIRCLES.size


def largest_violation(program: StageProgram, need: np.ndarray, columns: np.ndarray) -> float:
    """Return by how much a row or a column is outside of its bounds."""
    terms = program.value * columns[program.column_index]
    rows = np.add.reduceat(terms, program.row_start[:-1]) - need
    values, lower = np.append(columns, rows), np.append(program.column_lower, program.row_lower)
    return float(np.maximum(lower - values, values - np.append(program.column_upper, program.row_upper)).max())


FAR_FROM_ONE = Shape(rows=60, columns=120, spread=6.0, cost_decades=12.0, size=1e5)
"""Coefficients from 0.5 to 2e6, costs over twelve decades."""


def far_from_one(seed: int, item: int, size: float = FAR_FROM_ONE.size) -> tuple[Call, Batch]:
    shape = replace(FAR_FROM_ONE, size=size)
    program, right = random_program(shape, seed), right_sides(shape, 2, seed)
    solver = SimplexSolver(1, SimplexOptions(max_dense_rows=0))
    solver.load(0, program)
    noise, states = Realisations(right, np.zeros((2, 0)), np.zeros((2, 0))), np.zeros((1, shape.states))
    chains = Chains.single(states, noise, np.full(1, item, np.int32), no_bases(program))
    call = Call(program, cut_rows(*random_cuts(20, shape.states, seed)), chains)
    return call, solver.solve(0, call.cuts, chains, Outputs(solution=True))


def worst_of(call: Call, batch: Batch) -> float:
    """Return the infeasibility or the duality gap of a solution, in the units of its program."""
    solution = Solved(float(batch.objective[0]), batch.pivots, False, batch.primal[0], batch.dual[0])
    return optimality(WrittenLp.of(call), 0, solution).worst


@pytest.mark.parametrize(("seed", "item"), [(7, 1), (10135, 1), (10279, 1)])
def test_badly_scaled_basis_is_not_singular(seed: int, item: int) -> None:
    """Before, attempts with several bases failed, and HiGHS solved the LP."""
    call, batch = far_from_one(seed, item)
    assert (batch.library_solves, batch.retries) == (0, 0)
    assert worst_of(call, batch) <= 1e-7


def test_duality_gap_includes_reduced_costs_of_basic_columns() -> None:
    """A factorisation that has lost digits leaves them different from zero: a gap of 3e-6 was taken for none."""
    call, batch = far_from_one(10206, 0, size=1.0)
    assert worst_of(call, batch) <= 1e-7


def test_saved_lp_has_numbers_of_program(tmp_path: Path) -> None:
    """Entries of 1e9 give the stage units of its own; the file has costs, bounds and entries of the program."""
    program = one_row([1e9, 3e9], [1.0, 2.0], [5.0, 7.0])
    upper = np.array([5.0, 7.0, 1.0, 11.0])
    program = replace(program, column_upper=upper)
    solver = SimplexSolver(1)
    solver.load(0, program)
    noise = Realisations(np.full((1, 1), 1e12), np.zeros((1, 0)), np.zeros((1, 0)))
    chains = Chains.single(np.zeros((1, 2)), noise, np.zeros(1, np.int32), no_bases(program))
    with pytest.raises(SolveFailedError, match="infeasible"):
        solver.solve(0, cut_rows(np.ones(1), np.array([[2.0, 3.0]])), chains, Outputs())
    solver.save_failed(0, tmp_path / "failed.mps")
    model = highspy.Highs()
    model.silent()
    model.readModel(str(tmp_path / "failed.mps"))
    lp = model.getLp()
    np.testing.assert_array_equal(lp.col_cost_, program.cost)
    np.testing.assert_array_equal(lp.col_upper_, upper)
    np.testing.assert_array_equal(lp.row_lower_[:1], [1e12])
    np.testing.assert_array_equal(sorted(lp.a_matrix_.value_)[-3:], [1.0, 1e9, 3e9])
