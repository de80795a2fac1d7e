"""Stage LPs of a study solved by HiGHS alone, with given cuts: an independent check of the native simplex's input.

The value of a stage LP is unique where its solution and its duals are not. So the policy of another program is checked
solve by solve: at a trial point its newest cut has the value that the openings of the next stage have on average.
"""

import highspy
import numpy as np

from cobre.solver.program import StageProgram

TOLERANCE = 1e-9


class HighsStage:
    """The LP of one stage, kept in HiGHS from solve to solve."""

    def __init__(self, program: StageProgram) -> None:
        self._program, self._cuts = program, []
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(program.cost), len(program.row_lower)
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = program.cost, program.column_lower, program.column_upper
        lp.row_lower_, lp.row_upper_ = program.row_lower, program.row_upper
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_, lp.a_matrix_.index_ = program.row_start, program.column_index
        lp.a_matrix_.value_ = program.value
        self._highs = highspy.Highs()
        self._highs.silent()
        self._highs.setOptionValue("threads", 1)
        for name in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
            self._highs.setOptionValue(name, TOLERANCE)
        self._highs.passModel(lp)

    def add_cut(self, intercept: float, coefficients: np.ndarray) -> None:
        """Add future cost >= intercept + coefficients @ outgoing state, in scaled money."""
        program = self._program
        decided = coefficients[: program.num_decided] * program.column_scale[program.state_column]
        used = np.flatnonzero(decided)
        columns = np.concatenate([[program.future_cost], program.state_column[used]]).astype(np.int32)
        values = np.concatenate([[1.0], -decided[used]])
        self._highs.addRow(intercept, highspy.kHighsInf, len(columns), columns, values)
        self._cuts.append((intercept, coefficients[program.num_decided :]))

    def value(self, state: np.ndarray, inflow_m3s: np.ndarray, load_mw: np.ndarray, available: np.ndarray) -> float:
        """Return the optimal cost, scaled, of this stage and its future."""
        program = self._program
        inflow = program.realised_inflow(state, inflow_m3s)
        first, lags = program.num_decided, program.num_lags * program.num_hydros
        inputs = np.concatenate([state[:first], inflow, state[first + lags :]])
        moved = np.zeros(len(program.row_lower))
        np.add.at(moved, program.input_row, program.input_value * inputs[program.input_index])
        np.add.at(moved, program.load_row, program.load_factor * load_mw[program.load_bus])
        rest = program.next_states(state[None], np.zeros((1, first)), inflow[None])[0, first:]
        cuts = [intercept + coefficients @ rest for intercept, coefficients in self._cuts]
        lower = np.concatenate([program.row_lower + moved, cuts])
        upper = np.concatenate([program.row_upper + moved, np.full(len(cuts), highspy.kHighsInf)])
        self._highs.changeRowsBounds(len(lower), np.arange(len(lower), dtype=np.int32), lower, upper)
        most = program.source_factor * available[program.source_index]
        least = np.where(program.source_is_pinned, most, 0.0)
        self._highs.changeColsBounds(len(most), program.source_column, least, most)
        self._highs.run()
        assert self._highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
        return float(self._highs.getInfo().objective_function_value)
