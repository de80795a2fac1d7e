"""The contract of an LP solver: many right-hand sides for one stage, or paths through several stages, in one call.

A *chain* is a trial point with the realisations that it is solved for, one after the other. A chain's results are a
pure function of the stage's program, the cuts, its own state, its realisations and its starting basis; they do not
depend on the number of threads, on other chains, or on anything that was solved before.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import fields
from operator import add, attrgetter
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cobre._native import (
    Bases,
    Chains,
    CutRows,
    NewCuts,
    Outputs,
    PathOutputs,
    Realisations,
    SharedBatch,
    SharedPaths,
    Step,
)
from cobre.core.arrays import Floats, Ints
from cobre.errors import CobreError
from cobre.records import dataclass
from cobre.solver.program import StageProgram

# Native code reads these records field by field; `_native.pyi` describes every field.
__all__ = [
    "Bases",
    "Batch",
    "Chains",
    "CutRows",
    "FailedInputs",
    "LpSolver",
    "NewCuts",
    "Outputs",
    "PathBatch",
    "PathOutputs",
    "Realisations",
    "SharedBatch",
    "SharedPaths",
    "SolveFailedError",
    "SolveStatistics",
    "Step",
    "Work",
    "no_bases",
    "work_vector",
]


def no_bases(program: StageProgram) -> Bases:
    """Return an empty table of bases: every chain of the stage starts cold."""
    width = len(program.cost) + len(program.row_lower)
    return Bases(np.zeros((0, width), np.int8), np.zeros((0, program.num_decided + 1), np.int32))


class Work(Protocol):
    """Work of one call of the solver, summed over its solves and threads."""

    objective: Floats
    solves: int
    pivots: int
    library_solves: int  # solves that HiGHS did
    retries: int
    refactorisations: int
    active_rows: int  # at a bound in the optimal bases, cuts included
    nucleus: int  # order of a basis without its singletons: summed over refactorisations
    solve_seconds: float  # inside the solver


class Batch(Work, Protocol):
    """Results by solve, in the order of the chains, or as their `result_index` says.

    Costs are scaled ($ / cost_scale). dual: what the optimal cost grows by when a row's right-hand side grows by one,
    so 0 or more at a lower bound and 0 or less at an upper one.
    """

    future_cost: Floats
    gradient: Floats  # solves x dimension
    decided: Floats  # solves x states, end of the stage
    inflow: Floats  # solves x hydros, realised
    primal: Floats  # solves x columns, scaled
    dual: Floats  # solves x rows, scaled
    basis_status: NDArray[np.int8]  # solves x (columns + rows), optimal
    basis_cuts: Ints
    has_stray_coefficients: bool  # whether a new cut depends on a component that is not stored


class PathBatch(Work, Protocol):
    """Paths through some stages, stage by stage (first axis, or a list) and path by path.

    Bases and solutions are present only if requested, and None if the shared tables have None.
    """

    states: Floats  # stages x paths x dimension, entering
    future_cost: Floats
    leaving: Floats  # paths x dimension, at the end of the last stage
    basis_status: Sequence[NDArray[np.int8]]  # by stage: paths x (columns + rows)
    basis_cuts: Sequence[Ints]
    inflow: Sequence[Floats]  # by stage: paths x hydros, realised
    primal: Sequence[Floats]  # by stage: paths x columns, scaled
    dual: Sequence[Floats]  # by stage: paths x rows, scaled


@dataclass(frozen=True, slots=True)
class FailedInputs:
    """Everything that went into an LP that could not be solved.

    stage: number of the program. chain: number of the chain, or of the path. item: number of the solve in the batch,
    over all chains. realisation: row of the realisations. basis_status, basis_cuts: where the chain started, with the
    cuts that were active there; None and empty for a cold start. solved_before: earlier solves of the chain.
    """

    stage: int
    chain: int
    item: int
    realisation: int
    state: Floats
    basis_status: NDArray[np.int8] | None
    basis_cuts: Ints
    solved_before: int


class SolveFailedError(CobreError):
    """No setting of the solver led to an optimum.

    inputs: of the LP that failed. status: `infeasible`, `unbounded` or the status of the solver.
    """

    def __init__(self, inputs: FailedInputs, status: str) -> None:
        where = f"stage {inputs.stage}, chain {inputs.chain}, item {inputs.item}"
        super().__init__(f"the LP of {where} could not be solved: {status}")
        self.inputs = inputs
        self.status = status


class LpSolver(ABC):
    """Solves batches. One owner; not for several threads at once.

    makes_cuts: whether `solve` takes `Outputs.cuts`. threads: that solve at once.
    poll: called before each call and then at least every 100 ms, on the calling thread, also inside a long solve; what
    it raises ends the call, whose results are lost. Handlers of signals are run as often, with or without it.
    """

    makes_cuts = False
    threads = 1
    poll: Callable[[], object] | None = None

    @abstractmethod
    def load(self, stage: int, program: StageProgram) -> None:
        """Take over a stage's program under a number."""

    @abstractmethod
    def solve(self, stage: int, cuts: CutRows, chains: Chains, out: Outputs) -> Batch:
        """Solve all chains of a stage; raises `SolveFailedError` for the first chain that cannot be solved.

        With `out.shared`, ranks that ask for the same chains solve them together: the batch then has the shared tables,
        and counts what this rank solved.
        """

    @abstractmethod
    def solve_paths(self, steps: Sequence[Step], states: Floats, out: PathOutputs) -> PathBatch:
        """Take every path (rows of `states`) through all steps; the same bits as solving them one after the other.

        With `out.shared`, ranks that ask for the same paths solve them together. Raises `SolveFailedError` for the
        first path that cannot go on.
        """

    @abstractmethod
    def save_failed(self, stage: int, path: Path) -> None:
        """Write the LP that the last call failed on, with the names of that stage."""

    @property
    def solves_done(self) -> int:
        """LPs that this solver has solved so far, also while a call goes on; 0 for a solver that does not count."""
        return 0

    @property
    @abstractmethod
    def version(self) -> str:
        """Name and version of the library underneath: other versions may give other bits."""


