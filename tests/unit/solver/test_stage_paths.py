"""Paths through several stages in one call: the same bits as stage by stage, for any number of threads."""

from dataclasses import replace

import numpy as np
import pytest
from small_programs import cut_rows, no_cuts, program, random_cuts, random_states, realisations

from cobre.core.arrays import Floats, Ints
from cobre.solver.batches import (
    Bases,
    Chains,
    CutRows,
    Outputs,
    PathBatch,
    PathOutputs,
    SolveFailedError,
    Step,
    no_bases,
)
from cobre.solver.program import StageProgram
from cobre.solver.simplex import SimplexOptions, SimplexSolver

STAGES, PATHS, CUTS = 4, 7, 300
ALL = PathOutputs(basis=True, solution=True)


def steps(order: int, bases: Bases, count: int = PATHS) -> list[Step]:
    """Return stages that differ in their cuts, their noise, and the realisations of each path."""
    chosen = np.random.default_rng(5).integers(0, 6, (STAGES, count)).astype(np.int32)
    cuts = [cut_rows(*random_cuts(CUTS - stage, 2 * (1 + order), seed=stage)) for stage in range(STAGES)]
    return [Step(t, cuts[t], realisations(6, seed=t), chosen[t], bases) for t in range(STAGES)]


def carrying(step: Step) -> Step:
    """Return the same step, started from the basis of the step before."""
    return Step(step.stage, step.cuts, step.realisations, step.realisation_index, step.bases, carries_basis=True)


def loaded(threads: int, order: int, max_dense_rows: int = 100) -> SimplexSolver:
    solver = SimplexSolver(threads, SimplexOptions(max_dense_rows=max_dense_rows))
    for stage in range(STAGES):
        solver.load(stage, program(order))
    return solver


def some_basis(order: int) -> Bases:
    """Return the basis of the first path's first stage."""
    stage, solver = program(order), loaded(1, order)
    chains = Chains.single(random_states(1, order), realisations(1), np.zeros(1, np.int32), no_bases(stage))
    batch = solver.solve(0, cut_rows(*random_cuts(20, 2 * (1 + order))), chains, Outputs(basis=True))
    return Bases(batch.basis_status, batch.basis_cuts)


def bits(solved: PathBatch) -> tuple[bytes, ...]:
    parts = [solved.states, solved.objective, solved.future_cost, *solved.basis_status, *solved.basis_cuts]
    return tuple(part.tobytes() for part in parts)


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("starts_from_basis", [False, True])
def test_path_batch_equals_stage_by_stage_solves(order: int, starts_from_basis: bool) -> None:
    bases = some_basis(order) if starts_from_basis else no_bases(program(order))
    solver, state = loaded(1, order), random_states(PATHS, order)
    solved = solver.solve_paths(steps(order, bases), state, ALL)
    index = np.full(PATHS, 0 if starts_from_basis else -1, np.int32)
    pivots = 0
    for number, step in enumerate(steps(order, bases)):
        chains = Chains(
            state, np.arange(PATHS + 1, dtype=np.int32), step.realisations, step.realisation_index, bases, index
        )
        batch = solver.solve(number, step.cuts, chains, Outputs(basis=True, solution=True))
        assert solved.states[number].tobytes() == state.tobytes()
        assert solved.objective[number].tobytes() == batch.objective.tobytes()
        assert solved.future_cost[number].tobytes() == batch.future_cost.tobytes()
        assert solved.basis_status[number].tobytes() == batch.basis_status.tobytes()
        assert solved.basis_cuts[number].tobytes() == batch.basis_cuts.tobytes()
        assert solved.inflow[number].tobytes() == batch.inflow.tobytes()
        assert solved.primal[number].tobytes() == batch.primal.tobytes()
        assert solved.dual[number].tobytes() == batch.dual.tobytes()
        state = program(order).next_states(state, batch.decided, batch.inflow)
        pivots += batch.pivots
    assert solved.leaving.tobytes() == state.tobytes()
    assert solved.pivots == pivots


