"""The solver's contract over plain calls of highspy: what the method costs without a native kernel.

As one would write it by hand with care: one Highs object for each stage that keeps its basis from solve to solve, cuts
as rows that are added when they are made, right-hand sides changed in one call each, results read as arrays.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import highspy
import numpy as np
from numpy.typing import NDArray

from cobre.core.arrays import Floats
from cobre.solver.batches import (
    Batch,
    Chains,
    CutRows,
    LpSolver,
    Outputs,
    PathBatch,
    PathOutputs,
    Realisations,
    Step,
)
from cobre.solver.program import StageProgram

OPTIONS: dict[str, bool | int | str] = {
    "output_flag": False,
    "threads": 1,
    "parallel": "off",
    "solver": "simplex",
    "presolve": "off",
    "simplex_strategy": 1,
    "simplex_scale_strategy": 0,
    "simplex_dual_edge_weight_strategy": 1,
}


@dataclass
class Answers:
    """A batch, filled solve by solve."""

    objective: Floats
    future_cost: Floats
    gradient: Floats
    decided: Floats
    inflow: Floats
    basis_status: NDArray[np.int8]
    basis_cuts: NDArray[np.int32]
    iterations: NDArray[np.int32]
    primal: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    dual: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    library_solves: int = 0
    retries: int = 0
    refactorisations: int = 0
    active_rows: int = 0
    nucleus: int = 0
    solve_seconds: float = 0.0

    @property
    def solves(self) -> int:
        return len(self.objective)

    @property
    def pivots(self) -> int:
        return int(self.iterations.sum())

    @classmethod
    def empty(cls, program: StageProgram, chains: int, solves: int) -> "Answers":
        width, n = len(program.cost) + len(program.row_lower), program.num_decided
        return cls(
            objective=np.zeros(solves),
            future_cost=np.zeros(solves),
            gradient=np.zeros((solves, program.dimension)),
            decided=np.zeros((solves, n)),
            inflow=np.zeros((solves, program.num_hydros)),
            basis_status=np.zeros((chains, width), np.int8),
            basis_cuts=np.full((chains, n + 1), -1, np.int32),
            iterations=np.zeros(solves, np.int32),
            library_solves=solves,
        )


@dataclass
class Paths:
    """Paths, filled stage by stage."""

    states: Floats
    objective: Floats
    future_cost: Floats
    basis_status: list[NDArray[np.int8]] = field(default_factory=list)
    basis_cuts: list[NDArray[np.int32]] = field(default_factory=list)
    solves: int = 0
    pivots: int = 0
    library_solves: int = 0
    retries: int = 0
    refactorisations: int = 0
    active_rows: int = 0
    nucleus: int = 0
    solve_seconds: float = 0.0

    def add(self, batch: Batch) -> None:
        self.basis_status.append(batch.basis_status)
        self.basis_cuts.append(batch.basis_cuts)
        for name in ("solves", "pivots", "library_solves", "retries", "solve_seconds"):
            setattr(self, name, getattr(self, name) + getattr(batch, name))


class StageModel:
    """One stage's Highs with all of its cuts."""

    def __init__(self, program: StageProgram) -> None:
        self.program = program
        self.highs = highspy.Highs()
        for name, value in OPTIONS.items():
            self.highs.setOptionValue(name, value)
        self.highs.passModel(_base_model(program))
        self.rows = len(program.row_lower)
        self.intercepts = np.zeros(0)
        self.coefficients = np.zeros((0, program.dimension))
        self.state_scale = program.column_scale[program.state_column]
        self.moving, self.moves = _moves(program)
        self.lower, self.upper = program.row_lower[self.moving], program.row_upper[self.moving]

    def add_new_cuts(self, cuts: CutRows) -> None:
        """Add rows for new cuts: cost-to-go - coefficients . storage >= the rest."""
        known, count = len(self.intercepts), int(cuts.active.sum())
        if not cuts.active[:count].all() or count < known:
            raise ValueError("the reference loop keeps all cuts: run it without cut selection")
        if known == count:
            return
        table = np.concatenate(list(cuts.chunks), axis=1)[:, known:count]
        fresh, n = table.shape[1], self.program.num_decided
        values = np.column_stack([-(table[1 : n + 1].T * self.state_scale), np.ones(fresh)])
        columns = np.append(self.program.state_column, self.program.future_cost).astype(np.int32)
        start = np.arange(0, fresh * (n + 1), n + 1, dtype=np.int32)
        none = np.full(fresh, np.inf)
        self.highs.addRows(
            fresh, table[0].copy(), none, values.size, start, np.tile(columns, fresh), values.reshape(-1)
        )
        self.intercepts = np.append(self.intercepts, table[0])
        self.coefficients = np.concatenate([self.coefficients, table[1:].T])

    def set_right_sides(self, state: Floats, inflow: Floats, load: Floats, availability: Floats) -> None:
        """Set everything that differs from solve to solve."""
        program, highs = self.program, self.highs
        shift = self.moves @ np.concatenate([state[: program.num_hydros], inflow, load])
        highs.changeRowsBounds(len(shift), self.moving, self.lower + shift, self.upper + shift)
        if len(program.source_column):
            most = program.source_factor * availability[program.source_index]
            least = np.where(program.source_is_pinned != 0, most, 0.0)
            highs.changeColsBounds(len(most), program.source_column, least, most)
        if program.num_lags and len(self.intercepts):
            self._move_cuts(state, inflow)

    def _move_cuts(self, state: Floats, inflow: Floats) -> None:
        """Move the outgoing lags, known when a stage is solved, to the right-hand sides of the cuts."""
        n, order = self.program.num_hydros, self.program.num_lags
        lags = np.concatenate([inflow, state[n : n * order]])
        right = self.intercepts + self.coefficients[:, n:] @ lags
        rows = np.arange(self.rows, self.rows + len(right), dtype=np.int32)
        self.highs.changeRowsBounds(len(right), rows, right, np.full(len(right), np.inf))

    def realised_inflow(self, state: Floats, noise: Floats) -> Floats:
        """Add the autoregressive part of the lags to the noise; m3/s."""
        program = self.program
        lags = state[program.num_hydros :].reshape(program.num_lags, program.num_hydros)
        inflow = noise + (program.autoregression * lags).sum(axis=0)
        return np.maximum(inflow, 0.0) if program.truncates else inflow

    def run(self) -> int:
        """Solve from the last basis, and if that fails from a cold start; return the number of retries."""
        for retries in range(2):
            self.highs.run()
            if self.highs.getModelStatus() == highspy.HighsModelStatus.kOptimal:
                return retries
            self.highs.clearSolver()
        raise RuntimeError(f"highspy: {self.highs.modelStatusToString(self.highs.getModelStatus())}")

    def gradient(self, duals: Floats) -> Floats:
        """Return the gradient of the cost with respect to the incoming state."""
        program, n = self.program, self.program.num_hydros
        by_input = duals[self.moving] @ self.moves[:, : 2 * n]
        slope = np.zeros(program.dimension)
        slope[:n] = by_input[:n]
        if program.num_lags:
            of_cuts = (
                duals[self.rows :] @ self.coefficients[:, n:]
                if len(self.intercepts)
                else np.zeros(n * program.num_lags)
            )
            slope[n : n * program.num_lags] += of_cuts[n:]
            slope[n:] += (program.autoregression * (by_input[n:] + of_cuts[:n])).reshape(-1)
        return slope


