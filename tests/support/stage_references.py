"""Proofs that a stage LP was solved: its optimum by HiGHS, and the optimality of a solution by weak duality."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import highspy
import numpy as np
from stage_lps import Call, Solved

from cobre.core.arrays import Floats, Ints

COST_FACTOR = 2.0**20
"""HiGHS's dual tolerance is absolute, and costs of DECOMP decks begin at 2e-11: without a factor its optimum of one LP
of December 2025 was 2e-6 too high."""

SMALLEST_ENTRY = 1e-12
"""HiGHS drops smaller entries, by default those up to 1e-9, and solves another LP then. Slopes of cuts are that small
where volumes are large: a cut of 333 was wrong by 1e-3."""

# One after the other until HiGHS says optimal. With costs of 4e8 its dual simplex gave up two of 233 LPs of
# pmo_2018_never_ends ("ratio test failed due to excessive dual values") and left their status unset.
Attempt = Mapping[str, object]
ATTEMPTS: tuple[Attempt, ...] = (
    {},
    {"presolve": "off"},
    {"simplex_strategy": 4},
    {"presolve": "off", "simplex_strategy": 4},
    {"solver": "ipm", "run_crossover": "on"},
    {"user_objective_scale": -20},
)
DEFAULTS: Attempt = {
    "presolve": "choose",
    "simplex_strategy": 1,
    "solver": "choose",
    "run_crossover": "on",
    "user_objective_scale": 0,
    "primal_feasibility_tolerance": 1e-9,
    "dual_feasibility_tolerance": 1e-9,
}


@dataclass(frozen=True)
class Bounds:
    """Right-hand sides and bounds of one solve, in the units of the program."""

    lower: Floats
    upper: Floats
    row_lower: Floats
    row_upper: Floats

    def boxed(self, columns: Floats, rows: Floats) -> Self:
        """Return the bounds with infinite ones replaced: one plus the size of the value, away from it."""
        x, y = 1.0 + np.abs(columns), 1.0 + np.abs(rows)
        return type(self)(
            np.where(np.isfinite(self.lower), self.lower, columns - x),
            np.where(np.isfinite(self.upper), self.upper, columns + x),
            np.where(np.isfinite(self.row_lower), self.row_lower, rows - y),
            np.where(np.isfinite(self.row_upper), self.row_upper, rows + y),
        )


@dataclass(frozen=True)
class WrittenLp:
    """The LP of a call with all cuts as rows below those of the program; stored by rows."""

    call: Call
    start: Ints
    index: Ints
    value: Floats
    cut_right: Floats  # intercepts of active cuts
    cut_slopes: Floats  # dimension x active cuts

    @classmethod
    def of(cls, call: Call) -> Self:
        """Write out the rows of a call."""
        program, cuts = call.program, call.cuts
        n, scale = program.num_decided, program.column_scale[program.state_column]
        table = np.concatenate([*cuts.chunks, np.zeros((len(cuts.chunks[0]) if cuts.chunks else 1, 0))], axis=1)
        rows = 1 + np.arange(program.dimension) if cuts.rows is None else cuts.rows
        slots = np.flatnonzero(cuts.active[: cuts.count])
        slopes = np.zeros((program.dimension, 0))
        if len(slots):
            slopes = np.where(rows[:, None] >= 0, table[np.maximum(rows, 0)][:, slots], 0.0)
        entries = np.hstack([-slopes[:n].T * scale, np.ones((len(slots), 1))])
        return cls(
            call,
            np.concatenate([program.row_start, program.row_start[-1] + (n + 1) * np.arange(1, len(slots) + 1)]),
            np.concatenate([program.column_index, np.tile(cls._cut_columns(call), len(slots))]),
            np.concatenate([program.value, entries.ravel()]),
            table[0, slots],
            slopes,
        )

    @staticmethod
    def _cut_columns(call: Call) -> Ints:
        """Return the columns that cuts have entries in."""
        return np.append(call.program.state_column, call.program.future_cost)

    @property
    def num_rows(self) -> int:
        """Rows of the program and cuts."""
        return len(self.start) - 1

    def bounds(self, item: int) -> Bounds:
        """Return right-hand sides and bounds for the state and the realisation of one solve."""
        program, chains = self.call.program, self.call.chains
        n, state = program.num_decided, self.call.single(item).states[0]
        noise = chains.realisations.take(chains.realisation_index[item : item + 1])
        inflow = program.realised_inflow(state, noise.inflow_m3s[0])
        moved = np.concatenate([state[:n], inflow, state[n + program.num_lags * program.num_hydros :]])
        right = np.zeros(len(program.row_lower))
        np.add.at(right, program.input_row, program.input_value * moved[program.input_index])
        np.add.at(right, program.load_row, program.load_factor * noise.load_mw[0][program.load_bus])
        lower, upper = program.column_lower.copy(), program.column_upper.copy()
        available = program.source_factor * noise.availability[0][program.source_index]
        upper[program.source_column] = available
        lower[program.source_column] = np.where(program.source_is_pinned, available, 0.0)
        if program.corrections is not None:
            used = program.corrections.column >= 0
            missing = (np.maximum(0.0, -inflow) * program.corrections.factor)[used]
            upper[program.corrections.column[used]] = missing
            lower[program.corrections.column[used]] = missing if program.corrections.is_fixed else 0.0
        known = program.next_states(state[None], np.zeros((1, n)), inflow[None])[0][n:]
        cut_lower = self.cut_right + known @ self.cut_slopes[n:]
        row_lower = np.append(program.row_lower + right, cut_lower)
        return Bounds(lower, upper, row_lower, np.append(program.row_upper + right, np.full(len(cut_lower), np.inf)))

    def rows_of(self, columns: Floats) -> Floats:
        """Return the values of all rows: A x."""
        return np.bincount(self._row_of_entry, self.value * columns[self.index], self.num_rows)

    def columns_of(self, rows: Floats) -> Floats:
        """Return the values of all columns: A' y."""
        return np.bincount(self.index, self.value * rows[self._row_of_entry], len(self.call.program.cost))

    def magnitudes(self) -> Self:
        """Return the LP with the absolute values of its entries, which bound the effect of rounding."""
        return type(self)(self.call, self.start, self.index, np.abs(self.value), self.cut_right, self.cut_slopes)

    @property
    def _row_of_entry(self) -> Ints:
        return np.repeat(np.arange(self.num_rows), np.diff(self.start))

    def cut_multipliers(self, bounds: Bounds, reduced: Floats) -> Floats:
        """Return multipliers of the cuts, 0 or more, that fit the duals of all other rows.

        They are the duals of a small LP: reduced costs of the other rows, over the bounds of states and future cost, as
        the cuts allow. Zeros where HiGHS does not solve it.
        """
        count, first = len(self.cut_right), len(self.call.program.row_lower)
        if not count:
            return np.zeros(0)
        columns = self._cut_columns(self.call)
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(columns), count
        lp.col_cost_ = COST_FACTOR * reduced[columns]
        lp.col_lower_, lp.col_upper_ = bounds.lower[columns], bounds.upper[columns]
        lp.row_lower_, lp.row_upper_ = bounds.row_lower[first:], bounds.row_upper[first:]
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = len(columns) * np.arange(count + 1)
        lp.a_matrix_.index_ = np.tile(np.arange(len(columns)), count)
        lp.a_matrix_.value_ = self.value[self.start[first] :]
        model = _model(lp)
        if not _is_solved(model, ATTEMPTS):
            return np.zeros(count)
        return np.maximum(np.array(model.getSolution().row_dual), 0.0) / COST_FACTOR


