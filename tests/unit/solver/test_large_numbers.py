"""LPs whose numbers hide the tolerances: every solve ends, and at the optimum."""

import numpy as np
import pytest
from random_programs import EMPTY, Shape, random_program, right_sides, whole_lp
from small_programs import cut_rows

from cobre.solver.batches import Batch, Chains, Outputs, Realisations, no_bases
from cobre.solver.program import Names, StageProgram
from cobre.solver.simplex import SimplexOptions, SimplexSolver

BOTH_METHODS = pytest.mark.parametrize("max_dense_rows", [100, 0], ids=["dense", "sparse"])
HARRIS_TOLERANCE = 1e-10


def one_row(coefficient: list[float], cost: list[float], upper: list[float]) -> StageProgram:
    """Return columns with these numbers and an expensive unlimited one in one row, which needs the inflow."""
    columns = len(cost) + 2  # the dear one, and the future cost
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


def solved(program: StageProgram, need: float, max_dense_rows: int) -> Batch:
    solver = SimplexSolver(1, SimplexOptions(max_dense_rows=max_dense_rows))
    solver.load(0, program)
    states = program.num_decided
    nothing = np.zeros((1, 0))
    noise = Realisations(np.full((1, 1), need), nothing, nothing)
    chains = Chains.single(np.zeros((1, states)), noise, np.zeros(1, np.int32), no_bases(program))
    cuts = cut_rows(np.zeros(1), np.zeros((1, states)))
    return solver.solve(0, cuts, chains, Outputs(gradient=True))


def hidden_cost(coefficient: float) -> float:
    """Return a cost that hides the tolerance and is above its own ratio times the coefficient."""
    cost = 3.1e7
    while not (cost + HARRIS_TOLERANCE) / coefficient * coefficient < cost:
        cost = float(np.nextafter(cost, np.inf))
    return cost


@BOTH_METHODS
@pytest.mark.timeout(60)
def test_ratio_test_ends_where_rounding_hides_its_tolerance(max_dense_rows: int) -> None:
    """The second column is the only one left and seems to be out of reach of its own breakpoint."""
    coefficient = 4.9e8
    cost = hidden_cost(coefficient)
    program = one_row([coefficient, coefficient], [cost / 2.0, cost], [1e-9, 1e-9])
    batch = solved(program, 1e9, max_dense_rows)
    expected = 1.5e-9 * cost + 1e12 * (1e9 - 2e-9 * coefficient)
    assert batch.objective[0] == pytest.approx(expected, rel=1e-12)
    assert batch.library_solves == 0


@pytest.mark.parametrize("column", [0, 1])
def test_a_row_that_names_a_column_twice_is_refused(column: int) -> None:
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
def test_bound_flips_that_go_round_in_circles_end_in_primal_pivots(item: int) -> None:
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
