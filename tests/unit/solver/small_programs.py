"""A stage with two reservoirs in cascade, one thermal plant and unserved energy, as a program and as a plain LP."""

import highspy
import numpy as np

from cobre.sddp.cut_pool import MAX_CHUNK_CUTS
from cobre.solver.batches import Bases, Chains, CutRows, Realisations
from cobre.solver.program import Names, StageProgram

HYDROS = 2
# columns: storage x2, future cost, turbined x2, spilled x2, thermal, deficit
COST = np.array([0.0, 0.0, 0.9, 0.01, 0.02, 0.05, 0.05, 4.0, 40.0])
UPPER = np.array([100.0, 80.0, np.inf, 30.0, 40.0, np.inf, np.inf, 35.0, np.inf])
ROWS = np.array(
    [
        [1, 0, 0, 1, 0, 1, 0, 0, 0],
        [0, 1, 0, -1, 1, -1, 1, 0, 0],
        [0, 0, 0, 0.8, 1.1, 0, 0, 1, 1],
    ],
    float,
)
PSI = np.array([[0.5, 0.3], [0.2, -0.1]])


def program(order: int = 0, column_scale: np.ndarray | None = None) -> StageProgram:
    """Return the stage with `order` lags in its state; scales must be powers of two."""
    scale = np.ones(len(COST)) if column_scale is None else column_scale
    rows, columns = np.nonzero(ROWS)
    return StageProgram(
        cost=COST * scale,
        column_lower=np.zeros(len(COST)),
        column_upper=UPPER / scale,
        row_lower=np.zeros(3),
        row_upper=np.zeros(3),
        row_start=np.searchsorted(rows, np.arange(4)).astype(np.int32),
        column_index=columns.astype(np.int32),
        value=ROWS[rows, columns] * scale[columns],
        column_scale=scale,
        row_scale=np.ones(3),
        future_cost=2,
        state_column=np.array([0, 1], np.int32),
        autoregression=PSI[:order].copy(),
        lag_from=np.zeros(0, np.int32),
        lag_share=np.zeros(0),
        passed_from=np.zeros(0, np.int32),
        truncates=False,
        input_row=np.array([0, 0, 1, 1], np.int32),
        input_index=np.array([0, 2, 1, 3], np.int32),
        input_value=np.ones(4),
        load_row=np.array([2], np.int32),
        load_bus=np.array([0], np.int32),
        load_factor=np.ones(1),
        source_column=np.zeros(0, np.int32),
        source_index=np.zeros(0, np.int32),
        source_factor=np.zeros(0),
        source_is_pinned=np.zeros(0, np.uint8),
        names=Names(tuple(f"column{j}" for j in range(len(COST))), ("upper_water", "lower_water", "power")),
    )


def realisations(count: int, seed: int = 1) -> Realisations:
    """Draw inflows and loads."""
    random = np.random.default_rng(seed)
    return Realisations(
        random.uniform(0.0, 25.0, (count, HYDROS)), random.uniform(30.0, 110.0, (count, 1)), np.zeros((count, 0))
    )


def random_states(count: int, order: int = 0, seed: int = 2) -> np.ndarray:
    """Draw storages, then lags."""
    random = np.random.default_rng(seed)
    return np.hstack([random.uniform(5.0, 80.0, (count, HYDROS)), random.uniform(0.0, 20.0, (count, HYDROS * order))])


def random_cuts(count: int, dimension: int, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Draw tangents of a convex function, so that many are active somewhere: intercepts and coefficients."""
    random = np.random.default_rng(seed)
    points = random.uniform(0.0, 90.0, (count, dimension))
    slopes = -600.0 / (points + 10.0) ** 1.5 / dimension
    values = (1200.0 / np.sqrt(points + 10.0)).sum(axis=1) / dimension
    return values - (slopes * points).sum(axis=1), slopes


def cut_rows(intercepts: np.ndarray, slopes: np.ndarray) -> CutRows:
    """Return cuts in chunks, as a pool stores them."""
    chunks = []
    for start in range(0, len(intercepts), MAX_CHUNK_CUTS):
        part = slice(start, start + MAX_CHUNK_CUTS)
        chunk = np.zeros((1 + slopes.shape[1], MAX_CHUNK_CUTS))
        width = len(intercepts[part])
        chunk[0, :width], chunk[1:, :width] = intercepts[part], slopes[part].T
        chunks.append(chunk)
    return CutRows(chunks, len(intercepts), np.ones(len(intercepts), np.uint8))


def no_cuts(dimension: int) -> CutRows:
    """Return an empty pool."""
    return cut_rows(np.zeros(0), np.zeros((0, dimension)))


def reference_cost(
    state: np.ndarray,
    inflow: np.ndarray,
    load: float,
    cuts: tuple[np.ndarray, np.ndarray] | None,
    lower: np.ndarray | None = None,
) -> float:
    """Solve the same stage as one plain LP with highspy, with cuts as rows and lags as constants; return its cost."""
    order = len(state) // HYDROS - 1
    realised = inflow + sum(
        (PSI[lag] * state[HYDROS * (1 + lag) : HYDROS * (2 + lag)] for lag in range(order)), np.zeros(2)
    )
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    for cost, least, most in zip(COST, np.zeros(len(COST)) if lower is None else lower, UPPER, strict=True):
        model.addCol(cost, least, most, 0, [], [])
    right = [state[0] + realised[0], state[1] + realised[1], load]
    for row, side in zip(ROWS, right, strict=True):
        index = np.flatnonzero(row)
        model.addRow(side, side, len(index), index.astype(np.int32), row[index])
    leaving = np.concatenate([realised, state[HYDROS : HYDROS * order]]) if order else np.zeros(0)
    for intercept, slope in zip(*(cuts or ((), ())), strict=True):
        constant = intercept + float(slope[HYDROS:] @ leaving)
        values = np.array([-slope[0], -slope[1], 1.0])
        model.addRow(constant, highspy.kHighsInf, 3, np.array([0, 1, 2], np.int32), values)
    model.run()
    return float(model.getObjectiveValue())


def all_chains(
    states: np.ndarray, noise: Realisations, order: np.ndarray, bases: Bases, basis_index: np.ndarray
) -> Chains:
    """Return every trial point with all realisations, in the order given."""
    start = (len(order) * np.arange(len(states) + 1)).astype(np.int32)
    return Chains(states, start, noise, np.tile(order, len(states)).astype(np.int32), bases, basis_index)
