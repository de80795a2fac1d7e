"""Numbers of an iteration of training: what is measured while it runs, its record, and statistics of the LP solver."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import StrEnum
from operator import add
from typing import Any

import numpy as np

from cobre.core.arrays import Floats
from cobre.core.confidence import half_width_95
from cobre.core.policy_cost import CostSample, PolicyCost
from cobre.records import dataclass
from cobre.solver.batches import FIELDS, SolveStatistics, Work, work_vector


class Phase(StrEnum):
    """Phases in which LPs are solved. `simulation` includes that of a stopping rule during training."""

    FORWARD = "forward"
    BACKWARD = "backward"
    LOWER_BOUND = "lower_bound"
    SIMULATION = "simulation"


PhaseStatistics = Mapping[Phase, SolveStatistics]  # a phase without a solve may be missing
WIDTH = len(Phase) * len(FIELDS)


def sum_by_phase(parts: Iterable[PhaseStatistics]) -> dict[Phase, SolveStatistics]:
    """Add the statistics of several parts of a run phase by phase."""
    total = {phase: SolveStatistics() for phase in Phase}
    for part in parts:
        for phase, statistics in part.items():
            total[phase] += statistics
    return total


def to_vector(statistics: PhaseStatistics) -> list[float]:
    """Return `WIDTH` numbers, phase by phase: what ranks exchange and checkpoints keep."""
    return [number for phase in Phase for number in statistics.get(phase, SolveStatistics()).as_vector()]


def from_vector(numbers: Floats) -> dict[Phase, SolveStatistics]:
    """Return statistics by phase, from the result of `to_vector`."""
    rows = np.asarray(numbers).reshape(len(Phase), len(FIELDS)).tolist()
    return {phase: SolveStatistics.from_vector(row) for phase, row in zip(Phase, rows, strict=True)}


def phases_as_dict(statistics: PhaseStatistics) -> dict[str, Any]:
    """Return the phases in which something was solved, for JSON."""
    return {str(phase): part.as_dict() for phase, part in statistics.items() if part.solves}


_NO_WORK = tuple(SolveStatistics().as_vector())


@dataclass
class SolveCounter:
    """Statistics of this rank's solver by phase; plain numbers, because a stage may take a millisecond."""

    sums: dict[Phase, tuple[float, ...]] = field(default_factory=dict)

    def add(self, phase: Phase, work: Work) -> None:
        """Add the work of one call of the solver."""
        values = work_vector(work)
        self.sums[phase] = tuple(map(add, self.sums[phase], values)) if phase in self.sums else values

    def as_vector(self) -> list[float]:
        """Return statistics by phase, for `from_vector`."""
        return [number for phase in Phase for number in self.sums.get(phase, _NO_WORK)]

    @property
    def total(self) -> SolveStatistics:
        """Statistics of all phases together."""
        return SolveStatistics.from_vector(
            [sum(column) for column in zip(*self.sums.values(), strict=True)] or _NO_WORK
        )


# Traffic that every split of the work has: the costs of paths, the cuts, and the states that cut selection reads.
NEEDED = frozenset({"path costs", "cuts", "trial states"})


class IterationMeter:
    """Wall time, solves and exchanged bytes of the current iteration.

    solves: statistics of this rank's solver. seconds: wall seconds of this rank by phase. work: seconds of each stretch
    of work between two exchanges, in order. traffic_bytes: by purpose, what all ranks together exchanged, each byte
    counted once however many ranks read it; empty with one rank.
    """

    def __init__(self, ranks: int) -> None:
        self._ranks = ranks
        self.restart()

    def restart(self) -> None:
        """Set everything back to zero and start the clock, at the beginning of an iteration."""
        self.solves = SolveCounter()
        self.seconds = dict.fromkeys(("forward", "backward", "bound", "exchange"), 0.0)
        self.work: list[float] = []
        self.traffic_bytes: dict[str, int] = {}
        self._last = time.monotonic()

    def lap(self, phase: str) -> None:
        """Count the time since the last lap under this phase."""
        now = time.monotonic()
        elapsed, self._last = now - self._last, now
        self.seconds[phase] += elapsed
        if phase != "exchange":
            self.work.append(elapsed)

    def count_bytes(self, purpose: str, nbytes: int) -> None:
        """Count bytes that all ranks together exchanged for a purpose."""
        if self._ranks > 1:
            self.traffic_bytes[purpose] = self.traffic_bytes.get(purpose, 0) + nbytes


