"""The dual simplex method with a sparse factorisation: right optima on LPs of every kind, and the same bits always."""

from dataclasses import replace

import numpy as np
import pytest
from random_programs import Shape, random_planes, random_program, right_sides, whole_lp
from small_programs import all_chains, cut_rows, random_cuts

from cobre.solver.batches import Bases, Batch, Chains, Outputs, Realisations, SolveFailedError, no_bases
from cobre.solver.program import MAX_DENSE_ROWS, Names, StageProgram
from cobre.solver.simplex import SimplexOptions, SimplexSolver

SHAPES = {
    "ordinary": Shape(),
    "degenerate": Shape(degenerate=True),
    "badly scaled": Shape(spread=4.0),
    "only equalities": Shape(inequalities=0.0),
    "only inequalities": Shape(inequalities=1.0),
    "all boxed": Shape(boxed=1.0),
    "wide": Shape(rows=20, columns=200),
    "one row": Shape(rows=1, columns=8, states=2),
    "large": Shape(rows=160, columns=300, states=12),
    "slacks in tiers": Shape(tiers=3),
    "slacks in tiers, degenerate": Shape(tiers=3, degenerate=True),
    "free columns": Shape(free=6),
}
OPENINGS = 8
CUTS = 40


def solver_of(program: StageProgram, max_dense_rows: int = 0, threads: int = 1) -> SimplexSolver:
    solver = SimplexSolver(threads, SimplexOptions(max_dense_rows=max_dense_rows))
    solver.load(0, program)
    return solver


def noise_of(right: np.ndarray) -> Realisations:
    return Realisations(right, np.zeros((len(right), 0)), np.zeros((len(right), 0)))


