"""What is recorded of an iteration and of the end of training."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import Any

import numpy as np

from cobre.core.arrays import Floats, sum_in_order
from cobre.core.bound_methods import BOUND_NAMES, DEFAULT_CONFIDENCE, DEFAULT_MAX_NODES, DEFAULT_PATHS, BoundMethod
from cobre.core.confidence import half_width_95, skewed_half_width
from cobre.core.verdict import relative_gap
from cobre.records import dataclass
from cobre.solver.batches import FIELDS, SolveStatistics

# The phases of a run in which LPs are solved, and what the solver did in each.


class Phase(StrEnum):
    """What LPs are solved for. `simulation` is also what a stopping rule asks for during training."""

    FORWARD = "forward"
    BACKWARD = "backward"
    LOWER_BOUND = "lower_bound"
    SIMULATION = "simulation"


PhaseStatistics = Mapping[Phase, SolveStatistics]  # a phase without a solve may be missing

WIDTH = len(Phase) * len(FIELDS)


def added(parts: Iterable[PhaseStatistics]) -> dict[Phase, SolveStatistics]:
    """The statistics of several parts of a run, added phase by phase."""
    total = {phase: SolveStatistics() for phase in Phase}
    for part in parts:
        for phase, statistics in part.items():
            total[phase] += statistics
    return total


def to_numbers(statistics: PhaseStatistics) -> list[float]:
    """`WIDTH` numbers, phase by phase: what ranks exchange and checkpoints keep."""
    return [number for phase in Phase for number in statistics.get(phase, SolveStatistics()).numbers]


def from_numbers(numbers: Floats) -> dict[Phase, SolveStatistics]:
    """Statistics by phase, from the numbers that `to_numbers` made."""
    rows = np.asarray(numbers).reshape(len(Phase), len(FIELDS)).tolist()
    return {phase: SolveStatistics.from_numbers(row) for phase, row in zip(Phase, rows, strict=True)}


def as_dict(statistics: PhaseStatistics) -> dict[str, Any]:
    """For a program that reads: the phases in which something was solved."""
    return {str(phase): part.as_dict() for phase, part in statistics.items() if part.solves}


# What a policy costs, estimated from how much more than the cuts said its paths cost (docs/adr/0060).
#
# A sample keeps its size and three sums, not its paths: samples of several iterations are pooled from these.


ENOUGH_PATHS = 32

"""Paths of a mean: iterations with fewer of them are pooled, the newest first."""

LEAST_HALF_WIDTH = 1e-4

"""Of the cost: no narrower interval is given, because a sample does not know of paths that are rarer than it is large.
A gap of this size counts as closed."""

FINAL_WORTH = 3

"""Paths of training that one path of the final policy counts for: it averages all openings at every stage, and was
found to have a third of their variance."""

MAX_DRIFT = 2e-4

"""Of the lower bound: iterations since which it has risen by more had other policies than the final one."""

MIN_PATHS = 2

"""Paths that have a spread."""

SPREAD_PATHS = 128

"""Paths of the spread: rare ones that cost much are missing from most small samples."""


@dataclass(frozen=True, slots=True)
class CostSample:
    """Costs of some paths, $. squares, cubes: sums of powers of the deviations from the mean."""

    paths: int
    mean: float
    squares: float
    cubes: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "CostSample":
        """Sums are made in the order of the values, so that their bits are fixed."""
        mean = sum_in_order(values) / len(values)
        deviations = [value - mean for value in values]
        squares = sum_in_order(value * value for value in deviations)
        return cls(len(values), mean, squares, sum_in_order(value**3 for value in deviations))

    def half_width(self, confidence: float, other: "CostSample | None" = None) -> float:
        """Half of the confidence interval of the mean; infinite for a single path.

        other: a larger sample of similar costs, whose spread counts where it is wider.
        """
        spreads = [self] if other is None or other.paths < MIN_PATHS else [self, other]
        return max(self._half_width(confidence, spread) for spread in spreads)

    def _half_width(self, confidence: float, spread: "CostSample") -> float:
        scale = self.paths / spread.paths
        return skewed_half_width(self.paths, scale * spread.squares, scale * spread.cubes, confidence)


@dataclass(frozen=True, slots=True)
class PolicyCost:
    """The cost of a policy, $, with half of its confidence interval: 0 where it is exact, None for a single path.

    paths: how many were averaged; 0 where all were. iterations: of training whose paths they are; 0 for paths that were
    drawn for the estimate alone. is_estimate: under a risk measure, where no sample of paths is a bound.
    """

    value: float
    half_width: float | None
    paths: int = 0
    iterations: int = 0
    confidence: float = DEFAULT_CONFIDENCE
    is_estimate: bool = False

    @property
    def is_exact(self) -> bool:
        """Whether every path took part."""
        return self.paths == 0

    @property
    def largest(self) -> float:
        """The upper end of the interval; infinite for a single path."""
        return self.value + (math.inf if self.half_width is None else self.half_width)

    def gap(self, lower_bound: float) -> float:
        """From a lower bound to the cost, relative to the bound."""
        return relative_gap(lower_bound, self.value)

    def as_dict(self) -> dict[str, Any]:
        """By the names that events, tables and summary.json have; paths 0: all of them, exact."""
        return {
            "policy_cost": self.value,
            "policy_cost_half_width": self.half_width,
            "policy_cost_paths": self.paths,
        }


NO_POLICY_COST: dict[str, Any] = dict.fromkeys(PolicyCost(0.0, 0.0).as_dict())

"""The same names where the cost is not known."""


def sampled_cost(
    sample: CostSample,
    *,
    is_estimate: bool,
    iterations: int = 0,
    confidence: float = DEFAULT_CONFIDENCE,
    spread: CostSample | None = None,
) -> PolicyCost:
    """The mean of a sample with its interval. spread: a larger sample of similar costs."""
    half_width = max(sample.half_width(confidence, spread), LEAST_HALF_WIDTH * abs(sample.mean))
    known = half_width if math.isfinite(half_width) else None
    return PolicyCost(sample.mean, known, sample.paths, iterations, confidence, is_estimate)


def final_cost(final: CostSample, recent: CostSample, drift: float) -> PolicyCost:
    """The cost of a final policy without a risk measure, from paths of its own and from those of the last iterations.

    drift: $, by how much the lower bound has risen since those iterations, on average; it counts as an error. Where
    the two disagree by more than chance, either earlier policies cost something else, or few paths of the final one
    have missed what is rare: the interval then reaches from one to the other.
    """
    widths = [part.half_width(DEFAULT_CONFIDENCE) for part in (final, recent)]
    own = FINAL_WORTH * final.paths / (FINAL_WORTH * final.paths + recent.paths)
    value = own * final.mean + (1.0 - own) * recent.mean
    half_width = math.hypot(own * widths[0], (1.0 - own) * widths[1]) + (1.0 - own) * drift
    if abs(final.mean - recent.mean) > math.hypot(*widths):
        half_width += max(own, 1.0 - own) * abs(final.mean - recent.mean)
    return PolicyCost(value, max(half_width, LEAST_HALF_WIDTH * abs(value)), final.paths + recent.paths)


def latest_cost(
    samples: Sequence[CostSample | None], *, is_estimate: bool, confidence: float = DEFAULT_CONFIDENCE
) -> PolicyCost | None:
    """The mean cost of the policies of the latest iterations, from a sample of each; None without one of the last."""
    recent = latest(samples, ENOUGH_PATHS)
    if not recent:
        return None
    spread = pooled(latest(samples, SPREAD_PATHS))
    return sampled_cost(
        pooled(recent), iterations=len(recent), confidence=confidence, is_estimate=is_estimate, spread=spread
    )


def latest(samples: Sequence[CostSample | None], paths: int, share: float = 0.5) -> list[CostSample]:
    """Samples of as many of the latest iterations as have so many paths together, the oldest first.

    share: of all iterations that may count; at most half, unless these are known to be alike: the first policies cost
    far more.
    """
    recent: list[CostSample] = []
    for sample in reversed(samples[len(samples) - math.ceil(share * len(samples)) :]):
        if sample is None:
            break
        recent.append(sample)
        if sum(part.paths for part in recent) >= paths:
            break
    return recent[::-1]


def pooled(samples: Sequence[CostSample]) -> CostSample:
    """All paths of several samples as one, as if their costs were known one by one."""
    if len(samples) == 1:
        return samples[0]
    paths = sum(sample.paths for sample in samples)
    mean = sum_in_order(sample.paths * sample.mean for sample in samples) / paths
    squares = cubes = 0.0
    for sample in samples:
        shift = sample.mean - mean
        squares += sample.squares + sample.paths * shift * shift
        cubes += sample.cubes + 3.0 * shift * sample.squares + sample.paths * shift**3
    return CostSample(paths, mean, squares, cubes)


# Records of a training run: one for each iteration, the same for every listener.


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
    """What the backward pass found at the trial points of the forward pass; $ of the first stage, by path.

    excess: by how much the values of trial points exceed what the cuts had said, summed along a path; mean over paths.
    excess_std: standard deviation over paths. overstated: by how much cuts lay above the values, likewise summed and
    averaged; overstated_worst: the most at one trial point, relative to the value there. Both are None where the
    cost-to-go is convex: cuts lie below it.
    """

    excess: float
    excess_std: float
    overstated: float | None = None
    overstated_worst: float | None = None


@dataclass(frozen=True, slots=True)
class IterationRecord:
    """One iteration in $; the upper bound is the mean of the sampled paths, with its standard deviation, or exact.

    Solves and pivots are those of all ranks; times are this rank's, loads are by rank. cuts: slots of a stage.
    cuts_active: cuts of all stages that are active at the end (None: not known any more). solver: what all ranks'
    solvers did, by phase (empty: not known any more). traffic_bytes: bytes that ranks exchanged, by purpose, each
    counted once; empty with one rank.
    cost_sample: of the policy that the forward pass followed, where its paths tell what it costs. policy_cost: the mean
    cost of the policies of the latest iterations, from their samples; exact on trees (docs/adr/0060).
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
    trial_points: TrialPoints | None = None  # None: not measured (trees, a single stage), or not known any more
    cost_sample: CostSample | None = None
    policy_cost: PolicyCost | None = None

    @property
    def half_width(self) -> float:
        """Half width of the 95 % confidence interval of the upper bound.

        0 for a single path, whose spread is unknown.
        """
        return half_width_95(self.upper_bound_std, self.forward_passes)

    @property
    def gap(self) -> float:
        """(upper - lower) / max(1, |lower|)."""
        return relative_gap(self.lower_bound, self.upper_bound)

    @property
    def policy_gap(self) -> float | None:
        """From the lower bound to the cost of the policy, relative to the bound; None where that is not known."""
        return None if self.policy_cost is None else self.policy_cost.gap(self.lower_bound)