def total_traffic(iterations: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Add the traffic of several iterations by purpose."""
    total: dict[str, int] = {}
    for traffic in iterations:
        for purpose, nbytes in traffic.items():
            total[purpose] = total.get(purpose, 0) + nbytes
    return total


def least_traffic(exchanged: Mapping[str, int]) -> int:
    """Return the exchanged bytes that the method needs for any split of the work."""
    return sum(nbytes for purpose, nbytes in exchanged.items() if purpose in NEEDED)


@dataclass(frozen=True, slots=True)
class PhaseTimes:
    """Wall seconds on this rank; solver seconds are summed over its threads."""

    forward_s: float
    backward_s: float
    bound_s: float
    exchange_s: float
    solver_s: float


@dataclass(frozen=True, slots=True)
class RankLoad:
    """How a rank spent an iteration, in seconds of wall time.

    busy_s: at work between exchanges. waiting_s: in exchanges. imbalance_s: how much less work it had than the busiest
    rank, summed over the pieces between exchanges. solver_s: inside the solver, summed over threads.
    """

    busy_s: float
    waiting_s: float
    imbalance_s: float
    solver_s: float


@dataclass(frozen=True, slots=True)
class TrialPoints:
    """Values at the trial points of the forward pass, from the backward pass; $ of the first stage, by path.

    excess: by how much the values of trial points exceed those of the cuts, summed along a path; mean over paths.
    excess_std: standard deviation over paths. overstated: by how much cuts were above the values, likewise summed and
    averaged; overstated_worst: the most at one trial point, relative to the value there. Both are None if the
    cost-to-go is convex: cuts are below it.
    """

    excess: float
    excess_std: float
    overstated: float | None = None
    overstated_worst: float | None = None


@dataclass(frozen=True, slots=True)
class IterationRecord:
    """One iteration in $; the upper bound is the mean of the sampled paths, with its standard deviation, or exact.

    Solves and pivots are those of all ranks; times are this rank's, loads are by rank. cuts: slots of a stage.
    cuts_active: cuts of all stages that are active at the end (None: no longer known). solver: what all ranks'
    solvers did, by phase (empty: no longer known). traffic_bytes: bytes that ranks exchanged, by purpose, each
    counted once; empty with one rank.
    cost_sample: of the policy that the forward pass followed, if its paths are a sample of its cost.
    policy_cost: the mean cost of the policies of the latest iterations, from their samples; exact on trees
    (docs/adr/0060).
    first_stage_end: the state at the end of the first stage, mean over its openings, if a stopping rule reads it.
    """

    iteration: int
    lower_bound: float
    upper_bound: float
    upper_bound_std: float
    forward_passes: int
    solves: int
    simplex_iterations: int
    cuts: int
    elapsed_s: float
    times: PhaseTimes
    loads: tuple[RankLoad, ...] = ()
    cuts_active: int | None = None
    is_exact: bool = False
    solver: PhaseStatistics = field(default_factory=dict)
    traffic_bytes: Mapping[str, int] = field(default_factory=dict)
    trial_points: TrialPoints | None = None  # None: not measured (trees, a single stage), or no longer known
    cost_sample: CostSample | None = None
    policy_cost: PolicyCost | None = None
    first_stage_end: tuple[float, ...] | None = None

    @property
    def half_width(self) -> float:
        """Half width of the 95 % confidence interval of the upper bound.

        0 for a single path, whose spread is unknown.
        """
        return half_width_95(self.upper_bound_std, self.forward_passes)

    @property
    def policy_gap(self) -> float | None:
        """From the lower bound to the cost of the policy, relative to the bound; None if that is not known."""
        return None if self.policy_cost is None else self.policy_cost.gap(self.lower_bound)


@dataclass(frozen=True, slots=True)
class IterationResult:
    """Bounds and costs of an iteration, before they become a record of the history. costs: of all ranks' paths, $."""

    iteration: int
    lower_bound: float
    costs: Floats
    exact: float | None = None  # what the policy costs in $, if all paths took part
    trial_points: TrialPoints | None = None
    cost_sample: CostSample | None = None  # of the policy that the forward pass followed
    first_stage_end: tuple[float, ...] | None = None  # on rank 0, if a stopping rule reads it