class HighspySolver(LpSolver):
    """One LP after the other, on one thread."""

    def __init__(self) -> None:
        self._stages: dict[int, StageModel] = {}

    def load(self, stage: int, program: StageProgram) -> None:
        self._stages[stage] = StageModel(program)

    def solve(self, stage: int, cuts: CutRows, chains: Chains, out: Outputs) -> Batch:
        assert out.shared is None, "this solver works alone"
        model = self._stages[stage]
        model.add_new_cuts(cuts)
        answers = Answers.empty(model.program, len(chains.start) - 1, len(chains.realisation_index))
        for chain in range(len(chains.start) - 1):
            state = chains.states[chain // chains.chains_per_point]
            for item in range(int(chains.start[chain]), int(chains.start[chain + 1])):
                row = item if chains.result_index is None else int(chains.result_index[item])
                self._solve_one(
                    model, state, int(chains.realisation_index[item]), row, chains.realisations, out, answers
                )
        return cast("Batch", answers)

    def solve_paths(self, steps: Sequence[Step], states: Floats, out: PathOutputs) -> PathBatch:
        assert out.shared is None, "this solver works alone"
        shape = len(steps), len(states)
        paths = Paths(np.zeros((*shape, states.shape[1])), np.zeros(shape), np.zeros(shape))
        for number, step in enumerate(steps):
            chains = Chains.single(states, step.realisations, step.realisation_index, step.bases)
            batch = self.solve(step.stage, step.cuts, chains, Outputs())
            paths.states[number], paths.objective[number] = states, batch.objective
            paths.future_cost[number] = batch.future_cost
            paths.add(batch)
            states = self._stages[step.stage].program.next_states(states, batch.decided, batch.inflow)
        return cast("PathBatch", paths)

    def _solve_one(
        self,
        model: StageModel,
        state: Floats,
        item: int,
        row: int,
        noise: Realisations,
        outputs: Outputs,
        answers: Answers,
    ) -> None:
        highs, program = model.highs, model.program
        inflow = model.realised_inflow(state, noise.inflow_m3s[item])
        model.set_right_sides(state, inflow, noise.load_mw[item], noise.availability[item])
        begin = time.perf_counter()
        answers.retries += model.run()
        answers.solve_seconds += time.perf_counter() - begin
        solution = highs.getSolution()
        values = np.asarray(solution.col_value)
        info = highs.getInfo()
        answers.objective[row] = info.objective_function_value
        answers.iterations[row] = info.simplex_iteration_count
        answers.future_cost[row] = values[program.future_cost]
        answers.decided[row] = values[program.state_column] * model.state_scale
        answers.inflow[row] = inflow
        if outputs.gradient:
            answers.gradient[row] = model.gradient(np.asarray(solution.row_dual))

    def save_failed(self, stage: int, path: Path) -> None:
        self._stages[stage].highs.writeModel(str(path))

    @property
    def version(self) -> str:
        return f"highspy {highspy.Highs().version()}"


def _moves(program: StageProgram) -> tuple[NDArray[np.int32], Floats]:
    """Return rows whose right-hand sides change, and their coefficients of incoming storage, inflow and load."""
    buses = int(program.load_bus.max(initial=-1)) + 1
    moves = np.zeros((len(program.row_lower), 2 * program.num_hydros + buses))
    np.add.at(moves, (program.input_row, program.input_index), program.input_value)
    np.add.at(moves, (program.load_row, 2 * program.num_hydros + program.load_bus), program.load_factor)
    moving = np.flatnonzero(moves.any(axis=1)).astype(np.int32)
    return moving, np.ascontiguousarray(moves[moving])


def _base_model(program: StageProgram) -> highspy.HighsLp:
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(program.cost), len(program.row_lower)
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = program.cost, program.column_lower, program.column_upper
    lp.row_lower_, lp.row_upper_ = program.row_lower, program.row_upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = program.row_start, program.column_index
    lp.a_matrix_.value_ = program.value
    return lp