def test_only_requested_results_are_kept() -> None:
    order = 1
    everything = loaded(1, order).solve_paths(steps(order, no_bases(program(order))), random_states(PATHS, order), ALL)
    plain = loaded(1, order).solve_paths(
        steps(order, no_bases(program(order))), random_states(PATHS, order), PathOutputs()
    )
    assert plain.objective.tobytes() == everything.objective.tobytes()
    assert plain.leaving.tobytes() == everything.leaving.tobytes()
    assert [len(part) for part in (plain.basis_status, plain.basis_cuts, plain.inflow, plain.primal, plain.dual)] == [
        0
    ] * 5


def test_threads_do_not_change_a_bit() -> None:
    bases, state = no_bases(program(2)), random_states(PATHS, 2)
    assert len({bits(loaded(threads, 2).solve_paths(steps(2, bases), state, ALL)) for threads in (1, 2, 4)}) == 1


@pytest.mark.parametrize("max_dense_rows", [0, 100])
def test_path_carries_basis_to_next_stage(max_dense_rows: int) -> None:
    given = [carrying(step) if number else step for number, step in enumerate(steps(2, no_bases(program(2))))]
    solver, state = loaded(1, 2, max_dense_rows), random_states(PATHS, 2)
    solved = solver.solve_paths(given, state, ALL)
    bases, index = given[0].bases, np.full(PATHS, -1, np.int32)
    for number, step in enumerate(given):
        chains = Chains(
            state, np.arange(PATHS + 1, dtype=np.int32), step.realisations, step.realisation_index, bases, index
        )
        batch = solver.solve(number, step.cuts, chains, Outputs(basis=True))
        assert solved.objective[number].tobytes() == batch.objective.tobytes()
        assert solved.basis_status[number].tobytes() == batch.basis_status.tobytes()
        state = program(2).next_states(state, batch.decided, batch.inflow)
        bases, index = Bases(batch.basis_status, batch.basis_cuts), np.arange(PATHS, dtype=np.int32)
    assert bits(loaded(4, 2, max_dense_rows).solve_paths(given, random_states(PATHS, 2), ALL)) == bits(solved)


def test_paths_start_from_indexed_bases() -> None:
    given, state, solver = steps(2, no_bases(program(2)))[0], random_states(PATHS, 2), loaded(1, 2)
    cold = solver.solve_paths([given], state, ALL)
    bases = Bases(cold.basis_status[0][::-1].copy(), cold.basis_cuts[0][::-1].copy())

    def pivots(index: list[int]) -> int:
        named = np.array(index, np.int32)
        step = Step(0, given.cuts, given.realisations, given.realisation_index, bases, basis_index=named)
        return solver.solve_paths([step], state, ALL).pivots

    assert pivots([-1] * PATHS) == cold.pivots > 0
    assert pivots(list(range(PATHS - 1, -1, -1))) == 0
    for wrong, message in (([0] * (PATHS - 1), "expected one for each path"), ([PATHS] * PATHS, "no such basis")):
        with pytest.raises(ValueError, match=f"basis_index: {message}"):
            pivots(wrong)


def test_first_step_cannot_carry_basis() -> None:
    first = carrying(steps(0, no_bases(program()))[0])
    with pytest.raises(ValueError, match="carries_basis: there is no stage before"):
        loaded(1, 0).solve_paths([first], random_states(PATHS), ALL)


def renamed_columns(given: StageProgram, order: Ints, extra: int) -> StageProgram:
    """Return the same LP with its columns in another order, and `extra` more that are fixed at zero."""
    place = np.argsort(order).astype(np.int32)
    names = [given.names.columns[at] for at in order] + [f"extra[{number}]" for number in range(extra)]

    def moved(numbers: Floats, added: float) -> Floats:
        return np.concatenate([numbers[order], np.full(extra, added)])

    return replace(
        given,
        cost=moved(given.cost, 1.0),
        column_lower=moved(given.column_lower, 0.0),
        column_upper=moved(given.column_upper, 0.0),
        column_scale=moved(given.column_scale, 1.0),
        column_index=place[given.column_index],
        state_column=place[given.state_column],
        future_cost=int(place[given.future_cost]),
        source_column=place[given.source_column],
        names=replace(given.names, columns=tuple(names)),
    )


