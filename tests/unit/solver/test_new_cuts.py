"""Cuts that the solver makes itself have the bits of those that are averaged afterwards."""

import numpy as np
import pytest
from small_programs import cut_rows, no_cuts, program, random_cuts, random_states, realisations

from cobre._native import average_cuts
from cobre.sddp.plugins.risk import CvarMix, Expectation
from cobre.sddp.problem.openings import StageOpenings
from cobre.solver.batches import Chains, NewCuts, Outputs, SharedBatch, no_bases
from cobre.solver.simplex import SimplexSolver

POINTS, OPENINGS, DIMENSION = 5, 6, 4
FIRST_SLOT, WIDTH = 6, 8  # cuts begin in the first chunk and end in the second
MEASURES = {"expectation": Expectation(), "cvar": CvarMix(0.4, 0.7), "worst": CvarMix(1e-6, 1.0)}


def chunks(height: int = 1 + DIMENSION) -> list[np.ndarray]:
    return [np.full((height, WIDTH), np.nan) for _ in range(2)]


def work():
    """Return a solver, and the chains of a backward pass: two for each trial point."""
    solver = SimplexSolver(1)
    solver.load(0, program(1))
    opening = StageOpenings.of(realisations(OPENINGS))
    positions = np.arange(POINTS, dtype=np.int32)
    bases = no_bases(program(1))
    chains = opening.chains(random_states(POINTS, 1), bases, positions)
    chains.basis_index[:] = -1
    return solver, chains


def solve(target: NewCuts | None, shared: SharedBatch | None = None):
    solver, chains = work()
    cuts = cut_rows(*random_cuts(40, DIMENSION))
    return solver.solve(0, cuts, chains, Outputs(gradient=True, cuts=target, shared=shared))


def placed(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts, axis=1)[:, FIRST_SLOT : FIRST_SLOT + POINTS].T


def averaged(measure, batch, states) -> np.ndarray:
    costs = batch.objective.reshape(POINTS, OPENINGS)
    return average_cuts(costs, np.ascontiguousarray(measure.weights(costs)), batch.gradient, states)


@pytest.mark.parametrize("name", MEASURES)
def test_cuts_have_the_bits_of_averages(name: str) -> None:
    measure, parts = MEASURES[name], chunks()
    batch = solve(NewCuts(measure.spectral_weights(OPENINGS), parts, FIRST_SLOT, None))
    assert placed(parts).tobytes() == averaged(measure, batch, random_states(POINTS, 1)).tobytes()
    assert not batch.has_stray_coefficients
    outside = np.delete(np.concatenate(parts, axis=1), np.s_[FIRST_SLOT : FIRST_SLOT + POINTS], axis=1)
    assert np.isnan(outside).all()


def test_equal_costs_rank_in_the_order_of_openings() -> None:
    """One opening, six times: the weights of the tail go to the first ones."""
    measure, parts = CvarMix(0.5, 1.0), chunks()
    solver, chains = work()
    same = chains.realisations.take(np.zeros(OPENINGS, np.int32))
    chains = Chains(
        chains.states,
        chains.start,
        same,
        chains.realisation_index,
        chains.bases,
        chains.basis_index,
        chains.result_index,
        chains.chains_per_point,
    )
    target = NewCuts(measure.spectral_weights(OPENINGS), parts, FIRST_SLOT, None)
    batch = solver.solve(0, no_cuts(DIMENSION), chains, Outputs(gradient=True, cuts=target))
    assert len(set(batch.objective[:OPENINGS].tolist())) == 1
    assert placed(parts).tobytes() == averaged(measure, batch, chains.states).tobytes()


def test_nonzero_unstored_component_is_reported() -> None:
    whole, parts = chunks(), chunks(DIMENSION)
    weights = Expectation().spectral_weights(OPENINGS)
    solve(NewCuts(weights, whole, FIRST_SLOT, None))
    batch = solve(NewCuts(weights, parts, FIRST_SLOT, np.array([1, 2, -1, 3], np.int32)))
    assert batch.has_stray_coefficients
    assert placed(parts).tobytes() == np.ascontiguousarray(placed(whole)[:, [0, 1, 2, 4]]).tobytes()


def test_ranks_build_each_cut_once() -> None:
    """Two solvers take chains from one counter in turns; the second one comes when all are taken."""
    parts, weights = chunks(), Expectation().spectral_weights(OPENINGS)
    solves = POINTS * OPENINGS
    shared = SharedBatch(
        np.zeros(1, np.int64),
        np.zeros(solves),
        np.zeros((solves, DIMENSION)),
        finished=np.zeros(POINTS, np.int64),
    )
    target = NewCuts(weights, parts, FIRST_SLOT, None)
    batch = solve(target, shared)
    assert shared.finished is not None
    assert shared.finished.tolist() == [2] * POINTS
    expected = placed(parts).tobytes()
    assert expected == averaged(Expectation(), batch, random_states(POINTS, 1)).tobytes()
    for part in parts:
        part[:] = np.nan
    assert solve(target, shared).solves == 0
    assert np.isnan(placed(parts)).all()


def test_cut_waits_for_the_other_chain() -> None:
    """Another process has solved one chain of each trial point: the solver of the last chain makes the cut."""
    parts, weights = chunks(), Expectation().spectral_weights(OPENINGS)
    whole = solve(None)
    chains = 2 * POINTS
    shared = SharedBatch(
        np.array([chains - 1]), whole.objective.copy(), whole.gradient.copy(), finished=np.ones(POINTS, np.int64)
    )
    solve(NewCuts(weights, parts, FIRST_SLOT, None), shared)  # takes only the last chain
    made = ~np.isnan(placed(parts)).any(axis=1)
    assert made.sum() == 1
    expected = averaged(Expectation(), whole, random_states(POINTS, 1))
    assert placed(parts)[made].tobytes() == expected[made].tobytes()


@pytest.mark.parametrize(
    ("weights", "height", "slot", "finished", "message"),
    [
        (OPENINGS - 1, 1 + DIMENSION, FIRST_SLOT, POINTS, "spectral_weights"),
        (OPENINGS, DIMENSION, FIRST_SLOT, POINTS, "too few rows"),
        (OPENINGS, 1 + DIMENSION, 2 * WIDTH - 1, POINTS, "too small"),
        (OPENINGS, 1 + DIMENSION, FIRST_SLOT, POINTS - 1, "finished"),
    ],
)
def test_wrong_sizes_raise(weights: int, height: int, slot: int, finished: int, message: str) -> None:
    solves = POINTS * OPENINGS
    tables = np.zeros(1, np.int64), np.zeros(solves), np.zeros((solves, DIMENSION))
    shared = SharedBatch(*tables, finished=np.zeros(finished, np.int64))
    with pytest.raises(ValueError, match=message):
        solve(NewCuts(np.full(weights, 0.1), chunks(height), slot, None), shared)


def test_cuts_need_gradients() -> None:
    solver, chains = work()
    target = NewCuts(Expectation().spectral_weights(OPENINGS), chunks(), FIRST_SLOT, None)
    with pytest.raises(ValueError, match="gradients"):
        solver.solve(0, no_cuts(DIMENSION), chains, Outputs(cuts=target))
