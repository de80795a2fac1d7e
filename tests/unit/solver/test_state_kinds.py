"""States beyond storages: those decided by a column, and those only passed on."""

from dataclasses import replace

import highspy
import numpy as np
import pytest
from small_programs import (
    COST,
    HYDROS,
    PSI,
    ROWS,
    UPPER,
    all_chains,
    cut_rows,
    program,
    random_cuts,
    random_states,
    realisations,
)

from cobre.solver.batches import Chains, Outputs, PathOutputs, Step, no_bases
from cobre.solver.program import Names, StageProgram
from cobre.solver.simplex import SimplexSolver

COMMITMENT_COST, MAX_COMMITTED = 3.0, 25.0
LEAD = 3  # stages from a decision to its delivery
SCALE = 4.0  # of the commitment's column


def committing(order: int) -> StageProgram:
    """Return the small stage with a plant that commits power three stages ahead: one decided state, two passed on."""
    stage = program(order)
    names = Names((*stage.names.columns, "commitment"), stage.names.rows)
    newest, passed = HYDROS, HYDROS + 1 + order * HYDROS
    index = np.where(stage.input_index >= HYDROS, stage.input_index + 1, stage.input_index)
    delivered = HYDROS + 1 + HYDROS + LEAD - 2  # the last of the inputs
    return replace(
        stage,
        cost=np.append(stage.cost, COMMITMENT_COST * SCALE),
        column_lower=np.append(stage.column_lower, 0.0),
        column_upper=np.append(stage.column_upper, MAX_COMMITTED / SCALE),
        column_scale=np.append(stage.column_scale, SCALE),
        state_column=np.append(stage.state_column, len(stage.cost)).astype(np.int32),
        passed_from=np.array([newest, passed], np.int32),
        input_row=np.append(stage.input_row, 2).astype(np.int32),
        input_index=np.append(index, delivered).astype(np.int32),
        input_value=np.append(stage.input_value, -1.0),
        names=names,
    )


def states_of(count: int, order: int) -> np.ndarray:
    """Return storages, the newest commitment, lags, older commitments."""
    random = np.random.default_rng(8)
    plain = random_states(count, order)
    older = random.uniform(0.0, MAX_COMMITTED, (count, LEAD))
    return np.hstack([plain[:, :HYDROS], older[:, :1], plain[:, HYDROS:], older[:, 1:]])


def cost_of(
    state: np.ndarray, inflow: np.ndarray, load: float, cuts: tuple[np.ndarray, np.ndarray], order: int
) -> float:
    """Solve the same stage as one plain LP with every cut as a row; return its cost."""
    first = HYDROS + 1
    lags = state[first : first + order * HYDROS].reshape(order, HYDROS)
    realised = inflow + (PSI[:order] * lags).sum(axis=0)
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    for cost, upper in zip([*COST, COMMITMENT_COST], [*UPPER, MAX_COMMITTED], strict=True):
        model.addCol(cost, 0.0, upper, 0, [], [])
    right = [state[0] + realised[0], state[1] + realised[1], load - state[-1]]
    for row, side in zip(ROWS, right, strict=True):
        index = np.flatnonzero(row)
        model.addRow(side, side, len(index), index.astype(np.int32), row[index])
    kept = np.concatenate([np.concatenate([realised[None], lags[:-1]]).reshape(-1)]) if order else np.zeros(0)
    known = np.concatenate([kept, state[[HYDROS, first + order * HYDROS]]])
    columns = np.array([0, 1, len(COST), 2], np.int32)
    for intercept, slope in zip(*cuts, strict=True):
        values = np.array([-slope[0], -slope[1], -slope[2], 1.0])
        model.addRow(intercept + float(slope[first:] @ known), highspy.kHighsInf, 4, columns, values)
    model.run()
    return float(model.getObjectiveValue())


@pytest.mark.parametrize("order", [0, 1, 2])
def test_costs_and_slopes_of_general_states(order: int) -> None:
    stage, noise = committing(order), realisations(4)
    solver, states = SimplexSolver(), states_of(6, order)
    solver.load(0, stage)
    assert stage.dimension == states.shape[1]
    cuts = random_cuts(300, stage.dimension)
    realisation_index = np.arange(4, dtype=np.int32)
    chains = all_chains(states, noise, realisation_index, no_bases(stage), np.full(6, -1, np.int32))
    batch = solver.solve(0, cut_rows(*cuts), chains, Outputs(gradient=True))
    for point, state in enumerate(states):
        for item in range(4):
            inflow, load = noise.inflow_m3s[item], float(noise.load_mw[item, 0])
            place = 4 * point + item
            assert batch.objective[place] == pytest.approx(cost_of(state, inflow, load, cuts, order), rel=1e-9)
            for component in range(stage.dimension):
                step = np.zeros(stage.dimension)
                step[component] = 1e-4
                above, below = (cost_of(state + way * step, inflow, load, cuts, order) for way in (1, -1))
                slope = batch.gradient[place, component]
                left, right = (batch.objective[place] - below) / 1e-4, (above - batch.objective[place]) / 1e-4
                assert left - 1e-4 <= slope <= right + 1e-4  # a subgradient of a convex function


@pytest.mark.parametrize("order", [0, 2])
def test_path_forwards_states_between_stages(order: int) -> None:
    stage = committing(order)
    cuts = cut_rows(*random_cuts(40, stage.dimension))
    solver, state = SimplexSolver(), states_of(5, order)
    for number in range(3):
        solver.load(number, stage)
    realisation_index = np.arange(5, dtype=np.int32)
    steps = [Step(number, cuts, realisations(5, number), realisation_index, no_bases(stage)) for number in range(3)]
    solved = solver.solve_paths(steps, state, PathOutputs())
    for number, step in enumerate(steps):
        assert solved.states[number].tobytes() == state.tobytes()
        chains = Chains.single(state, step.realisations, realisation_index, no_bases(stage))
        batch = solver.solve(number, cuts, chains, Outputs())
        after = stage.next_states(state, batch.decided, batch.inflow)
        assert after[:, -1].tolist() == state[:, -2].tolist()
        assert after[:, -2].tolist() == state[:, HYDROS].tolist()
        assert after[:, HYDROS].tolist() == batch.decided[:, HYDROS].tolist()
        state = after
    assert solved.leaving.tobytes() == state.tobytes()
