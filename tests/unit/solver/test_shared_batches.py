"""Several solvers that take chains from one counter: together they do what one does by itself."""

import threading

import numpy as np
import pytest
from small_programs import all_chains, cut_rows, program, random_cuts, random_states, realisations

from cobre.solver.batches import Outputs, PathOutputs, SharedBatch, SharedPaths, Step, no_bases
from cobre.solver.simplex import SimplexSolver

POINTS, OPENINGS, ORDER = 13, 5, 1
DIMENSION = 2 * (1 + ORDER)


@pytest.fixture
def cuts():
    return cut_rows(*random_cuts(60, DIMENSION))


@pytest.fixture
def chains():
    index = np.full(POINTS, -1, np.int32)
    openings = np.arange(OPENINGS, dtype=np.int32)
    return all_chains(random_states(POINTS, ORDER), realisations(OPENINGS), openings, no_bases(program(ORDER)), index)


def new_solver(threads=1):
    solver = SimplexSolver(threads)
    solver.load(0, program(ORDER))
    return solver


def shared_batch(solves=POINTS * OPENINGS, dimension=DIMENSION):
    return SharedBatch(np.zeros(1, np.int64), np.full(solves, np.nan), np.full((solves, dimension), np.nan))


def shared_paths(stages):
    width = len(program(ORDER).cost) + len(program(ORDER).row_lower)
    columns, rows = len(program(ORDER).cost), len(program(ORDER).row_lower)
    return SharedPaths(
        counter=np.zeros(1, np.int64),
        states=np.full((stages, POINTS, DIMENSION), np.nan),
        objective=np.full((stages, POINTS), np.nan),
        future_cost=np.full((stages, POINTS), np.nan),
        leaving=np.full((POINTS, DIMENSION), np.nan),
        basis_status=[np.zeros((POINTS, width), np.int8) for _ in range(stages)],
        basis_cuts=[np.zeros((POINTS, 3), np.int32) for _ in range(stages)],
        inflow=[np.full((POINTS, 2), np.nan) for _ in range(stages)],
        primal=[np.full((POINTS, columns), np.nan) for _ in range(stages)],
        dual=[np.full((POINTS, rows), np.nan) for _ in range(stages)],
    )


