"""The solver of studies: our own dual simplex in native code, with HiGHS as its fallback.

Solves that the native simplex cannot finish (cycling, a singular basis, numerical trouble) go to the HiGHS library
inside the installed highspy; no other module uses its path.
"""

import importlib.util
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import cast

from cobre._native import LpEngine, LpFailure, SimplexOptions
from cobre.comm.cores import usable_cores
from cobre.core.arrays import Floats
from cobre.errors import MissingLibraryError
from cobre.solver.batches import (
    Batch,
    Chains,
    CutRows,
    FailedInputs,
    LpSolver,
    Outputs,
    PathBatch,
    PathOutputs,
    SolveFailedError,
    Step,
)
from cobre.solver.program import REJECTED, STATUS_WORDS, StageProgram

__all__ = ["SimplexOptions", "SimplexSolver", "find_library"]

DEFAULT_OPTIONS = SimplexOptions()
HIGHSPY = "'highspy>=1.15,<1.16'"
"""What pip installs, as pyproject.toml has it."""


class SimplexSolver(LpSolver):
    """Solves batches on a fixed number of threads. Results do not depend on that number."""

    makes_cuts = True

    def __init__(self, threads: int = 1, options: SimplexOptions = DEFAULT_OPTIONS) -> None:
        self.threads = threads
        self._engine = LpEngine(str(find_library()), threads, usable_cores(), options)
        self._programs: dict[int, StageProgram] = {}

    def load(self, stage: int, program: StageProgram) -> None:
        """Take over a stage's program under a number."""
        for number, loaded in self._programs.items():
            if loaded is program and number != stage:
                self._engine.load_same(stage, number)
                break
        else:
            self._engine.load(stage, dict(program.parts()))
        self._programs[stage] = program

    def solve(self, stage: int, cuts: CutRows, chains: Chains, out: Outputs) -> Batch:
        """Solve all chains of a stage on the solver's threads."""
        if self.poll is not None:
            self.poll()
        try:
            return cast("Batch", self._engine.solve(stage, cuts, chains, out, self.poll))
        except LpFailure as failure:
            raise _in_words(failure) from failure

    def solve_paths(self, steps: Sequence[Step], states: Floats, out: PathOutputs) -> PathBatch:
        """Take every path through all steps: a thread stays with its path from the first to the last."""
        if self.poll is not None:
            self.poll()
        try:
            return cast("PathBatch", self._engine.solve_paths(list(steps), states, out, self.poll))
        except LpFailure as failure:
            raise _in_words(failure) from failure

    def save_failed(self, stage: int, path: Path) -> None:
        """Write the LP that the last call failed on, with names."""
        names = self._programs[stage].names
        self._engine.save_failed(str(path), list(names.columns), list(names.rows))

    @property
    def solves_done(self) -> int:
        """LPs that the engine has solved so far; a chain counts when it is whole."""
        return self._engine.solves_done

    @property
    def version(self) -> str:
        """Name and version of HiGHS, the fallback; another version may give other bits."""
        return f"HiGHS {self._engine.version}"


def _in_words(failure: LpFailure) -> SolveFailedError:
    status = STATUS_WORDS.get(failure.status, f"solver status {failure.status}")
    if failure.status == REJECTED:
        status = f"{failure}; some number in the case may be far too large"
    inputs = FailedInputs(**{item.name: getattr(failure, item.name) for item in fields(FailedInputs)})
    return SolveFailedError(inputs, status)


def find_library() -> Path:
    """Return the path of the shared library inside the installed highspy, without importing it.

    Raises MissingLibraryError.
    """
    spec = importlib.util.find_spec("highspy")
    if spec is None or not spec.submodule_search_locations:
        raise MissingLibraryError("highspy", HIGHSPY)
    folder = Path(next(iter(spec.submodule_search_locations)))
    for name in ("libhighs.so.1", "libhighs.1.dylib", "libhighs.dylib"):
        if (folder / name).exists():
            return folder / name
    from importlib import metadata  # noqa: PLC0415 - it loads the parsers of mail and zip files

    installed = metadata.version("highspy")
    raise MissingLibraryError(f"libhighs of highspy 1.15 (instead of {installed})", HIGHSPY)
