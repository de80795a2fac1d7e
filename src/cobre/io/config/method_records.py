"""Records of config.json for choices of the method: stopping rules and cut selection."""

from typing import Annotated, Literal

from pydantic import Field

from cobre.core.bound_methods import BoundMethodName
from cobre.core.config import CutSelectionConfig, Gap, SimulationBased, UpperBoundGap
from cobre.io.config.field_types import Count, NonNegative, NonNegativeCount, Positive
from cobre.records import dataclass

# Defaults are those of the configuration of the program; required fields have any value here.
_CUTS = CutSelectionConfig()
_SIMULATION = SimulationBased(replications=2, period=1)
_GAP = UpperBoundGap(gap_percent=0.0)
_POLICY_GAP = Gap()


@dataclass(frozen=True, slots=True)
class IterationLimitRecord:
    """See core.config.IterationLimit.

    limit: number of iterations.
    """

    type: Literal["iteration_limit"]
    limit: Count


@dataclass(frozen=True, slots=True)
class TimeLimitRecord:
    """See core.config.TimeLimit."""

    type: Literal["time_limit"]
    seconds: Positive


@dataclass(frozen=True, slots=True)
class BoundStallingRecord:
    """See core.config.BoundStalling.

    iterations: number of iterations to look back.
    tolerance: rise of the lower bound over these iterations, relative to it.
    """

    type: Literal["bound_stalling"]
    iterations: Count
    tolerance: NonNegative


@dataclass(frozen=True, slots=True)
class GapRecord:
    """See core.config.Gap: a rule for the cost of the policy, which is exact with enumerated selection.

    With sampled selection an extension of the published format: the upper end of the interval of the policy's cost
    counts. A study with a risk measure needs training.selection.risk_weighted_share for it.

    tolerance: in $.
    relative_tolerance: in percent of the lower bound.
    confidence: confidence level of the interval; sampled selection only, an extension of the published format.
    patience: number of iterations in a row in which a tolerance must be met; sampled selection only, an extension of
    the published format.
    """

    type: Literal["gap"]
    tolerance: NonNegative | None = None
    relative_tolerance: NonNegative | None = None
    confidence: Annotated[float, Field(gt=0, lt=1)] = _POLICY_GAP.confidence
    patience: Count = _POLICY_GAP.patience


@dataclass(frozen=True, slots=True)
class SimulationBasedRecord:
    """See core.config.SimulationBased: an extension of the published format.

    replications: scenarios of each simulation.
    period: iterations between two simulations.
    confidence: confidence level of the test.
    relative_tolerance: how far the cost of the policy may be above the lower bound, relative to it.
    """

    type: Literal["simulation"]
    replications: Annotated[int, Field(ge=2)]
    period: Count
    confidence: Annotated[float, Field(gt=0, lt=1)] = _SIMULATION.confidence
    relative_tolerance: NonNegative = _SIMULATION.relative_tolerance


@dataclass(frozen=True, slots=True)
class UpperBoundGapRecord:
    """See core.config.UpperBoundGap: an extension of the published format, also for studies with a risk measure.

    gap_percent: how far above the lower bound the upper bound may be, in percent of the lower bound.
    period: iterations between two upper bounds.
    method: as in `cobre bound`.
    paths: sampled paths of each bound.
    confidence: confidence level of a sampled estimate.
    """

    type: Literal["upper_bound"]
    gap_percent: NonNegative
    period: Count = _GAP.period
    method: BoundMethodName = _GAP.method
    paths: Annotated[int, Field(ge=2)] = _GAP.paths
    confidence: Annotated[float, Field(gt=0, lt=1)] = _GAP.confidence


StoppingRuleRecord = Annotated[
    IterationLimitRecord
    | TimeLimitRecord
    | BoundStallingRecord
    | GapRecord
    | SimulationBasedRecord
    | UpperBoundGapRecord,
    Field(discriminator="type"),
]


@dataclass(frozen=True, slots=True)
class Level1Record:
    """Keeps cuts that are near the best at some visited state (lml1: only the oldest of them).

    method: lml1 belongs to format 0.18 only.
    check_frequency: iterations between two selections.
    tie_tolerance: largest distance from the best cut; format 0.18 only.
    lookback_iterations: number of latest iterations whose visited states choose cuts; null: all; format 0.19 only.
    """

    method: Literal["level1", "lml1"]
    check_frequency: Count = _CUTS.check_frequency
    tie_tolerance: NonNegative = _CUTS.tie_tolerance
    lookback_iterations: Count | None = None


@dataclass(frozen=True, slots=True)
class DominationRecord:
    """Removes cuts that are below the best at every visited state; format 0.18 only.

    domination_tolerance: smallest distance below the best cut.
    check_frequency: iterations between two selections.
    """

    method: Literal["domination"]
    domination_tolerance: NonNegative
    check_frequency: Count = _CUTS.check_frequency


@dataclass(frozen=True, slots=True)
class DynamicRecord:
    """Adds cuts to an LP when they are violated.

    candidate_recency: number of recent iterations whose cuts are used; null: all.
    start_iteration: first iteration in which `candidate_recency` applies.
    seed_window: number of recent iterations whose cuts are always used; no effect if `candidate_recency` is null.
    max_added_per_round, violation_tolerance: no effect here, with a warning.
    """

    method: Literal["dynamic"]
    seed_window: NonNegativeCount = _CUTS.seed_window
    start_iteration: Count = _CUTS.start_iteration
    max_added_per_round: Count = _CUTS.max_added_per_round
    violation_tolerance: NonNegative | None = None
    candidate_recency: Count | None = None


@dataclass(frozen=True, slots=True)
class CutSelectionRecord:
    """training.cut_selection.

    selection: method of choosing cuts; null: all are used.
    max_active_per_stage: largest number of active cuts per stage; in format 0.19 of those that this run made, and not
    in the first stage. Cuts of the present iteration stay, also with 0.
    state_window: number of latest iterations whose visited states choose cuts; null: all iterations.
    row_activity_tolerance: no effect here, with a warning.
    """

    selection: Annotated[Level1Record | DominationRecord | DynamicRecord, Field(discriminator="method")] | None = None
    max_active_per_stage: NonNegativeCount | None = None
    state_window: Count | None = None
    row_activity_tolerance: NonNegative | None = None