def side_by_side(calls):
    """Run the calls in threads, which the kernel allows while it solves, and return their results."""
    results = [None] * len(calls)

    def call(number):
        results[number] = calls[number]()

    threads = [threading.Thread(target=call, args=(number,)) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert None not in results
    return results


@pytest.mark.parametrize("threads", [1, 2])
def test_two_solvers_together_give_the_bits_of_one(cuts, chains, threads):
    alone = new_solver().solve(0, cuts, chains, Outputs(gradient=True))
    shared, solvers = shared_batch(), [new_solver(threads) for _ in range(2)]
    out = Outputs(gradient=True, shared=shared)
    batches = side_by_side([lambda solver=solver: solver.solve(0, cuts, chains, out) for solver in solvers])
    assert shared.objective.tobytes() == alone.objective.tobytes()
    assert shared.gradient.tobytes() == alone.gradient.tobytes()
    assert sum(batch.solves for batch in batches) == alone.solves == POINTS * OPENINGS
    assert sum(batch.pivots for batch in batches) == alone.pivots


def test_bases_of_all_solves_are_shared(cuts, chains):
    alone = new_solver().solve(0, cuts, chains, Outputs(basis=True))
    costs, counter = np.zeros(POINTS * OPENINGS), np.zeros(1, np.int64)
    status, active = np.zeros_like(alone.basis_status), np.zeros_like(alone.basis_cuts)
    assert len(status) == POINTS * OPENINGS
    shared = SharedBatch(counter, costs, basis_status=status, basis_cuts=active)
    solvers = [new_solver() for _ in range(2)]
    side_by_side([lambda solver=solver: solver.solve(0, cuts, chains, Outputs(shared=shared)) for solver in solvers])
    assert (costs.tobytes(), status.tobytes(), active.tobytes()) == tuple(
        part.tobytes() for part in (alone.objective, alone.basis_status, alone.basis_cuts)
    )
    half = SharedBatch(np.zeros(1, np.int64), costs, basis_status=status)
    with pytest.raises(ValueError, match="half of a basis"):
        new_solver().solve(0, cuts, chains, Outputs(shared=half))


def test_incomplete_basis_raises(cuts):
    counter, costs = np.zeros(1, np.int64), np.zeros((1, POINTS))
    step = Step(0, cuts, realisations(POINTS), np.arange(POINTS, dtype=np.int32), no_bases(program(ORDER)))
    bases = shared_paths(1).basis_status
    shared = SharedPaths(counter=counter, objective=costs, future_cost=costs.copy(), basis_status=bases)
    with pytest.raises(ValueError, match="half of a basis"):
        new_solver().solve_paths([step], random_states(POINTS, ORDER), PathOutputs(shared=shared))


def test_basis_that_is_not_kept_cannot_be_carried(cuts):
    step = Step(0, cuts, realisations(POINTS), np.arange(POINTS, dtype=np.int32), no_bases(program(ORDER)))
    carrying = Step(0, step.cuts, step.realisations, step.realisation_index, step.bases, carries_basis=True)
    with pytest.raises(ValueError, match="not kept"):
        new_solver().solve_paths([step, carrying], random_states(POINTS, ORDER), PathOutputs())


def test_paths_are_walked_together(cuts):
    first, noise = random_states(POINTS, ORDER), realisations(POINTS)
    bases = no_bases(program(ORDER))
    steps = [Step(0, cuts, noise, np.arange(POINTS, dtype=np.int32), bases) for _ in range(3)]
    alone = new_solver().solve_paths(steps, first, PathOutputs(basis=True, solution=True))
    shared, solvers = shared_paths(3), [new_solver() for _ in range(2)]
    out = PathOutputs(shared=shared)
    batches = side_by_side([lambda solver=solver: solver.solve_paths(steps, first, out) for solver in solvers])
    assert sum(batch.solves for batch in batches) == alone.solves == 3 * POINTS
    for name in ("states", "objective", "future_cost", "leaving"):
        assert getattr(shared, name).tobytes() == getattr(alone, name).tobytes()
    for stage in range(3):
        for name in ("basis_status", "basis_cuts", "inflow", "primal", "dual"):
            assert getattr(shared, name)[stage].tobytes() == getattr(alone, name)[stage].tobytes()


def test_units_claimed_by_other_ranks_are_not_solved(cuts, chains):
    """The counter is at the last chain: this solver takes only that one."""
    shared = shared_batch()
    shared.counter[0] = POINTS - 1
    batch = new_solver().solve(0, cuts, chains, Outputs(gradient=True, shared=shared))
    assert batch.solves == OPENINGS
    assert np.isfinite(shared.objective).sum() == OPENINGS
    assert new_solver().solve(0, cuts, chains, Outputs(gradient=True, shared=shared)).solves == 0


def test_table_without_columns_takes_no_gradients(cuts, chains):
    shared = SharedBatch(np.zeros(1, np.int64), np.zeros(POINTS * OPENINGS), np.zeros((0, 0)))
    batch = new_solver().solve(0, cuts, chains, Outputs(shared=shared))
    assert batch.solves == POINTS * OPENINGS
    assert np.isfinite(shared.objective).all()


@pytest.mark.parametrize(
    "shared",
    [
        shared_batch(solves=POINTS),
        shared_batch(dimension=DIMENSION + 1),
        SharedBatch(np.zeros(2, np.int64), shared_batch().objective, shared_batch().gradient),
    ],
    ids=["solves", "dimension", "counters"],
)
def test_mismatched_tables_raise(cuts, chains, shared):
    with pytest.raises(ValueError, match=r"not the size|one number"):
        new_solver().solve(0, cuts, chains, Outputs(gradient=True, shared=shared))


def test_counter_of_wrong_type_raises(cuts, chains):
    shared = SharedBatch(np.zeros(1, np.int32), shared_batch().objective, shared_batch().gradient)
    with pytest.raises(TypeError, match="counter"):
        new_solver().solve(0, cuts, chains, Outputs(gradient=True, shared=shared))
