"""Stage LPs of training: recorded, rescaled, and solved one by one."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

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
from cobre.study.preparation.on_ranks import ReadyStudy
from cobre.study.preparation.prepare import prepare
from cobre.study.requests import TrainingRequest, with_iterations
from cobre.study.training.train import train_study


@dataclass(frozen=True)
class Call:
    """One call of the solver: a stage, its cuts, and chains of realisations."""

    program: StageProgram
    cuts: CutRows
    chains: Chains

    def single(self, item: int) -> Chains:
        """Return one solve by itself, from the basis that its chain starts from."""
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
    """Our own solver, which records every call of a backward pass."""

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
    """Train a case for a while; return the calls of its backward passes. None: with the passes that it asks for."""
    sampled = {"training.selection": {"method": "sampled", "forward_passes": forward_passes}}
    passes = {} if forward_passes is None else sampled
    study = prepare(load_case(case, with_iterations(passes, iterations)))
    solver = RecordingSolver()
    for number, stage in enumerate(study.problem.stages):
        solver.load(number, stage.program)
    with LocalCommunicator() as comm:
        train_study(comm, ReadyStudy(study, solver), TrainingRequest(None, checkpoint_every=0), lambda event: None)
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
    """One solve: its cost, pivots, whether the library did it, its primal and dual values, and why it failed."""

    objective: float
    pivots: int
    is_by_library: bool
    primal: Floats
    dual: Floats
    failure: str = ""


def solve_each(call: Call, items: Ints, max_dense_rows: int) -> list[Solved]:
    """Solve some items of a call by our own simplex, one at a time."""
    solver = SimplexSolver(1, SimplexOptions(max_dense_rows=max_dense_rows))
    solver.load(0, call.program)
    found = []
    for item in items.tolist():
        try:
            batch = solver.solve(0, call.cuts, call.single(item), Outputs(solution=True, gradient=True))
        except SolveFailedError as error:
            found.append(Solved(float("nan"), 0, True, np.zeros(0), np.zeros(0), str(error)))
            continue
        values = (batch.primal[0].copy(), batch.dual[0].copy())
        found.append(Solved(float(batch.objective[0]), batch.pivots, batch.library_solves > 0, *values))
    return found
