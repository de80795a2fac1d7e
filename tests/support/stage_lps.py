"""Stage LPs that studies meet while they train: recorded, rescaled, solved one by one, and compared with HiGHS."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import highspy
import numpy as np

from cobre.comm.backends.local import LocalCommunicator
from cobre.core.arrays import Floats, Ints
from cobre.io.case import load_case
from cobre.solver.batches import (
    Batch,
    Chains,
    CutRows,
    LpSolver,
    Outputs,
    PathBatch,
    PathOutputs,
    SolveFailedError,
    Step,
)
from cobre.solver.program import StageProgram
from cobre.solver.simplex import SimplexOptions, SimplexSolver
from cobre.study.preparation.prepare import prepare
from cobre.study.preparation.study_cache import ReadyStudy
from cobre.study.requests import TrainingRequest, with_iterations
from cobre.study.training import train_study

COST_FACTOR = 2.0**20
"""HiGHS's dual tolerance is absolute, and costs of DECOMP decks begin at 2e-11: without a factor its optimum of one LP
of December 2025 was 2e-6 too high."""


@dataclass(frozen=True)
class Call:
    """One call of the solver: a stage, its cuts, and chains of realisations."""

    program: StageProgram
    cuts: CutRows
    chains: Chains

    def single(self, item: int) -> Chains:
        """One solve alone, from the basis that its chain starts from."""
        chain = int(np.searchsorted(self.chains.start, item, side="right")) - 1
        point = chain // self.chains.chains_per_point
        return Chains(
            self.chains.states[point : point + 1],
            np.array([0, 1], np.int32),
            self.chains.realisations,
            self.chains.realisation_index[item : item + 1],
            self.chains.bases,
            self.chains.basis_index[chain : chain + 1],
        )


@dataclass
class RecordingSolver(LpSolver):
    """Our own solver, which keeps every call of a backward pass as it was."""

    inner: SimplexSolver = field(default_factory=SimplexSolver)
    programs: dict[int, StageProgram] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    makes_cuts = True

    def load(self, stage: int, program: StageProgram) -> None:
        self.programs[stage] = program
        self.inner.load(stage, program)

    def solve(self, stage: int, cuts: CutRows, chains: Chains, out: Outputs) -> Batch:
        kept = CutRows([chunk.copy() for chunk in cuts.chunks], cuts.count, cuts.active.copy(), cuts.rows)
        self.calls.append(Call(self.programs[stage], kept, chains))
        return self.inner.solve(stage, cuts, chains, out)

    def solve_paths(self, steps: Sequence[Step], states: Floats, out: PathOutputs) -> PathBatch:
        return self.inner.solve_paths(steps, states, out)

    def save_failed(self, stage: int, path: Path) -> None:
        self.inner.save_failed(stage, path)

    @property
    def version(self) -> str:
        return self.inner.version


def record(case: Path, iterations: int, forward_passes: int | None) -> list[Call]:
    """Train a case for a while, and return what its backward passes solved; None: with the passes that it asks for."""
    sampled = {"training.selection": {"method": "sampled", "forward_passes": forward_passes}}
    passes = {} if forward_passes is None else sampled
    study = prepare(load_case(case, with_iterations(passes, iterations)))
    solver = RecordingSolver()
    for number, stage in enumerate(study.problem.stages):
        solver.load(number, stage.program)
    with LocalCommunicator() as comm:
        train_study(comm, ReadyStudy.of(study, solver), TrainingRequest(None, checkpoint_every=0), lambda event: None)
    return solver.calls


def rescaled(program: StageProgram, decades: float, seed: int) -> StageProgram:
    """Return the same LP with every row and every column in another unit, by a random power of ten.

    The optimum, decisions in their own units and slopes are the same. Columns that move with noise keep theirs.
    """
    random = np.random.default_rng(seed)
    rows = 10.0 ** np.round(random.uniform(-decades, decades, len(program.row_lower)))
    columns = 10.0 ** np.round(random.uniform(-decades, decades, len(program.cost)))
    columns[program.future_cost] = 1.0
    columns[program.source_column] = 1.0
    if program.corrections is not None:
        columns[program.corrections.column[program.corrections.column >= 0]] = 1.0
    row_of_entry = np.repeat(np.arange(len(rows)), np.diff(program.row_start))
    return replace(
        program,
        cost=program.cost * columns,
        column_lower=program.column_lower / columns,
        column_upper=program.column_upper / columns,
        row_lower=program.row_lower * rows,
        row_upper=program.row_upper * rows,
        value=program.value * rows[row_of_entry] * columns[program.column_index],
        column_scale=program.column_scale * columns,
        row_scale=program.row_scale * rows,
        input_value=program.input_value * rows[program.input_row],
        load_factor=program.load_factor * rows[program.load_row],
    )


@dataclass(frozen=True)
class Solved:
    """One solve: its cost, pivots, whether the library did it, and why it failed."""

    objective: float
    pivots: int
    is_by_library: bool
    failure: str = ""


def solve_each(call: Call, items: Ints, max_dense_rows: int) -> list[Solved]:
    """Solve some items of a call by our own simplex, one at a time."""
    solver = SimplexSolver(1, SimplexOptions(max_dense_rows=max_dense_rows))
    solver.load(0, call.program)
    found = []
    for item in items.tolist():
        try:
            batch = solver.solve(0, call.cuts, call.single(item), Outputs(gradient=True))
        except SolveFailedError as error:
            found.append(Solved(float("nan"), 0, True, str(error)))
            continue
        found.append(Solved(float(batch.objective[0]), batch.pivots, batch.library_solves > 0))
    return found


def reference_costs(call: Call, items: Ints) -> Iterator[float]:
    """Yield the optima of the same LPs by HiGHS, with all cuts as rows."""
    program, cuts = call.program, call.cuts
    n, scale = program.num_decided, program.column_scale[program.state_column]
    table = np.concatenate([*cuts.chunks, np.zeros((len(cuts.chunks[0]) if cuts.chunks else 1, 0))], axis=1)
    rows = 1 + np.arange(program.dimension) if cuts.rows is None else cuts.rows
    slots = np.flatnonzero(cuts.active[: cuts.count])
    slopes = np.where(rows[:, None] >= 0, table[np.maximum(rows, 0)][:, slots], 0.0) if len(slots) else None
    model = _fixed_part(program, None if slopes is None else -slopes[:n].T * scale)
    for item in items.tolist():
        state = call.single(item).states[0]
        row = int(call.chains.realisation_index[item])
        noise = call.chains.realisations.take(np.array([row]))
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
        row_lower, row_upper = program.row_lower + right, program.row_upper + right
        if slopes is not None:
            known = program.next_states(state[None], np.zeros((1, n)), inflow[None])[0][n:]
            row_lower = np.append(row_lower, table[0, slots] + known @ slopes[n:])
            row_upper = np.append(row_upper, np.full(len(slots), np.inf))
        model.changeColsBounds(len(lower), np.arange(len(lower), dtype=np.int32), lower, upper)
        for index, (low, high) in enumerate(zip(row_lower, row_upper, strict=True)):
            model.changeRowBounds(index, low, high)
        model.run()
        if model.getModelStatus() == highspy.HighsModelStatus.kUnknown:  # lost on its way from the LP before
            model.clearSolver()
            model.run()
        if model.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise ValueError(model.modelStatusToString(model.getModelStatus()))
        yield float(model.getObjectiveValue()) / COST_FACTOR


def _fixed_part(program: StageProgram, cuts: Floats | None) -> highspy.Highs:
    lp = highspy.HighsLp()
    start, index, value = [program.row_start], [program.column_index], [program.value]
    height = len(program.row_lower)
    if cuts is not None:
        width = program.num_decided + 1
        start.append(program.row_start[-1] + width * np.arange(1, len(cuts) + 1))
        index.append(np.tile(np.append(program.state_column, program.future_cost), len(cuts)))
        value.append(np.hstack([cuts, np.ones((len(cuts), 1))]).ravel())
        height += len(cuts)
    lp.num_col_, lp.num_row_ = len(program.cost), height
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = COST_FACTOR * program.cost, program.column_lower, program.column_upper
    lp.row_lower_, lp.row_upper_ = np.full(height, -np.inf), np.full(height, np.inf)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = np.concatenate(start), np.concatenate(index)
    lp.a_matrix_.value_ = np.concatenate(value)
    model = highspy.Highs()
    model.silent()
    model.setOptionValue("primal_feasibility_tolerance", 1e-9)
    model.setOptionValue("dual_feasibility_tolerance", 1e-9)
    model.passModel(lp)
    return model