# Statistics of the LP solver: counts that add up over solves, threads and ranks.


@dataclass(frozen=True, slots=True)
class SolveStatistics:
    """Sums; `seconds` are those inside the solver, added over threads.

    active_rows: rows at a bound in the optimal bases, cuts included (k of the kernel), summed over solves.
    nucleus: order of a basis without its singletons, summed over refactorisations.
    retries: solves repeated from a cold start or with other settings. library_solves: solves by HiGHS.
    """

    solves: int = 0
    pivots: int = 0
    refactorisations: int = 0
    active_rows: int = 0
    nucleus: int = 0
    retries: int = 0
    library_solves: int = 0
    seconds: float = 0.0

    @classmethod
    def from_vector(cls, numbers: Sequence[float]) -> "SolveStatistics":
        """Return statistics from numbers in the order of the fields: the inverse of `as_vector`."""
        counts = [int(number) for number in numbers[:-1]]
        return cls(*counts, float(numbers[-1]))  # type: ignore[call-arg]  # it takes a star for all arguments

    def as_vector(self) -> list[float]:
        """Return the values in the order of the fields; counts are exact as long as they stay below 2**53."""
        return [float(value) for value in _VALUES(self)]

    def __add__(self, other: "SolveStatistics") -> "SolveStatistics":
        return SolveStatistics(*map(add, _VALUES(self), _VALUES(other)))

    @property
    def us_per_pivot(self) -> float | None:
        """Microseconds inside the solver; None without a pivot."""
        return 1e6 * self.seconds / self.pivots if self.pivots else None

    @property
    def mean_active_rows(self) -> float | None:
        """Mean number of active rows of an optimal basis; None without a solve."""
        return self.active_rows / self.solves if self.solves else None

    @property
    def mean_nucleus(self) -> float | None:
        """Mean order of the nucleus over factorisations; None when nothing was factorised."""
        return self.nucleus / self.refactorisations if self.refactorisations else None

    def as_dict(self) -> dict[str, Any]:
        """Return the counts and the rates derived from them, as JSON values."""
        counts = {name: getattr(self, name) for name in FIELDS if name not in ("active_rows", "nucleus")}
        return counts | {
            "us_per_pivot": self.us_per_pivot,
            "mean_active_rows": self.mean_active_rows,
            "mean_nucleus": self.mean_nucleus,
        }


FIELDS = tuple(field.name for field in fields(SolveStatistics))
_VALUES = attrgetter(*FIELDS)
_OF_WORK = attrgetter(*FIELDS[:-1], "solve_seconds")


def work_vector(work: Work) -> tuple[int | float, ...]:
    """Return the work of one call of the solver, in the order of the fields."""
    numbers: tuple[int | float, ...] = _OF_WORK(work)
    return numbers
