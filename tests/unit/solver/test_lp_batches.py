"""The LP kernel: right optima, right slopes, and results that depend only on their own inputs."""

from dataclasses import replace

import highspy
import numpy as np
import pytest
from small_programs import (
    HYDROS,
    all_chains,
    cut_rows,
    no_cuts,
    program,
    random_cuts,
    random_states,
    realisations,
    reference_cost,
)

from cobre._native import cut_values
from cobre.sddp.cut_pool import CutSet
from cobre.solver.batches import Bases, Chains, CutRows, Outputs, Realisations, SolveFailedError, no_bases
from cobre.solver.simplex import SimplexOptions, SimplexSolver

CUTS = 300  # more than one chunk


def all_openings(states: np.ndarray, noise: Realisations, bases: Bases, index: int = -1) -> Chains:
    order = np.arange(len(noise.load_mw), dtype=np.int32)
    return all_chains(states, noise, order, bases, np.full(len(states), index, np.int32))


def solve(
    threads: int, order: int, states: np.ndarray, noise: Realisations, cuts: CutRows, outputs: Outputs | None = None
) -> object:
    stage = program(order)
    solver = SimplexSolver(threads)
    solver.load(0, stage)
    chains = all_openings(states, noise, no_bases(stage))
    return solver.solve(0, cuts, chains, outputs or Outputs(gradient=True, solution=True, basis=True))


@pytest.mark.parametrize("order", [0, 1, 2])
def test_optimum_equals_full_lp(order: int) -> None:
    states, noise = random_states(4, order), realisations(6)
    cuts = random_cuts(CUTS, 2 * (1 + order))
    batch = solve(1, order, states, noise, cut_rows(*cuts))
    expected = [
        reference_cost(state, noise.inflow_m3s[w], noise.load_mw[w, 0], cuts) for state in states for w in range(6)
    ]
    np.testing.assert_allclose(batch.objective, expected, rtol=1e-9)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_gradient_is_a_slope_of_the_cost(order: int) -> None:
    """A cut made of it must lie below the true cost everywhere, and touch it at its own state."""
    states, noise = random_states(3, order), realisations(2)
    cuts = random_cuts(40, 2 * (1 + order))
    batch = solve(1, order, states, noise, cut_rows(*cuts))
    others = random_states(25, order, seed=9)
    for solve_number, (state, w) in enumerate([(s, w) for s in range(3) for w in range(2)]):
        value, slope = batch.objective[solve_number], batch.gradient[solve_number]
        for other in others:
            true = reference_cost(other, noise.inflow_m3s[w], noise.load_mw[w, 0], cuts)
            assert value + slope @ (other - states[state]) <= true + 1e-6 * max(1.0, abs(true))


def bits(batch: object) -> tuple[bytes, ...]:
    names = "objective", "future_cost", "gradient", "decided", "inflow", "primal", "dual", "basis_status", "basis_cuts"
    return tuple(np.ascontiguousarray(getattr(batch, name)).tobytes() for name in names)


@pytest.mark.parametrize("order", [0, 2])
def test_threads_do_not_change_a_bit(order: int) -> None:
    states, noise = random_states(23, order), realisations(7)
    cuts = cut_rows(*random_cuts(CUTS, 2 * (1 + order)))
    outcomes = {bits(solve(threads, order, states, noise, cuts)) for threads in (1, 2, 4, 1)}
    assert len(outcomes) == 1


def test_chain_does_not_depend_on_others() -> None:
    states, noise = random_states(9, 1), realisations(5)
    cuts = cut_rows(*random_cuts(CUTS, 4))
    together = solve(1, 1, states, noise, cuts)
    for number in (0, 4, 8):
        alone = solve(1, 1, states[number : number + 1].copy(), noise, cuts)
        part = slice(5 * number, 5 * number + 5)
        assert alone.objective.tobytes() == together.objective[part].tobytes()
        assert alone.gradient.tobytes() == together.gradient[part].tobytes()


