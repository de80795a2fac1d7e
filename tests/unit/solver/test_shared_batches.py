"""Several solvers that take chains from one counter: together they do what one does alone."""

import threading

import numpy as np
import pytest
from small_programs import all_chains, cut_rows, no_bases, program, random_cuts, random_states, realisations

from cobre.solver.batches import Outputs, SharedBatch, SharedPathBatch, Step
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
    return all_chains(random_states(POINTS, ORDER), openings, no_bases(program(ORDER)), index)


def new_solver(threads=1):
    solver = SimplexSolver(threads)
    solver.load(0, program(ORDER))
    return solver


def shared_batch(solves=POINTS * OPENINGS, dimension=DIMENSION):
    return SharedBatch(np.zeros(1, np.int64), np.full(solves, np.nan), np.full((solves, dimension), np.nan))


def shared_paths(stages):
    width = len(program(ORDER).cost) + len(program(ORDER).row_lower)
    return SharedPathBatch(
        np.zeros(1, np.int64),
        np.full((stages, POINTS, DIMENSION), np.nan),
        np.full((stages, POINTS), np.nan),
        np.full((stages, POINTS), np.nan),
        [np.zeros((POINTS, width), np.int8) for _ in range(stages)],
        [np.zeros((POINTS, 3), np.int32) for _ in range(stages)],
    )


def side_by_side(calls):
    """What each call gave; the kernel lets others run while it solves."""
    found = [None] * len(calls)

    def call(number):
        found[number] = calls[number]()

    threads = [threading.Thread(target=call, args=(number,)) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert None not in found
    return found


@pytest.mark.parametrize("threads", [1, 2])
def test_two_solvers_together_give_the_bits_of_one(cuts, chains, threads):
    noise, outputs = realisations(OPENINGS), Outputs(gradient=True)
    alone = new_solver().solve(0, cuts, chains, noise, outputs)
    shared, solvers = shared_batch(), [new_solver(threads) for _ in range(2)]
    batches = side_by_side(
        [lambda solver=solver: solver.solve(0, cuts, chains, noise, outputs, shared) for solver in solvers]
    )
    assert shared.objective.tobytes() == alone.objective.tobytes()
    assert shared.gradient.tobytes() == alone.gradient.tobytes()
    assert sum(batch.solves for batch in batches) == alone.solves == POINTS * OPENINGS
    assert sum(batch.pivots for batch in batches) == alone.pivots


def test_whole_solutions_and_bases_are_shared(cuts, chains):
    noise, outputs, stage = realisations(OPENINGS), Outputs(basis=True, solution=True, gradient=True), program(ORDER)
    alone = new_solver().solve(0, cuts, chains, noise, outputs)
    names = (
        "objective",
        "gradient",
        "future_cost",
        "decided",
        "inflow",
        "primal",
        "dual",
        "basis_status",
        "basis_cuts",
    )
    shared = SharedBatch(np.zeros(1, np.int64), *(np.zeros_like(getattr(alone, name)) for name in names))
    side_by_side([lambda: new_solver().solve(0, cuts, chains, noise, outputs, shared) for _ in range(2)])
    assert shared.primal.shape[1] == len(stage.cost)
    for name in names:
        assert getattr(shared, name).tobytes() == getattr(alone, name).tobytes()


def test_half_a_basis_is_refused(cuts, chains):
    alone = new_solver().solve(0, cuts, chains, realisations(OPENINGS), Outputs(basis=True))
    shared = SharedBatch(np.zeros(1, np.int64), alone.objective.copy(), basis_status=alone.basis_status.copy())
    with pytest.raises(ValueError, match="half of a basis"):
        new_solver().solve(0, cuts, chains, realisations(OPENINGS), Outputs(basis=True), shared)


def test_paths_are_walked_together(cuts):
    first, noise = random_states(POINTS, ORDER), realisations(POINTS)
    bases = no_bases(program(ORDER))
    steps = [Step(0, cuts, noise, np.arange(POINTS, dtype=np.int32), bases) for _ in range(3)]
    alone = new_solver().solve_paths(steps, first)
    shared, solvers = shared_paths(3), [new_solver() for _ in range(2)]
    batches = side_by_side([lambda solver=solver: solver.solve_paths(steps, first, shared) for solver in solvers])
    assert sum(batch.solves for batch in batches) == alone.solves == 3 * POINTS
    for name in ("states", "objective", "future_cost"):
        assert getattr(shared, name).tobytes() == getattr(alone, name).tobytes()
    for stage in range(3):
        assert shared.basis_status[stage].tobytes() == alone.basis_status[stage].tobytes()
        assert shared.basis_cuts[stage].tobytes() == alone.basis_cuts[stage].tobytes()


def test_units_taken_by_other_ranks_are_not_solved_again(cuts, chains):
    """The counter stands at the last chain: this solver does that one, whoever has the others."""
    noise, shared = realisations(OPENINGS), shared_batch()
    shared.counter[0] = POINTS - 1
    batch = new_solver().solve(0, cuts, chains, noise, Outputs(gradient=True), shared)
    assert batch.solves == OPENINGS
    assert np.isfinite(shared.objective).sum() == OPENINGS
    assert new_solver().solve(0, cuts, chains, noise, Outputs(gradient=True), shared).solves == 0


def test_slopes_are_kept_where_there_is_room_for_them(cuts, chains):
    shared = SharedBatch(np.zeros(1, np.int64), np.zeros(POINTS * OPENINGS), np.zeros((0, 0)))
    batch = new_solver().solve(0, cuts, chains, realisations(OPENINGS), Outputs(), shared)
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
def test_tables_that_do_not_fit_are_refused(cuts, chains, shared):
    with pytest.raises(ValueError, match=r"not the size|one number"):
        new_solver().solve(0, cuts, chains, realisations(OPENINGS), Outputs(gradient=True), shared)


def test_a_counter_of_another_type_is_refused(cuts, chains):
    shared = SharedBatch(np.zeros(1, np.int32), shared_batch().objective, shared_batch().gradient)
    with pytest.raises(TypeError, match="counter"):
        new_solver().solve(0, cuts, chains, realisations(OPENINGS), Outputs(gradient=True), shared)