def chains_of(program: StageProgram, right: np.ndarray, units: int = 1, bases: Bases | None = None) -> Chains:
    states = np.zeros((units, len(program.state_column)))
    realisation_index = np.arange(OPENINGS, dtype=np.int32)
    index = np.full(units, -1 if bases is None else 0, np.int32)
    return all_chains(states, noise_of(right), realisation_index, bases or no_bases(program), index)


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("name", SHAPES)
def test_optimum_equals_full_lp(name: str, seed: int) -> None:
    shape = SHAPES[name]
    program, right = random_program(shape, seed), right_sides(shape, OPENINGS, seed)
    cuts = random_cuts(CUTS, shape.states, seed)
    batch = solver_of(program).solve(0, cut_rows(*cuts), chains_of(program, right), Outputs(gradient=True))
    expected = [whole_lp(program, side, cuts) for side in right]
    np.testing.assert_allclose(batch.objective, expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", ["ordinary", "degenerate", "large"])
def test_hardly_any_solve_needs_the_library(name: str) -> None:
    shape, library = SHAPES[name], 0
    for seed in range(20):
        program, right = random_program(shape, seed), right_sides(shape, OPENINGS, seed)
        cuts = cut_rows(*random_cuts(CUTS, shape.states, seed))
        batch = solver_of(program).solve(0, cuts, chains_of(program, right), Outputs(gradient=True))
        library += batch.library_solves
    assert library <= 1


@pytest.mark.parametrize("seed", range(5))
def test_gradients_are_slopes_of_the_cost(seed: int) -> None:
    """The duals bound the cost of every other right-hand side from below."""
    shape = SHAPES["ordinary"]
    program, right = random_program(shape, seed), right_sides(shape, OPENINGS, seed)
    cuts = random_cuts(CUTS, shape.states, seed)
    outputs = Outputs(gradient=True, solution=True)
    batch = solver_of(program).solve(0, cut_rows(*cuts), chains_of(program, right), outputs)
    for here in range(OPENINGS):
        for there in range(OPENINGS):
            bound = batch.objective[here] + batch.dual[here] @ (right[there] - right[here])
            assert bound <= batch.objective[there] + 1e-6 * (1.0 + abs(batch.objective[there]))


def bits(batch: object) -> tuple[bytes, ...]:
    names = "objective", "future_cost", "gradient", "primal", "dual", "basis_status", "basis_cuts"
    return tuple(np.ascontiguousarray(getattr(batch, name)).tobytes() for name in names)


@pytest.mark.parametrize("name", ["ordinary", "degenerate", "large"])
def test_threads_and_earlier_work_do_not_change_a_bit(name: str) -> None:
    shape = SHAPES[name]
    program, right = random_program(shape, 1), right_sides(shape, OPENINGS, 1)
    cuts, outputs = cut_rows(*random_cuts(CUTS, shape.states, 1)), Outputs(gradient=True, solution=True, basis=True)
    outcomes = set()
    for threads in (1, 2, 4):
        solver = solver_of(program, threads=threads)
        for _ in range(2):
            outcomes.add(bits(solver.solve(0, cuts, chains_of(program, right, 7), outputs)))
    assert len(outcomes) == 1


def test_chain_starts_from_a_stored_basis() -> None:
    shape = SHAPES["large"]
    program, right = random_program(shape, 3), right_sides(shape, OPENINGS, 3)
    cuts = random_cuts(CUTS, shape.states, 3)
    outputs = Outputs(gradient=True, solution=True, basis=True)
    solver = solver_of(program)
    cold = solver.solve(0, cut_rows(*cuts), chains_of(program, right), outputs)
    warm = solver.solve(
        0, cut_rows(*cuts), chains_of(program, right, 1, Bases(cold.basis_status, cold.basis_cuts)), outputs
    )
    np.testing.assert_allclose(warm.objective, cold.objective, rtol=1e-9)
    assert warm.pivots < cold.pivots


@pytest.mark.parametrize("seed", range(6))
def test_generation_substituted_by_its_plane_has_the_same_optima(seed: int) -> None:
    """A chain that starts from a basis replaces generation by an active plane: values, duals and bases are the LP's."""
    stage = random_planes(seed)
    program, right = stage.program, stage.right_sides(OPENINGS, seed)
    slopes = -np.random.default_rng(seed).uniform(0.0, 2.0, (CUTS, 4))
    cuts = np.random.default_rng(seed).uniform(100.0, 200.0, CUTS), slopes
    outputs = Outputs(gradient=True, solution=True, basis=True)
    solver = solver_of(program)
    cold = solver.solve(0, cut_rows(*cuts), chains_of(program, right), outputs)
    assert stage.pairs(cold.basis_status[0]) >= 64, "otherwise nothing is substituted"
    batches = [cold]
    for _ in range(2):
        bases = Bases(batches[-1].basis_status, batches[-1].basis_cuts)
        batches.append(solver.solve(0, cut_rows(*cuts), chains_of(program, right, 1, bases), outputs))
    expected = [whole_lp(program, side, cuts) for side in right]
    for batch in batches:
        np.testing.assert_allclose(batch.objective, expected, rtol=1e-9)
        assert batch.library_solves == 0
        activity = _activities(program, batch.primal)
        assert np.all(activity <= program.row_upper + right + 1e-7)
        assert np.all(activity >= program.row_lower + right - 1e-7)
        assert np.all((batch.primal >= program.column_lower - 1e-7) & (batch.primal <= program.column_upper + 1e-7))
        for here in range(OPENINGS):
            bounds = batch.objective[here] + (right - right[here]) @ batch.dual[here]
            assert np.all(bounds <= batch.objective + 1e-6 * (1.0 + np.abs(batch.objective)))
    assert batches[2].pivots <= batches[0].pivots


def _activities(program: StageProgram, primal: np.ndarray) -> np.ndarray:
    rows = np.repeat(np.arange(len(program.row_lower)), np.diff(program.row_start))
    terms = primal[:, program.column_index] * program.value
    return np.array([np.bincount(rows, of_solve, len(program.row_lower)) for of_solve in terms])


def test_substitution_does_not_depend_on_threads_and_earlier_work() -> None:
    stage = random_planes(1)
    program, right = stage.program, stage.right_sides(OPENINGS, 1)
    cuts, outputs = cut_rows(*random_cuts(CUTS, 4, 1)), Outputs(gradient=True, solution=True, basis=True)
    cold = solver_of(program).solve(0, cuts, chains_of(program, right), outputs)
    outcomes = set()
    for threads in (1, 2, 4):
        solver = solver_of(program, threads=threads)
        for _ in range(2):
            bases = Bases(cold.basis_status, cold.basis_cuts)
            outcomes.add(bits(solver.solve(0, cuts, chains_of(program, right, 7, bases), outputs)))
            solver.solve(0, cuts, chains_of(program, right, 3), outputs)
    assert len(outcomes) == 1


def test_blocks_of_a_point_start_from_its_first_opening() -> None:
    """Optima are those of the LPs; bits and pivots depend neither on threads nor on the order of blocks."""
    shape = SHAPES["large"]
    program, right = random_program(shape, 6), right_sides(shape, OPENINGS, 6)
    cuts, outputs = random_cuts(CUTS, shape.states, 6), Outputs(gradient=True, solution=True)
    cold = solver_of(program).solve(0, cut_rows(*cuts), chains_of(program, right), Outputs(basis=True))
    blocks = Chains(
        np.zeros((1, shape.states)),
        np.array([0, 1, 4, OPENINGS], np.int32),  # the longest block, which is taken first, is not the first one
        noise_of(right),
        np.arange(OPENINGS, dtype=np.int32),
        Bases(cold.basis_status, cold.basis_cuts),
        np.zeros(3, np.int32),
        chains_per_point=3,
    )
    batches = [solver_of(program, threads=threads).solve(0, cut_rows(*cuts), blocks, outputs) for threads in (1, 2, 3)]
    expected = [whole_lp(program, side, cuts) for side in right]
    np.testing.assert_allclose(batches[0].objective, expected, rtol=1e-7)
    assert len({(batch.dual.tobytes(), batch.primal.tobytes(), batch.pivots) for batch in batches}) == 1


def test_chains_split_over_ranks_start_from_the_same_opening() -> None:
    """Chains of a point solved in two calls have the bits of one call where both name the opening to start from."""
    shape = SHAPES["large"]
    program, right = random_program(shape, 8), right_sides(shape, OPENINGS, 8)
    cuts, outputs = cut_rows(*random_cuts(CUTS, shape.states, 8)), Outputs(gradient=True, solution=True)
    cold = solver_of(program).solve(0, cuts, chains_of(program, right), Outputs(basis=True))

    def some(chains: list[list[int]]) -> Batch:
        start = np.add.accumulate([0, *map(len, chains)]).astype(np.int32)
        index = np.array([opening for chain in chains for opening in chain], np.int32)
        bases, first = Bases(cold.basis_status, cold.basis_cuts), np.array([2], np.int32)
        given = (np.zeros((1, shape.states)), start, noise_of(right), index, bases, np.zeros(len(chains), np.int32))
        return solver_of(program).solve(0, cuts, Chains(*given, None, len(chains), first), outputs)

    blocks = [[0, 1], [2, 3], list(range(4, OPENINGS))]
    whole, parts = some(blocks), (some(blocks[:1]), some(blocks[1:]))
    assert whole.dual.tobytes() == b"".join(part.dual.tobytes() for part in parts)
    assert whole.primal.tobytes() == b"".join(part.primal.tobytes() for part in parts)


def test_opening_to_start_from_must_exist() -> None:
    shape = SHAPES["ordinary"]
    program, right = random_program(shape, 4), right_sides(shape, OPENINGS, 4)
    plain = chains_of(program, right)
    given = (plain.states, plain.start, plain.realisations, plain.realisation_index, plain.bases, plain.basis_index)
    for wrong in (np.array([OPENINGS], np.int32), np.zeros(7, np.int32)):
        with pytest.raises(ValueError, match="first_realisation"):
            chains = Chains(*given, None, plain.chains_per_point, wrong)
            solver_of(program).solve(0, cut_rows(*random_cuts(CUTS, shape.states, 4)), chains, Outputs())


def test_singular_starting_basis_gives_the_same_optimum() -> None:
    shape = SHAPES["ordinary"]
    program, right = random_program(shape, 4), right_sides(shape, OPENINGS, 4)
    cuts = random_cuts(CUTS, shape.states, 4)
    columns, rows = len(program.cost), len(program.row_lower)
    status = np.zeros((1, columns + rows), np.int8)
    status[0, columns - rows - 1 : columns - 1] = 1  # slack columns of the rows, which are basic as well
    status[0, columns:] = 1
    bases = Bases(status, np.full((1, shape.states + 1), -1, np.int32))
    batch = solver_of(program).solve(0, cut_rows(*cuts), chains_of(program, right, 1, bases), Outputs(gradient=True))
    np.testing.assert_allclose(batch.objective, [whole_lp(program, side, cuts) for side in right], rtol=1e-7)


def test_infeasible_lp_is_reported() -> None:
    shape = SHAPES["ordinary"]
    program = random_program(shape, 5)
    inner = len(program.cost) - 2 * shape.rows - 1
    program.column_upper[:] = 1e-3
    program.column_upper[inner:] = 1e-3
    with pytest.raises(SolveFailedError, match="infeasible"):
        solver_of(program).solve(
            0,
            cut_rows(*random_cuts(CUTS, shape.states)),
            chains_of(program, right_sides(shape, OPENINGS, 5) + 1000.0),
            Outputs(gradient=True),
        )


@pytest.mark.parametrize(("size", "seed"), [(1.0, 10164), (1e5, 1033)])
def test_singular_basis_by_small_pivots_is_avoided_without_library(size: float, seed: int) -> None:
    """Coefficients over six decades, costs over twelve: small pivots lead to a basis that cannot be used."""
    shape = Shape(rows=60, columns=120, spread=6.0, cost_decades=12.0, size=size)
    program, right = random_program(shape, seed), right_sides(shape, 1, seed)
    cuts = random_cuts(20, shape.states, seed)
    states, none = np.zeros((1, shape.states)), np.full(1, -1, np.int32)
    chains = all_chains(states, noise_of(right), np.zeros(1, np.int32), no_bases(program), none)
    batch = solver_of(program).solve(0, cut_rows(*cuts), chains, Outputs(gradient=True))
    assert (batch.retries, batch.library_solves) == (2, 0)
    np.testing.assert_allclose(batch.objective[0], whole_lp(program, right[0], cuts), rtol=1e-7)


@pytest.mark.parametrize("max_dense_rows", [0, 1000], ids=["sparse", "dense"])
def test_unproven_unbounded_status_of_highs_is_retried(max_dense_rows: int) -> None:
    """No cost and no column is negative, so nothing can be unbounded; five settings of HiGHS say so all the same."""
    shape, seed = Shape(rows=60, columns=120, spread=6.0, cost_decades=12.0, size=1e5, inequalities=1.0), 121
    program, right = random_program(shape, seed), right_sides(shape, 1, seed)
    cuts = np.zeros(1), np.zeros((1, shape.states))
    batch = one_solve(program, right, cuts, max_dense_rows)
    np.testing.assert_allclose(batch.objective[0], whole_lp(program, right[0], cuts), rtol=1e-9)


def test_small_costs_are_not_hidden_by_reduced_costs_of_the_wrong_sign() -> None:
    """The best solution is worth less than HiGHS finds (its tolerance is absolute), and keeps every limit."""
    shape, seed = Shape(rows=60, columns=120, spread=6.0, cost_decades=12.0, size=1e5), 81
    program, right = random_program(shape, seed), right_sides(shape, 1, seed)
    cuts = np.zeros(1), np.zeros((1, shape.states))
    batch = one_solve(program, right, cuts, MAX_DENSE_ROWS)
    matrix = np.zeros((shape.rows, len(program.cost)))
    row_of_entry = np.repeat(np.arange(shape.rows), np.diff(program.row_start))
    matrix[row_of_entry, program.column_index] = program.value
    values, size = matrix @ batch.primal[0], np.abs(matrix) @ np.abs(batch.primal[0])
    assert np.all(values - program.row_lower - right[0] >= -1e-12 * size)
    assert np.all(program.row_upper + right[0] - values >= -1e-12 * size)
    assert np.all(batch.primal[0] >= program.column_lower)
    assert np.all(batch.primal[0] <= program.column_upper)
    assert program.cost @ batch.primal[0] < 0.998 * whole_lp(program, right[0], cuts)


def one_solve(
    program: StageProgram, right: np.ndarray, cuts: tuple[np.ndarray, np.ndarray], max_dense_rows: int
) -> Batch:
    states, none = np.zeros((1, program.num_decided)), np.full(1, -1, np.int32)
    chains = all_chains(states, noise_of(right), np.zeros(1, np.int32), no_bases(program), none)
    solver = solver_of(program, max_dense_rows)
    return solver.solve(0, cut_rows(*cuts), chains, Outputs(gradient=True, solution=True))


def test_unbounded_lp_raises() -> None:
    shape = SHAPES["ordinary"]
    program = random_program(shape, 5)
    program.cost[len(program.cost) - 2 * shape.rows - 1 :][: 2 * shape.rows] = -1.0  # slacks of both sides earn money
    with pytest.raises(SolveFailedError, match="unbounded"):
        one_solve(program, right_sides(shape, 1, 5), random_cuts(CUTS, shape.states), 0)


def near_tie() -> StageProgram:
    """Return a + 2 b = 10 and a + c <= 1, where the prices of a and b for the first row differ by 4e-11 of them.

    The ratio test takes b, whose range is larger, so that the reduced cost of a has the wrong sign: a goes to its upper
    bound of 5 once b is in the basis.
    """
    matrix = np.array([[1.0, 2.0, 0.0, 0.0], [1.0, 0.0, 1.0, 0.0]])
    rows, columns = np.nonzero(matrix)
    return replace(
        random_program(Shape(rows=2, columns=8, states=1), 0),
        cost=np.array([1.0, 2.0 + 8e-11, 1.0, 1.0]),
        column_lower=np.zeros(4),
        column_upper=np.array([5.0, 20.0, 5.0, np.inf]),
        row_lower=np.array([10.0, -np.inf]),
        row_upper=np.array([10.0, 1.0]),
        row_start=np.searchsorted(rows, np.arange(3)).astype(np.int32),
        column_index=columns.astype(np.int32),
        value=matrix[rows, columns],
        column_scale=np.ones(4),
        future_cost=3,
        names=Names(("a", "b", "c", "future_cost"), ("balance", "limit")),
    )


def test_flip_for_a_tiny_reduced_cost_keeps_rows_outside_of_the_working_lp() -> None:
    batch = one_solve(near_tie(), np.zeros((1, 2)), (np.zeros(1), np.zeros((1, 1))), 0)
    a, b, c, _ = batch.primal[0]
    assert a + c <= 1.0 + 1e-9
    np.testing.assert_allclose((a + 2.0 * b, batch.objective[0]), 10.0, rtol=1e-9)


def test_flip_for_a_tiny_reduced_cost_keeps_cuts_outside_of_the_working_lp() -> None:
    """The cost to go is 100 (a - 2), and nothing for an `a` below 2."""
    program = replace(near_tie(), row_upper=np.array([10.0, 20.0]))
    batch = one_solve(program, np.zeros((1, 2)), (np.array([-200.0]), np.array([[100.0]])), 0)
    a, _, _, future_cost = batch.primal[0]
    assert future_cost >= 100.0 * (a - 2.0) - 1e-7
    np.testing.assert_allclose(batch.objective[0], 10.0, rtol=1e-9)