@dataclass(frozen=True)
class Optimality:
    """How far a solution is from feasible, and its cost from a lower bound.

    infeasibility: the largest violation of a row or bound, relative to one plus the terms of the row. gap: from the
    cost to what its duals prove by weak duality, relative to one plus the cost. Reduced costs of the wrong sign at
    an infinite bound prove nothing; they are rounding, and count as if the bound were a box around the solution.
    """

    infeasibility: float
    gap: float

    @property
    def worst(self) -> float:
        """Return the larger of both."""
        return max(self.infeasibility, self.gap)


def optimality(written: WrittenLp, item: int, solved: Solved) -> Optimality:
    """Judge a solution of one LP by its own primal and dual values, without another solver's optimum."""
    cost, x = written.call.program.cost, solved.primal
    sizes, bounds = written.magnitudes(), written.bounds(item)
    activity = written.rows_of(x)
    rows = np.maximum(bounds.row_lower - activity, activity - bounds.row_upper) / (1.0 + sizes.rows_of(np.abs(x)))
    columns = np.maximum(bounds.lower - x, x - bounds.upper) / (1.0 + np.abs(x))
    box = bounds.boxed(x, activity)
    dual = np.append(solved.dual, np.zeros(written.num_rows - len(solved.dual)))
    dual[len(solved.dual) :] = written.cut_multipliers(box, cost - written.columns_of(dual))
    bound = _least(dual, box.row_lower, box.row_upper) + _least(cost - written.columns_of(dual), box.lower, box.upper)
    value = float(cost @ x)
    infeasibility = max(0.0, float(np.max(rows)), float(np.max(columns)))
    return Optimality(infeasibility, abs(value - bound) / (1.0 + abs(value)))


def _least(prices: Floats, lower: Floats, upper: Floats) -> float:
    """Return the least sum of prices times values between their bounds."""
    return float(prices @ np.where(prices > 0.0, lower, upper))


def reference_costs(call: Call, items: Ints, attempts: Sequence[Attempt] = ATTEMPTS) -> Iterator[float | None]:
    """Yield the optima of LPs by HiGHS, with all cuts as rows; None if no attempt ends at an optimum."""
    written = WrittenLp.of(call)
    program = call.program
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(program.cost), written.num_rows
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = COST_FACTOR * program.cost, program.column_lower, program.column_upper
    lp.row_lower_, lp.row_upper_ = np.full(written.num_rows, -np.inf), np.full(written.num_rows, np.inf)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = written.start, written.index, written.value
    model = _model(lp)
    for item in items.tolist():
        bounds = written.bounds(item)
        columns = np.arange(len(bounds.lower), dtype=np.int32)
        model.changeColsBounds(len(columns), columns, bounds.lower, bounds.upper)
        for index, (low, high) in enumerate(zip(bounds.row_lower, bounds.row_upper, strict=True)):
            model.changeRowBounds(index, low, high)
        yield float(model.getObjectiveValue()) / COST_FACTOR if _is_solved(model, attempts) else None


def _model(lp: highspy.HighsLp) -> highspy.Highs:
    model = highspy.Highs()
    model.silent()
    model.setOptionValue("small_matrix_value", SMALLEST_ENTRY)
    model.passModel(lp)
    return model


def _is_solved(model: highspy.Highs, attempts: Sequence[Attempt]) -> bool:
    """Try one way after the other, the first from the basis of the LP before; return whether one gave an optimum."""
    for number, attempt in enumerate((attempts[0], *attempts)):
        for name, value in {**DEFAULTS, **attempt}.items():
            model.setOptionValue(name, value)
        if number:
            model.clearSolver()
        model.run()
        if model.getModelStatus() == highspy.HighsModelStatus.kOptimal:
            return True
    model.clearSolver()
    return False