@pytest.mark.parametrize("max_dense_rows", [100, 1])
def test_basis_is_carried_to_columns_in_another_order(max_dense_rows: int) -> None:
    """A path that carries its basis by names needs no more pivots than in stages with the same columns."""
    given = program(2)
    order = np.random.default_rng(3).permutation(len(given.cost))
    other = renamed_columns(given, order, extra=2)
    columns, rows = len(given.cost), len(given.row_lower)
    to_other = np.concatenate([order, [-1, -1], columns + np.arange(rows)]).astype(np.int32)
    to_given = np.concatenate([np.argsort(order), columns + 2 + np.arange(rows)]).astype(np.int32)
    plain, mapped = loaded(1, 2, max_dense_rows), SimplexSolver(1, SimplexOptions(max_dense_rows=max_dense_rows))
    for stage in range(STAGES):
        mapped.load(stage, other if stage % 2 else given)
    first, *rest = steps(2, no_bases(given))
    carried = [first] + [
        Step(
            step.stage,
            step.cuts,
            step.realisations,
            step.realisation_index,
            no_bases(other if step.stage % 2 else given),
            True,
            to_other if step.stage % 2 else to_given,
        )
        for step in rest
    ]
    expected = plain.solve_paths([first, *map(carrying, rest)], random_states(PATHS, 2), ALL)
    batch = mapped.solve_paths(carried, random_states(PATHS, 2), ALL)
    assert batch.objective == pytest.approx(expected.objective, rel=1e-9)
    assert batch.pivots <= expected.pivots + PATHS


@pytest.mark.parametrize("seed", range(20))
def test_basis_with_missing_and_surplus_columns_is_repaired(seed: int) -> None:
    """A carried basis with statuses from anywhere leads to the optimum without a start from slacks."""
    given = program(2)
    width = len(given.cost) + len(given.row_lower)
    first, second, *_ = steps(2, no_bases(given))
    anywhere = np.random.default_rng(seed).integers(-1, width, width).astype(np.int32)
    jump = Step(1, second.cuts, second.realisations, second.realisation_index, second.bases, True, anywhere)
    expected = loaded(1, 2, 1).solve_paths([first, second], random_states(PATHS, 2), ALL)
    batch = loaded(1, 2, 1).solve_paths([first, jump], random_states(PATHS, 2), ALL)
    assert batch.objective == pytest.approx(expected.objective, rel=1e-9)
    assert batch.library_solves == 0


@pytest.mark.parametrize("wrong", [np.zeros(3, np.int32), np.full(14, 99, np.int32), np.full(14, -2, np.int32)])
def test_carried_from_names_columns_and_rows_of_the_stage_before(wrong: Ints) -> None:
    first, second, *_ = steps(0, no_bases(program()))
    jump = Step(1, second.cuts, second.realisations, second.realisation_index, second.bases, True, wrong)
    with pytest.raises(ValueError, match="carried_from"):
        loaded(1, 0).solve_paths([first, jump], random_states(PATHS), ALL)


def test_no_paths_are_legal() -> None:
    solved = loaded(2, 0).solve_paths(steps(0, no_bases(program()), count=0), np.zeros((0, 2)), ALL)
    assert solved.states.shape == (STAGES, 0, 2)
    assert solved.objective.shape == (STAGES, 0)
    assert [status.shape for status in solved.basis_status] == [(0, 12)] * STAGES


def test_infeasible_stage_of_a_path_raises() -> None:
    bad = steps(0, no_bases(program()))
    bad[2].realisations.inflow_m3s[:] = -1000.0
    with pytest.raises(SolveFailedError, match="infeasible") as caught:
        loaded(2, 0).solve_paths(bad, random_states(PATHS), ALL)
    inputs = caught.value.inputs
    assert inputs.stage == 2
    assert inputs.realisation == bad[2].realisation_index[inputs.chain]
    walked = loaded(1, 0).solve_paths(steps(0, no_bases(program()))[:2], random_states(PATHS), PathOutputs())
    assert inputs.state.tobytes() == walked.leaving[inputs.chain].tobytes()


