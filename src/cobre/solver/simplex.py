"""The solver of studies: our own dual simplex in native code, with HiGHS as its fallback.

Solves that the native simplex cannot finish (cycling, a singular basis, numerical trouble) go to the HiGHS library
inside the installed highspy; this is the only file that knows where that library lies.
"""

import importlib.metadata
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from cobre._native import LpEngine, LpFailure, LpStage
from cobre.comm.cores import usable_cores
from cobre.core.arrays import Floats
from cobre.records import dataclass
from cobre.solver.batches import (
    Batch,
    Chains,
    CutRows,
    LpSolver,
    Outputs,
    PathBatch,
    Realisations,
    SharedBatch,
    SharedPathBatch,
    SolveFailedError,
    Step,
)
from cobre.solver.program import MAX_DENSE_ROWS, STATUS_WORDS, StageProgram


@dataclass(frozen=True, slots=True)
class SimplexOptions:
    """Settings of the solver. Tolerances apply to scaled LPs.

    highs_feasibility_tolerance: primal and dual, of the solves that HiGHS does; our own simplex has constants, which
    are in `Tolerances` of the native code.
    violation_tolerance: of a cut, relative to the cost-to-go. max_added_per_round: violated cuts that enter an LP at
    once. retry_attempts: settings that HiGHS is tried with before a solve fails. max_dense_rows: stages with more
    rows are solved with a sparse factorisation of the basis, others with a dense inverse.
    """

    highs_feasibility_tolerance: float = 1e-9
    violation_tolerance: float = 1e-9
    max_added_per_round: int = 8
    retry_attempts: int = 5
    max_dense_rows: int = MAX_DENSE_ROWS


DEFAULT_OPTIONS = SimplexOptions()


class SimplexSolver(LpSolver):
    """Solves batches on a fixed number of threads. Results do not depend on that number."""

    makes_cuts = True

    def __init__(self, threads: int = 1, options: SimplexOptions = DEFAULT_OPTIONS) -> None:
        self.threads = threads
        self._engine = LpEngine(
            str(find_library()),
            threads,
            usable_cores(),
            options.highs_feasibility_tolerance,
            options.violation_tolerance,
            options.max_added_per_round,
            options.retry_attempts,
            options.max_dense_rows,
        )
        self._stages: dict[int, tuple[StageProgram, LpStage]] = {}

    def load(self, stage: int, program: StageProgram) -> None:
        """Take over a stage's program under a number."""
        self._stages[stage] = program, LpStage(dict(program.parts()))

    def solve(
        self,
        stage: int,
        cuts: CutRows,
        chains: Chains,
        realisations: Realisations,
        outputs: Outputs,
        shared: SharedBatch | None = None,
    ) -> Batch:
        """Solve all chains of a stage on the solver's threads."""
        if self.ask is not None:
            self.ask()
        try:
            batch = self._engine.solve_chains(
                self._stages[stage][1],
                cuts.chunks,
                cuts.count,
                cuts.rows,
                cuts.active,
                chains.states,
                chains.chains_per_point,
                chains.start,
                chains.realisation_index,
                chains.result_index,
                realisations.inflow_m3s,
                realisations.load_mw,
                realisations.availability,
                chains.bases.status,
                chains.bases.cuts,
                chains.basis_index,
                outputs.basis,
                outputs.solution,
                outputs.gradient,
                None if shared is None else shared.counter,
                None if shared is None else shared.tables,
                None if outputs.cuts is None else outputs.cuts.parts,
                None if shared is None else shared.finished,
                self.ask,
            )
        except LpFailure as failure:
            raise _in_words(failure) from failure
        except RuntimeError as error:  # numbers that the library does not take
            raise SolveFailedError(0, 0, f"{error}; some number in the case may be far too large") from error
        return cast("Batch", batch)

    def solve_paths(self, steps: Sequence[Step], states: Floats, shared: SharedPathBatch | None = None) -> PathBatch:
        """Take every path through all steps: a thread stays with its path from the first to the last."""
        given = [
            (
                self._stages[step.stage][1],
                step.cuts.chunks,
                step.cuts.count,
                step.cuts.rows,
                step.cuts.active,
                step.realisation_index,
                step.realisations.inflow_m3s,
                step.realisations.load_mw,
                step.realisations.availability,
                step.bases.status,
                step.bases.cuts,
                step.carries_basis,
            )
            for step in steps
        ]
        if self.ask is not None:
            self.ask()
        try:
            return cast("PathBatch", self._engine.solve_paths(given, states, *_tables_of(shared), self.ask))
        except LpFailure as failure:
            raise _in_words(failure) from failure
        except RuntimeError as error:  # numbers that the library does not take
            raise SolveFailedError(0, 0, f"{error}; some number in the case may be far too large") from error

    def save_failed(self, stage: int, path: Path) -> None:
        """Write the LP that the last `solve` failed on, with names."""
        names = self._stages[stage][0].names
        self._engine.save_failed(str(path), list(names.columns), list(names.rows))

    @property
    def solves_done(self) -> int:
        """LPs that the engine has solved so far; a chain counts when it is whole."""
        return self._engine.solves_done

    @property
    def version(self) -> str:
        """Name and version of the fallback library, which other bits may depend on."""
        return f"HiGHS {self._engine.version}"


def _tables_of(shared: SharedPathBatch | None) -> tuple[Any, Any]:
    """The counter and the tables that native code fills; None where a rank works alone."""
    if shared is None:
        return None, None
    tables = shared.states, shared.objective, shared.future_cost, shared.basis_status, shared.basis_cuts
    return shared.counter, tables


def _in_words(failure: LpFailure) -> SolveFailedError:
    chain, item, status, _ = failure.args
    return SolveFailedError(chain, item, STATUS_WORDS.get(status, f"solver status {status}"))


def find_library() -> Path:
    """The shared library inside the installed highspy, without importing it."""
    spec = importlib.util.find_spec("highspy")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("Cobre solves with HiGHS, which is not installed: pip install highspy")
    folder = Path(next(iter(spec.submodule_search_locations)))
    for name in ("libhighs.so.1", "libhighs.1.dylib", "libhighs.dylib"):
        if (folder / name).exists():
            return folder / name
    installed = importlib.metadata.version("highspy")
    raise ImportError(f"highspy {installed} has no HiGHS library for Cobre: pip install 'highspy>=1.15,<1.16'")