def test_results_do_not_depend_on_earlier_calls() -> None:
    """A repeated batch has the same bits after work on other stages."""
    stage, noise = program(1), realisations(5)
    solver = SimplexSolver(2)
    solver.load(0, stage)
    solver.load(1, program(0))
    cuts = cut_rows(*random_cuts(CUTS, 4))
    chains = all_openings(random_states(6, 1), noise, no_bases(stage))
    first = bits(solver.solve(0, cuts, chains, Outputs(gradient=True, solution=True, basis=True)))
    solver.solve(1, no_cuts(2), all_openings(random_states(5), noise, no_bases(program(0))), Outputs())
    solver.solve(0, no_cuts(4), chains, Outputs())
    assert bits(solver.solve(0, cuts, chains, Outputs(gradient=True, solution=True, basis=True))) == first


def test_basis_saves_iterations_and_keeps_the_optimum() -> None:
    stage, noise = program(1), realisations(1)
    solver = SimplexSolver(1)
    solver.load(0, stage)
    cuts = cut_rows(*random_cuts(CUTS, 4))
    states = random_states(5, 1)
    cold = solver.solve(0, cuts, all_openings(states, noise, no_bases(stage)), Outputs(basis=True))
    bases = Bases(cold.basis_status.copy(), cold.basis_cuts.copy())
    index = np.arange(5, dtype=np.int32)
    warm = solver.solve(0, cuts, all_chains(states, noise, np.zeros(1, np.int32), bases, index), Outputs())
    np.testing.assert_allclose(warm.objective, cold.objective, rtol=1e-12)
    assert warm.pivots == 0
    assert cold.pivots > 0


def test_scaling_by_powers_of_two_keeps_the_optimum() -> None:
    scale = np.array([4.0, 0.5, 1.0, 2.0, 0.25, 1.0, 8.0, 16.0, 0.5])
    noise, states = realisations(4), random_states(3)
    cuts = cut_rows(*random_cuts(60, 2))
    plain = solve(1, 0, states, noise, cuts)
    stage = program(0, scale)
    solver = SimplexSolver(1)
    solver.load(0, stage)
    scaled = solver.solve(0, cuts, all_openings(states, noise, no_bases(stage)), Outputs(gradient=True))
    np.testing.assert_allclose(scaled.objective, plain.objective, rtol=1e-12)
    np.testing.assert_allclose(scaled.decided, plain.decided, atol=1e-6)


def test_inactive_cuts_are_ignored() -> None:
    noise, states = realisations(3), random_states(2)
    intercepts, slopes = random_cuts(20, 2)
    rows = cut_rows(intercepts, slopes)
    rows.active[5:] = 0
    batch = solve(1, 0, states, noise, rows)
    few = solve(1, 0, states, noise, cut_rows(intercepts[:5], slopes[:5]))
    np.testing.assert_allclose(batch.objective, few.objective, rtol=1e-12)


@pytest.mark.parametrize("count", [1, 15, 33, 300])
def test_values_of_cuts_are_added_component_by_component(count: int) -> None:
    intercepts, slopes = random_cuts(count, 40)
    states = random_states(3, 19)
    expected = CutSet(intercepts, slopes).values_at(states)
    np.testing.assert_array_equal(cut_values(cut_rows(intercepts, slopes), states), expected)


@pytest.mark.parametrize("max_dense_rows", [0, 100])
@pytest.mark.parametrize("count", [31, 32, 301])
def test_highest_active_cut_is_binding(max_dense_rows: int, count: int) -> None:
    stage, noise, states = program(), realisations(6), random_states(4)
    intercepts, slopes = random_cuts(count, HYDROS)
    rows = cut_rows(intercepts, slopes)
    is_active = np.random.default_rng(4).random(count) < 0.3
    is_active[64:128] = False  # whole blocks that are skipped
    rows.active[:] = is_active
    solver = SimplexSolver(1, SimplexOptions(max_dense_rows=max_dense_rows))
    solver.load(0, stage)
    starts = np.full(len(states), -1, np.int32)
    chains = all_chains(states, noise, np.arange(6, dtype=np.int32), no_bases(stage), starts)
    batch = solver.solve(0, rows, chains, Outputs())
    kept = intercepts[is_active], slopes[is_active]
    expected = [
        reference_cost(state, inflow, float(load[0]), kept)
        for state in states
        for inflow, load in zip(noise.inflow_m3s, noise.load_mw, strict=True)
    ]
    np.testing.assert_allclose(batch.objective, expected, rtol=1e-9)


