"""Records of config.json for choices of the method: stopping rules and cut selection."""

from dataclasses import fields, is_dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from cobre.core.bound_methods import BoundMethodName
from cobre.core.config import CutSelectionConfig, Gap, SimulationBased, SolverConfig, UpperBoundGap
from cobre.io.file_names import CONFIG_FILE
from cobre.io.findings.problems import Layer, Problems
from cobre.records import dataclass
from cobre.wording import MAX_COUNT

# Number types with ranges, for fields of config.json.


Count = Annotated[int, Field(ge=1, le=MAX_COUNT)]

NonNegativeCount = Annotated[int, Field(ge=0)]

Positive = Annotated[float, Field(gt=0)]

NonNegative = Annotated[float, Field(ge=0)]


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


# The solver sections of config.json: all keys are accepted, few have an effect.


Tolerance = Annotated[float, Field(gt=0)]

_SOLVER = SolverConfig()


@dataclass(frozen=True, slots=True)
class SolverProfileRecord:
    """LP solver settings of one phase; null: the default.

    No effect here, with a warning, except for the tolerances of training: LPs are solved the same way everywhere.

    primal_feasibility_tolerance, dual_feasibility_tolerance: of the solves that HiGHS does, because our own simplex
    could not finish them; our own simplex has fixed tolerances. The smallest value of both training phases is used.
    """

    dual_edge_weight: Literal["devex", "steepest_edge", "dantzig"] | None = None
    price: Literal["row", "row_hyper_sparse"] | None = None
    presolve: Literal["on", "off", "choose"] | None = None
    scale: Literal["off", "solver_scaling"] | None = None
    primal_feasibility_tolerance: Tolerance | None = None
    dual_feasibility_tolerance: Tolerance | None = None
    cost_perturbation: float | None = None
    factor_pivot_threshold: float | None = None
    refactor_error_tolerance: float | None = None
    simplex_update_limit: int | None = None
    steepest_edge_devex_fallback_threshold: float | None = None
    use_warm_start: bool | None = None


@dataclass(frozen=True, slots=True)
class TrainingSolverRecord:
    """training.solver.

    retry_max_attempts: number of other settings to try if a solve fails.
    retry_time_budget_seconds: no effect here, with a warning: results must not depend on time.
    forward, backward: one setting is used for both phases.
    """

    retry_max_attempts: Annotated[int, Field(ge=0)] = _SOLVER.retry_max_attempts
    retry_time_budget_seconds: Annotated[float, Field(ge=0)] = _SOLVER.retry_time_budget_seconds
    forward: SolverProfileRecord | None = None
    backward: SolverProfileRecord | None = None


TOLERANCES = ("primal_feasibility_tolerance", "dual_feasibility_tolerance")


def solver_config(record: TrainingSolverRecord, problems: Problems) -> SolverConfig:
    """One setting for all phases, so that an LP has the same solution, to the bit, in every phase."""
    warn_of_profile(record.forward, "training.solver.forward", problems, TOLERANCES)
    warn_of_profile(record.backward, "training.solver.backward", problems, TOLERANCES)
    return SolverConfig(
        retry_max_attempts=record.retry_max_attempts,
        retry_time_budget_seconds=record.retry_time_budget_seconds,
        primal_feasibility_tolerance=_one_tolerance(record, TOLERANCES[0], problems),
        dual_feasibility_tolerance=_one_tolerance(record, TOLERANCES[1], problems),
    )


def warn_of_profile(
    profile: SolverProfileRecord | None, section: str, problems: Problems, followed: tuple[str, ...] = ()
) -> None:
    """Warn of each setting that is given and has no effect; those in `followed` have one."""
    for name in SolverProfileRecord.__dataclass_fields__:
        if profile is not None and getattr(profile, name) is not None and name not in followed:
            message = "has no effect: LPs are solved with fixed settings, so that results are the same everywhere"
            problems.warn(Layer.SCHEMA, CONFIG_FILE, "", f"{section}.{name}", message)


def _one_tolerance(record: TrainingSolverRecord, name: str, problems: Problems) -> float | None:
    given = [getattr(phase, name) for phase in (record.forward, record.backward) if phase is not None]
    values = sorted(value for value in given if value is not None)
    if len(values) > 1 and values[0] != values[1]:
        message = f"differs between forward and backward; {values[0]} is used for both"
        problems.warn(Layer.SCHEMA, CONFIG_FILE, "", f"training.solver.*.{name}", message)
    return values[0] if values else None


# Fields that a record of config.json and the configuration of the program share, by name.
#
# So a plain field is declared twice: in its record in `records.py` and in its class in `cobre.core.config`, which has
# its default.


def shared_fields(source: Any, target: type) -> dict[str, Any]:
    """Plain values of `source` whose names are fields of `target`; None, objects and tuples of objects are left out.

    `shared_fields(TimeLimitRecord("time_limit", 60.0), TimeLimit)` is `{"seconds": 60.0}`.
    """
    names = {item.name for item in fields(target)}
    values = {item.name: getattr(source, item.name) for item in fields(source) if item.name in names}
    return {name: value for name, value in values.items() if value is not None and not _has_objects(value)}


def _has_objects(value: object) -> bool:
    if isinstance(value, tuple):
        return any(map(_has_objects, value))
    return is_dataclass(value)