def test_stages_that_share_a_program_give_the_same_bits_and_fail_under_their_own_numbers() -> None:
    shared, solver = program(1), SimplexSolver(1, SimplexOptions())
    for stage in range(STAGES):
        solver.load(stage, shared)
    given, states = steps(1, no_bases(shared)), random_states(PATHS, 1)
    assert bits(solver.solve_paths(given, states, ALL)) == bits(loaded(1, 1).solve_paths(given, states, ALL))
    given[2].realisations.inflow_m3s[:] = -1000.0
    with pytest.raises(SolveFailedError, match="infeasible") as caught:
        solver.solve_paths(given, states, ALL)
    assert caught.value.inputs.stage == 2


def test_reloading_stage_does_not_change_others() -> None:
    shared, solver = program(0), SimplexSolver(1, SimplexOptions())
    solver.load(0, shared)
    solver.load(1, shared)
    solver.load(0, program(2))
    chains = Chains.single(random_states(3), realisations(3), np.arange(3, dtype=np.int32), no_bases(shared))
    alone = SimplexSolver(1, SimplexOptions())
    alone.load(1, program(0))
    costs = [each.solve(1, no_cuts(2), chains, Outputs()).objective.tobytes() for each in (solver, alone)]
    assert costs[0] == costs[1]


def test_failure_carries_the_basis_of_the_path() -> None:
    good = steps(0, no_bases(program()))
    bad = [good[0], carrying(good[1])]
    bad[1].realisations.inflow_m3s[:] = -1000.0
    with pytest.raises(SolveFailedError, match="infeasible") as caught:
        loaded(1, 0).solve_paths(bad, random_states(PATHS), PathOutputs(basis=True))
    before = loaded(1, 0).solve_paths(good[:1], random_states(PATHS), PathOutputs(basis=True))
    inputs = caught.value.inputs
    assert inputs.chain == 0
    assert inputs.basis_status is not None
    assert inputs.basis_status.tobytes() == before.basis_status[0][0].tobytes()
    assert inputs.basis_cuts.tolist() == [cut for cut in before.basis_cuts[0][0].tolist() if cut >= 0]


@pytest.mark.parametrize("damage", ["realisation_index", "paths", "dimension", "bases"])
def test_inconsistent_steps_raise(damage: str) -> None:
    good, bases = steps(0, no_bases(program())), no_bases(program())
    item = Step(0, good[0].cuts, good[0].realisations, good[0].realisation_index + 6, bases)
    fewer = Step(0, good[0].cuts, good[0].realisations, good[0].realisation_index[:-1].copy(), bases)
    torn = Step(
        0, good[0].cuts, good[0].realisations, good[0].realisation_index, Bases(np.zeros((1, 3), np.int8), bases.cuts)
    )
    given = {"realisation_index": [item], "paths": [fewer], "dimension": good, "bases": [torn]}[damage]
    states = random_states(PATHS, 1 if damage == "dimension" else 0)
    with pytest.raises(ValueError, match=r"realisation|states|bases"):
        loaded(1, 0).solve_paths(given, states, ALL)


def test_results_lie_in_their_places() -> None:
    stage, noise, order = program(), realisations(5), np.array([3, 1, 4, 0, 2], np.int32)
    solver = SimplexSolver(1)
    solver.load(0, stage)
    states, start, none = random_states(2), np.array([0, 5, 10], np.int32), np.full(2, -1, np.int32)
    cuts: CutRows = no_cuts(2)
    tiled = np.tile(order, 2)
    plain = solver.solve(0, cuts, Chains(states, start, noise, tiled, no_bases(stage), none), Outputs())
    places = np.concatenate([order, 5 + order]).astype(np.int32)
    chains = Chains(states, start, noise, tiled, no_bases(stage), none, places)
    placed = solver.solve(0, cuts, chains, Outputs(gradient=True))
    assert placed.objective[places].tobytes() == plain.objective.tobytes()
    assert placed.decided[places].tobytes() == plain.decided.tobytes()
    outside = Chains(states, start, noise, tiled, no_bases(stage), none, places + 1)
    with pytest.raises(ValueError, match="result_index"):
        solver.solve(0, cuts, outside, Outputs())
