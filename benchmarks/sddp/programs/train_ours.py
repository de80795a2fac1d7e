"""One training run of ours: `train_ours.py '{"case": ..., "threads": 1, "iterations": null, "solver": "native"}'`.

solver: `native` is what users get; `highspy` is the same loop with every LP solved by calls of highspy. With
`checkpoints` in the request one is written after every iteration.
"""

import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet  # noqa: F401 - reading a case would load it later, and count it as the run's memory
from highspy_solver import HighspySolver
from process_memory import resident_bytes

from cobre.comm.backends.local import LocalCommunicator
from cobre.core.arrays import Floats
from cobre.io.case import load_case
from cobre.runs.events import Event
from cobre.sddp.problem.problem import PreparedStudy
from cobre.solver.batches import (
    Batch,
    Chains,
    CutRows,
    LpSolver,
    Outputs,
    PathBatch,
    PathOutputs,
    Step,
)
from cobre.solver.program import StageProgram
from cobre.solver.simplex import SimplexSolver
from cobre.study.preparation.on_ranks import ReadyStudy
from cobre.study.preparation.prepare import prepare
from cobre.study.preparation.study_solver import make_solver
from cobre.study.requests import Overrides, TrainingRequest, with_iterations
from cobre.study.training.train import TrainedStudy, train_study

with contextlib.suppress(ImportError):
    import pandas  # noqa: F401 - pyarrow loads it where it is installed, which is no memory of the run either


class TimedSolver(LpSolver):
    """Another solver, and how long its calls take: the rest of a run is Python."""

    def __init__(self, inner: LpSolver) -> None:
        self.inner = inner
        self.makes_cuts = inner.makes_cuts
        self.call_s = 0.0

    def load(self, stage: int, program: StageProgram) -> None:
        self.inner.load(stage, program)

    def solve(self, stage: int, cuts: CutRows, chains: Chains, out: Outputs) -> Batch:
        begin = time.perf_counter()
        batch = self.inner.solve(stage, cuts, chains, out)
        self.call_s += time.perf_counter() - begin
        return batch

    def solve_paths(self, steps: Sequence[Step], states: Floats, out: PathOutputs) -> PathBatch:
        begin = time.perf_counter()
        solved = self.inner.solve_paths(steps, states, out)
        self.call_s += time.perf_counter() - begin
        return solved

    def save_failed(self, stage: int, path: Path) -> None:
        self.inner.save_failed(stage, path)

    @property
    def version(self) -> str:
        return self.inner.version


def main(request: dict[str, Any]) -> dict[str, Any]:
    """Train and return the requested results."""
    SimplexSolver(1)  # loads the library, which is not counted as this run's memory
    baseline = resident_bytes()
    begin = time.perf_counter()
    study = prepare(load_case(request["case"], overrides(request)))
    solver = TimedSolver(solver_for(study, request))
    resident: list[int] = []
    checkpoint_s: list[float] = []

    def emit(event: Event) -> None:
        if event["event"] == "iteration":
            resident.append(resident_bytes())
        elif event["event"] == "checkpoint":
            checkpoint_s.append(event["seconds"])

    with LocalCommunicator() as comm, tempfile.TemporaryDirectory() as folder:
        kept_in = Path(folder) if request.get("checkpoints") else None
        cpu_begin = time.process_time()
        trained = train_study(comm, ReadyStudy(study, solver), TrainingRequest(kept_in, checkpoint_every=1), emit)
        cpu_s = time.process_time() - cpu_begin
        wall_s = time.perf_counter() - begin
        return summary(trained, solver) | {
            "wall_s": wall_s,
            "cpu_s": cpu_s,
            "checkpoint_s": checkpoint_s,
            "baseline_bytes": baseline,
            "peak_bytes": resident_bytes("VmHWM"),
            "resident_bytes": resident,
        }


def overrides(request: dict[str, Any]) -> Overrides | None:
    """Return overrides of iterations and forward passes, where the request differs from the case."""
    passes = request.get("forward_passes")
    chosen = {"training.selection": {"method": "sampled", "forward_passes": passes}} if passes else None
    return with_iterations(chosen, request["iterations"])


def solver_for(study: PreparedStudy, request: dict[str, Any]) -> LpSolver:
    if request["solver"] == "native":
        return make_solver(study, request["threads"])
    solver = HighspySolver()
    for number, stage in enumerate(study.problem.stages):
        solver.load(number, stage.program)
    return solver


def summary(trained: TrainedStudy, solver: TimedSolver) -> dict[str, Any]:
    history, pool = trained.history, trained.context.pool
    return {
        "training_s": trained.training_s,
        "call_s": solver.call_s,
        "first_lower_bound": history[0].lower_bound,
        "first_upper_bound": history[0].upper_bound,
        "lower_bound": history[-1].lower_bound,
        "upper_bound": history[-1].upper_bound,
        "elapsed_s": [record.elapsed_s for record in history],
        "solves": [record.solves for record in history],
        "pivots": [record.simplex_iterations for record in history],
        "solver_s": [record.times.solver_s for record in history],
        "cuts": pool.count,
        "cut_stages": pool.num_stages - 1,
        "dimension": pool.dimension,
        "pool_bytes": pool.nbytes,
        "digest": trained.digest,
        "version": solver.version,
    }


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
