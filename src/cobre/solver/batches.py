"""What one call of the solver gets and gives: many right-hand sides for one stage.

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

from cobre.core.arrays import Floats, Indices, Ints
from cobre.errors import CobreError
from cobre.records import dataclass
from cobre.solver.program import StageProgram


@dataclass(frozen=True, slots=True)
class Realisations:
    """What may happen in a stage: rows are realisations."""

    inflow_m3s: Floats  # x hydros, without the part that follows from the lags
    load_mw: Floats  # x buses
    availability: Floats  # x sources, 0 to 1

    def take(self, rows: Ints | Indices) -> "Realisations":
        """Some of them, one for each entry of `rows`."""
        return Realisations(self.inflow_m3s[rows], self.load_mw[rows], self.availability[rows])


@dataclass(frozen=True, slots=True)
class Bases:
    """Starting points for simplex: status of columns and rows, and the cuts that are at their bound."""

    status: NDArray[np.int8]  # bases x (columns + rows)
    cuts: Ints  # bases x (states + 1), filled up with -1

    @classmethod
    def none(cls, program: StageProgram) -> "Bases":
        """An empty table: every chain starts from nothing."""
        width = len(program.cost) + len(program.row_lower)
        return cls(np.zeros((0, width), np.int8), np.zeros((0, program.num_decided + 1), np.int32))


@dataclass(frozen=True, slots=True)
class CutRows:
    """The cuts of a stage: where they lie, and which are active."""

    chunks: list[Floats]  # each rows x cuts, a multiple of CUTS_PER_BLOCK of them: intercepts, then components
    count: int
    active: NDArray[np.uint8]
    rows: Ints | None = None  # by component: its row, -1 where no cut depends on it; None: 1 + component


@dataclass(frozen=True, slots=True)
class Chains:
    """Trial points and what to solve them for; chain s is solved for realisation_index[start[s] : start[s + 1]]."""

    states: Floats  # trial points x dimension
    start: Ints  # chains + 1
    realisation_index: Ints  # by solve: the row of its realisation
    bases: Bases
    basis_index: Ints  # by chain; -1: start from nothing
    result_index: Ints | None = None  # by solve: the row of its results; None: in the order of the chains
    chains_per_point: int = 1  # consecutive chains that have the same state

    @classmethod
    def single(cls, states: Floats, realisation_index: Ints, bases: Bases) -> "Chains":
        """Every trial point with one realisation; all start from the first of the bases, or from nothing."""
        index = np.full(len(states), 0 if len(bases.status) else -1, np.int32)
        return cls(states, np.arange(len(states) + 1, dtype=np.int32), realisation_index, bases, index)


@dataclass(frozen=True, slots=True)
class NewCuts:
    """Where the cuts of a backward pass go: one for each trial point, made by whoever solves the last chain of it.

    Every trial point has the same number of consecutive chains, and all openings of the stage among them.
    """

    spectral_weights: Floats  # by descending cost of the openings
    chunks: list[Floats]  # as in `CutRows`, of the stage that gets the cuts
    first_slot: int
    rows: Ints | None

    @property
    def parts(self) -> tuple[Any, ...]:
        """All of it, in the order in which the solver takes it."""
        return self.spectral_weights, self.chunks, self.first_slot, self.rows


@dataclass(frozen=True, slots=True)
class Outputs:
    """Results beyond objectives that a caller wants. cuts: only from a solver that `makes_cuts`, with gradients."""

    basis: bool = False
    solution: bool = False
    gradient: bool = False
    cuts: NewCuts | None = None


@dataclass(frozen=True, slots=True)
class SharedBatch:
    """Tables in memory that several ranks see, and the number of chains that any of them has taken.

    The ranks solve the same chains together: each takes the next one from the counter until none is left. A call
    returns when this rank finds none; others may still be at theirs, so tables are read after a fence.
    """

    counter: Indices  # one number, 0 before the first chain
    objective: Floats  # solves
    gradient: Floats | None = None  # solves x dimension; None, here and below: nobody asks for it
    future_cost: Floats | None = None  # solves
    decided: Floats | None = None  # solves x states
    inflow: Floats | None = None  # solves x hydros
    primal: Floats | None = None  # solves x columns
    dual: Floats | None = None  # solves x rows
    basis_status: NDArray[np.int8] | None = None  # chains x (columns + rows)
    basis_cuts: Ints | None = None  # chains x (states + 1)
    finished: Indices | None = None  # where cuts are made, by trial point: chains that are solved, 0 at first

    @property
    def tables(self) -> tuple[NDArray[Any] | None, ...]:
        """All of them, in the order in which the solver takes them."""
        costs = (self.objective, self.gradient, self.future_cost, self.decided, self.inflow)
        return (*costs, self.primal, self.dual, self.basis_status, self.basis_cuts)


@dataclass(frozen=True, slots=True)
class SharedPathBatch:
    """As `SharedBatch`, for paths through some stages: their counter, and the tables of a `PathBatch`."""

    counter: Indices
    states: Floats
    objective: Floats
    future_cost: Floats
    basis_status: list[NDArray[np.int8]]
    basis_cuts: list[Ints]


class Work(Protocol):
    """What a call of the solver did, summed over its solves and threads."""

    objective: Floats
    solves: int
    pivots: int
    library_solves: int  # solves that HiGHS did
    retries: int
    refactorisations: int
    active_rows: int  # at a bound in the optimal bases, cuts included
    nucleus: int  # order of what is left of a basis when singletons are peeled: summed over refactorisations
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
    basis_status: NDArray[np.int8]  # by chain, after its first solve
    basis_cuts: Ints
    has_stray_coefficients: bool  # whether a cut that was made depends on a component that is not stored


@dataclass(frozen=True, slots=True)
class Step:
    """One stage of a forward pass: path p is solved for row realisation_index[p] of `realisations`.

    bases: one basis that all paths start from, or none (a cold start). carries_basis: each path starts from its own
    optimal basis of the step before instead; both stages must have the same shape, and cuts keep their numbers.
    """

    stage: int
    cuts: CutRows
    realisations: Realisations
    realisation_index: Ints
    bases: Bases
    carries_basis: bool = False


class PathBatch(Work, Protocol):
    """Paths through some stages, stage by stage (first axis) and path by path."""

    states: Floats  # stages x paths x dimension, entering
    future_cost: Floats
    basis_status: Sequence[NDArray[np.int8]]  # by stage: paths x (columns + rows)
    basis_cuts: Sequence[Ints]


class SolveFailedError(CobreError):
    """No setting of the solver led to an optimum.

    chain, item: where. status: `infeasible`, `unbounded` or what the solver said.
    """

    def __init__(self, chain: int, item: int, status: str) -> None:
        super().__init__(f"the LP of chain {chain}, item {item} could not be solved: {status}")
        self.chain = chain
        self.item = item
        self.status = status


class LpSolver(ABC):
    """Solves batches. One owner; not for several threads at once.

    makes_cuts: whether `solve` takes `Outputs.cuts`. threads: that solve at once.
    ask: called before each call and then at least every 100 ms, on the calling thread, also inside a long solve; what
    it raises ends the call, whose results are lost. Handlers of signals are run as often, with or without it.
    """

    makes_cuts = False
    threads = 1
    ask: Callable[[], object] | None = None

    @abstractmethod
    def load(self, stage: int, program: StageProgram) -> None:
        """Take over a stage's program under a number."""

    @abstractmethod
    def solve(
        self,
        stage: int,
        cuts: CutRows,
        chains: Chains,
        realisations: Realisations,
        outputs: Outputs,
        shared: SharedBatch | None = None,
    ) -> Batch:
        """Solve all chains of a stage; raises `SolveFailedError` for the first chain that cannot be solved.

        shared: together with other ranks, which ask for the same chains. The batch then has the tables that are shared,
        and counts what this rank solved.
        """

    @abstractmethod
    def solve_paths(self, steps: Sequence[Step], states: Floats, shared: SharedPathBatch | None = None) -> PathBatch:
        """Take every path (rows of `states`) through all steps; the same bits as solving them one after the other.

        shared: together with other ranks, which ask for the same paths. Raises `SolveFailedError` when some path
        cannot go on; which one, and where, is for `solve` to tell.
        """

    @abstractmethod
    def save_failed(self, stage: int, path: Path) -> None:
        """Write the LP that the last `solve` failed on, with names."""

    @property
    def solves_done(self) -> int:
        """LPs that this solver has solved so far, also while a call goes on; 0 for a solver that does not count."""
        return 0

    @property
    @abstractmethod
    def version(self) -> str:
        """Name and version of the library underneath: other versions may give other bits."""