# Why a training run ended: a kind for programs, words for people.


class StopKind(StrEnum):
    """What ended a run.

    The first six are rules of the case; `OTHER_RULE` is a stopping rule from outside the package.
    """

    ITERATION_LIMIT = "iteration_limit"
    TIME_LIMIT = "time_limit"
    BOUND_STALLING = "bound_stalling"
    SIMULATION = "simulation"
    GAP = "gap"
    UPPER_BOUND = "upper_bound"
    OTHER_RULE = "other_rule"
    REQUESTED = "requested"
    RUN_TIME_LIMIT = "run_time_limit"
    TERMINATED = "terminated"
    INTERRUPTED = "interrupted"

    @property
    def has_converged(self) -> bool:
        """Whether a rule that judges the bounds was satisfied."""
        looking = (StopKind.BOUND_STALLING, StopKind.SIMULATION, StopKind.GAP, StopKind.UPPER_BOUND)
        return self in (*looking, StopKind.OTHER_RULE)

    @property
    def is_interruption(self) -> bool:
        """Whether the run ended from outside, before a rule of the case or its caller said so."""
        return self in (StopKind.RUN_TIME_LIMIT, StopKind.TERMINATED, StopKind.INTERRUPTED)


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a run ended: `kind` for programs, `reason` for people."""

    kind: StopKind
    reason: str


# What is asked of an upper bound, and what comes back.


@dataclass(frozen=True, slots=True)
class BoundPlan:
    """How to find a bound.

    paths: sampled ones, which an inner approximation takes its vertices from. max_nodes: of a tree that is enumerated.
    seed: of the sampled paths.
    """

    method: BoundMethod = BoundMethod.AUTO
    paths: int = DEFAULT_PATHS
    confidence: float = DEFAULT_CONFIDENCE
    max_nodes: int = DEFAULT_MAX_NODES
    seed: int = 0


@dataclass(frozen=True, slots=True)
class UpperBound:
    """In $. half_width: of the confidence interval, 0 where the bound is deterministic.

    size: nodes of the tree, vertices of the inner approximation, or sampled paths.
    is_estimate: value is an estimate of the policy's cost from below (sampled, under a risk measure), not a bound.
    at_most: then the upper end of the interval of a bound in expectation; None where that says nothing.
    """

    method: BoundMethod
    value: float
    lower_bound: float
    half_width: float
    confidence: float | None
    size: int
    is_estimate: bool = False
    at_most: float | None = None

    @property
    def upper_bound(self) -> float | None:
        """The bound, $: of an estimate `at_most`; of another sample the middle of its interval."""
        return self.at_most if self.is_estimate else self.value

    @property
    def policy_cost(self) -> float | None:
        """The cost of the policy, exact or estimated; None for the bound of an inner approximation."""
        return None if self.method is BoundMethod.INNER else self.value

    @property
    def is_deterministic(self) -> bool:
        """Whether no sampling error is left."""
        return self.method is not BoundMethod.SAMPLED

    @property
    def name(self) -> str:
        """The bound's name in messages, such as `exact cost of the policy`."""
        return BOUND_NAMES[self.method]

    @property
    def largest(self) -> float:
        """The upper end of the confidence interval, or the bound itself."""
        return self.value + self.half_width

    @property
    def gap(self) -> float:
        """From the lower bound to `largest`, relative to the lower bound."""
        return relative_gap(self.lower_bound, self.largest)

    def as_dict(self) -> dict[str, Any]:
        """The bound with plain keys, as `cobre bound --json` prints it and bound.json holds it.

        Of an estimate, `upper_bound` and `gap` are those of `at_most`, and may be null; `policy_cost`, `half_width` and
        `estimated_gap` are the estimate's.
        """
        upper = self.upper_bound
        gap = self.gap if not self.is_estimate else None if upper is None else relative_gap(self.lower_bound, upper)
        estimate = {"is_estimate": True, "estimated_gap": self.gap} if self.is_estimate else {}
        return {
            "method": str(self.method),
            "upper_bound": upper,
            "policy_cost": self.policy_cost,
            "half_width": self.half_width,
            "confidence": self.confidence,
            "lower_bound": self.lower_bound,
            "gap": gap,
            "is_deterministic": self.is_deterministic,
            "size": self.size,
        } | estimate