def test_highest_cut_is_the_cost_to_go() -> None:
    noise, states = realisations(1), random_states(1)
    intercepts = np.array([5.0, 50.0, 20.0])
    batch = solve(1, 0, states, noise, cut_rows(intercepts, np.zeros((3, 2))))
    assert batch.future_cost[0] == pytest.approx(50.0)
    assert batch.basis_cuts[0].tolist() == [1, -1, -1]


def test_infeasible_lp_is_reported_and_saved(tmp_path: object) -> None:
    stage = program()
    solver = SimplexSolver(2)
    solver.load(7, stage)
    noise = realisations(3)
    noise.inflow_m3s[1] = -1000.0  # no volume can become negative
    states = random_states(2)
    chains = all_openings(states, noise, no_bases(stage))
    with pytest.raises(SolveFailedError, match="infeasible") as caught:
        solver.solve(7, no_cuts(2), chains, Outputs())
    inputs = caught.value.inputs
    assert (inputs.stage, inputs.chain, inputs.item, inputs.realisation, inputs.solved_before) == (7, 0, 1, 1, 1)
    assert inputs.state.tobytes() == states[0].tobytes()
    assert inputs.basis_status is None
    path = tmp_path / "failed.mps"
    solver.save_failed(7, path)
    text = path.read_text()
    assert "upper_water" in text
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    model.readModel(str(path))
    model.run()
    assert model.getModelStatus() == highspy.HighsModelStatus.kInfeasible


def test_after_a_failure_the_solver_still_works() -> None:
    stage, noise = program(), realisations(3)
    solver = SimplexSolver(1)
    solver.load(0, stage)
    chains = all_openings(random_states(2), noise, no_bases(stage))
    good = solver.solve(0, no_cuts(2), chains, Outputs()).objective.copy()
    bad = realisations(3)
    bad.inflow_m3s[:] = -1000.0
    with pytest.raises(SolveFailedError):
        solver.solve(0, no_cuts(2), all_openings(random_states(2), bad, no_bases(stage)), Outputs())
    assert solver.solve(0, no_cuts(2), chains, Outputs()).objective.tobytes() == good.tobytes()


def test_empty_batch_is_accepted() -> None:
    stage = program()
    solver = SimplexSolver(2)
    solver.load(0, stage)
    chains = all_openings(np.zeros((0, 2)), realisations(3), no_bases(stage))
    batch = solver.solve(0, no_cuts(2), chains, Outputs(gradient=True))
    assert len(batch.objective) == 0


@pytest.mark.parametrize("damage", ["states", "realisation_index", "basis"])
def test_inconsistent_chains_raise(damage: str) -> None:
    stage = program()
    solver = SimplexSolver(1)
    solver.load(0, stage)
    noise, states, bases = realisations(3), random_states(2), no_bases(stage)
    start, order, cold = (
        np.array([0, 3, 6], np.int32),
        np.tile(np.arange(3, dtype=np.int32), 2),
        np.full(2, -1, np.int32),
    )
    broken = {
        "states": Chains(states[:1].copy(), start, noise, order, bases, cold),
        "realisation_index": Chains(states, start, noise, order + 1, bases, cold),
        "basis": Chains(states, start, noise, order, bases, cold + 1),
    }[damage]
    named = {
        "states": "states",
        "realisation_index": "realisation_index: no such realisation",
        "basis": "basis_index: no such basis",
    }[damage]
    with pytest.raises(ValueError, match=named):
        solver.solve(0, no_cuts(2), broken, Outputs())


@pytest.mark.parametrize("truncates", [False, True])
def test_realised_inflow_has_the_bits_of_the_solver(truncates: bool) -> None:
    stage = replace(program(2), truncates=truncates)
    solver, states, noise = SimplexSolver(), random_states(20, 2), realisations(20)
    noise.inflow_m3s[::2] = -30.0  # as a rule below what the lags add
    solver.load(0, stage)
    states[:, :2] = 60.0  # enough water for inflows below 0
    chains = Chains.single(states, noise, np.arange(20, dtype=np.int32), no_bases(stage))
    inflow = solver.solve(0, no_cuts(6), chains, Outputs()).inflow
    expected = [stage.realised_inflow(state, row) for state, row in zip(states, noise.inflow_m3s, strict=True)]
    assert inflow.tobytes() == np.array(expected).tobytes()
    assert (inflow < 0.0).any() == (not truncates)