# What the LP solver did: counts that add up over solves, threads and ranks.


@dataclass(frozen=True, slots=True)
class SolveStatistics:
    """Sums; `seconds` are those inside the solver, added over threads.

    active_rows: rows at a bound in the optimal bases, cuts included (k of the kernel), summed over solves.
    nucleus: order of what is left of a basis when singletons are peeled, summed over refactorisations.
    retries: solves begun again from nothing or with other settings. library_solves: solves that HiGHS did.
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
    def from_numbers(cls, numbers: Sequence[float]) -> "SolveStatistics":
        """From numbers in the order of the fields: the inverse of `numbers`."""
        counts = [int(number) for number in numbers[:-1]]
        return cls(*counts, float(numbers[-1]))  # type: ignore[call-arg]  # it takes a star for all arguments

    @property
    def numbers(self) -> list[float]:
        """In the order of the fields; counts are exact as long as they stay below 2**53."""
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
        """For a program that reads: the counts, and what follows from them."""
        counts = {name: getattr(self, name) for name in FIELDS if name not in ("active_rows", "nucleus")}
        return counts | {
            "us_per_pivot": self.us_per_pivot,
            "mean_active_rows": self.mean_active_rows,
            "mean_nucleus": self.mean_nucleus,
        }


FIELDS = tuple(field.name for field in fields(SolveStatistics))

_VALUES = attrgetter(*FIELDS)

_OF_WORK = attrgetter(*FIELDS[:-1], "solve_seconds")


def numbers_of(work: Work) -> tuple[int | float, ...]:
    """What one call of the solver did, in the order of the fields."""
    numbers: tuple[int | float, ...] = _OF_WORK(work)
    return numbers
