"""config.json as the file has it: one record per object. `config_file` turns them into what the program uses."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from cobre.core.config import BoundaryPolicy, ExportsConfig, NonNegativityMethod, Scheme
from cobre.io.config.solver_profiles import SolverProfileRecord, TrainingSolverRecord
from cobre.io.json_files import JsonFile
from cobre.io.magnitudes import MAX_COUNT

DEFAULT_SOLVER = TrainingSolverRecord()

Count = Annotated[int, Field(ge=1, le=MAX_COUNT)]
NonNegativeCount = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]


@dataclass(frozen=True, slots=True)
class SampledTraining:
    """So many trajectories in each iteration.

    forward_passes: paths through the horizon in each iteration; each gives one cut for every stage.
    """

    method: Literal["sampled"]
    forward_passes: Count


@dataclass(frozen=True, slots=True)
class SampledSimulation:
    """So many trajectories.

    num_scenarios: paths through the horizon.
    """

    method: Literal["sampled"]
    num_scenarios: Count


@dataclass(frozen=True, slots=True)
class Enumerated:
    """Every path of a node tree. Not modelled yet: refused."""

    method: Literal["enumerated"]


TrainingSelection = Annotated[SampledTraining | Enumerated, Field(discriminator="method")]
SimulationSelection = Annotated[SampledSimulation | Enumerated, Field(discriminator="method")]


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

    iterations: how far to look back.
    tolerance: growth of the lower bound since then, as a part of it.
    """

    type: Literal["bound_stalling"]
    iterations: Count
    tolerance: NonNegative


@dataclass(frozen=True, slots=True)
class GapRecord:
    """See core.config.Gap: a rule for the exact upper bound that enumerated selection gives.

    tolerance: in $.
    relative_tolerance: in percent of the lower bound.
    """

    type: Literal["gap"]
    tolerance: float | None = None
    relative_tolerance: float | None = None


@dataclass(frozen=True, slots=True)
class SimulationBasedRecord:
    """See core.config.SimulationBased: a rule of our own, which the published format has not.

    replications: scenarios of each simulation.
    period: iterations between two simulations.
    confidence: how sure the rule wants to be.
    relative_tolerance: how much dearer than the lower bound the policy may be, as a part of it.
    """

    type: Literal["simulation"]
    replications: Annotated[int, Field(ge=2)]
    period: Count
    confidence: Annotated[float, Field(gt=0, lt=1)] = 0.95
    relative_tolerance: NonNegative = 0.0


@dataclass(frozen=True, slots=True)
class UpperBoundGapRecord:
    """See core.config.UpperBoundGap: a rule of our own, for studies with a risk measure too.

    gap_percent: how far above the lower bound the upper bound may be, in percent of the lower bound.
    period: iterations between two upper bounds.
    method: as of `cobre bound`.
    paths: sampled paths of each bound.
    confidence: of a sampled estimate.
    """

    type: Literal["upper_bound"]
    gap_percent: NonNegative
    period: Count = 10
    method: Literal["auto", "enumeration", "inner", "sampled"] = "auto"
    paths: Annotated[int, Field(ge=2)] = 200
    confidence: Annotated[float, Field(gt=0, lt=1)] = 0.95


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
    """Cuts near the best at some visited state stay (lml1: only the oldest of them).

    check_frequency: iterations between two looks.
    tie_tolerance: how near the best a cut must be.
    """

    method: Literal["level1", "lml1"]
    check_frequency: Count = 5
    tie_tolerance: NonNegative = 1e-10


@dataclass(frozen=True, slots=True)
class DominationRecord:
    """Cuts that are below the best at every visited state go.

    domination_tolerance: how far below.
    check_frequency: iterations between two looks.
    """

    method: Literal["domination"]
    domination_tolerance: NonNegative
    check_frequency: Count = 5


@dataclass(frozen=True, slots=True)
class DynamicRecord:
    """Cuts enter an LP when they are violated.

    candidate_recency: only cuts of so many iterations back take part; null: all of them.
    start_iteration: from which iteration on `candidate_recency` holds.
    seed_window: cuts of so many iterations back take part in any case; without effect if `candidate_recency` is null.
    max_added_per_round, violation_tolerance: without effect here, with a warning.
    """

    method: Literal["dynamic"]
    seed_window: NonNegativeCount = 5
    start_iteration: Count = 2
    max_added_per_round: Count = 10
    violation_tolerance: NonNegative = 1e-10
    candidate_recency: Count | None = None


@dataclass(frozen=True, slots=True)
class CutSelectionRecord:
    """training.cut_selection.

    selection: which cuts take part; null: all of them.
    max_active_per_stage: the most cuts of a stage that take part.
    row_activity_tolerance: without effect here, with a warning.
    """

    selection: Annotated[Level1Record | DominationRecord | DynamicRecord, Field(discriminator="method")] | None = None
    max_active_per_stage: Count | None = None
    row_activity_tolerance: NonNegative | None = None


@dataclass(frozen=True, slots=True)
class ByScenario:
    """Work split by trial point."""

    method: Literal["by_scenario"]


@dataclass(frozen=True, slots=True)
class ByNode:
    """Work split by trial point and block of openings. Without effect here, with a warning.

    block_size: openings of a block.
    """

    method: Literal["by_node"]
    block_size: Count | None = None


@dataclass(frozen=True, slots=True)
class ParallelismRecord:
    """training.parallelism."""

    backward_scheduler: Annotated[ByScenario | ByNode, Field(discriminator="method")] = ByScenario("by_scenario")


@dataclass(frozen=True, slots=True)
class SchemeRecord:
    """Where the noise of one class comes from.

    scheme: the openings, new draws of the same model, a table of scenarios, or years of the past.
    """

    scheme: Scheme


@dataclass(frozen=True, slots=True)
class LoadSchemeRecord:
    """As SchemeRecord, for classes that have no history.

    scheme: the openings, new draws of the same model, or a table of scenarios.
    """

    scheme: Literal["in_sample", "out_of_sample", "external"]


@dataclass(frozen=True, slots=True)
class OpeningsRecord:
    """Generated, or noise_openings.parquet.

    source: drawn from the model, or read from scenarios/noise_openings.parquet.
    """

    source: Literal["generated", "file"]


@dataclass(frozen=True, slots=True)
class YearRange:
    """Years from one to another, both included."""

    from_: Annotated[int, Field(alias="from")]
    to: int


@dataclass(frozen=True, slots=True)
class ScenarioSourceRecord:
    """training.scenario_source; `historical_years` is decoded by hand, as an array or a range.

    seed: seed of the draws; required for out_of_sample and external.
    historical_years: which years of the history; null: all that are whole.
    inflow, load, ncs: where their noise comes from; null: in_sample.
    openings: where the openings come from; null: generated.
    """

    seed: int | None = None
    historical_years: tuple[int, ...] | YearRange | None = None
    inflow: SchemeRecord | None = None
    load: LoadSchemeRecord | None = None
    ncs: LoadSchemeRecord | None = None
    openings: OpeningsRecord | None = None


@dataclass(frozen=True, slots=True)
class TrainingRecord:
    """The section training.

    selection: how many paths an iteration samples.
    stopping_rules: when to stop; one of them must be an iteration_limit.
    enabled: whether to train; otherwise the stored policy is simulated.
    tree_seed: seed of the openings; null: 42.
    stopping_mode: whether one rule is enough, or all but the iteration limit must agree.
    cut_selection: which cuts take part in an LP.
    parallelism: how work is split; without effect on any number.
    scenario_source: where noise comes from; null: the openings.
    solver: how patient the LP solver is.
    """

    selection: TrainingSelection
    stopping_rules: tuple[StoppingRuleRecord, ...]
    enabled: bool = True
    tree_seed: int | None = None
    stopping_mode: Literal["any", "all"] = "any"
    cut_selection: CutSelectionRecord = CutSelectionRecord()
    parallelism: ParallelismRecord = ParallelismRecord()
    scenario_source: ScenarioSourceRecord | None = None
    solver: TrainingSolverRecord = DEFAULT_SOLVER


@dataclass(frozen=True, slots=True)
class SimulationRecord:
    """The section simulation.

    enabled: whether to simulate the policy after training.
    selection: how many scenarios; null: 2000.
    scenario_source: where noise comes from; null: as in training.
    io_channel_capacity, solver: without effect here, with a warning.
    """

    enabled: bool = False
    selection: SimulationSelection | None = None
    scenario_source: ScenarioSourceRecord | None = None
    io_channel_capacity: NonNegativeCount = 64
    solver: SolverProfileRecord | None = None


@dataclass(frozen=True, slots=True)
class NonNegativityRecord:
    """modeling.inflow_non_negativity.

    method: what happens to a negative inflow. It stays, is made up for at a price, becomes 0, or both.
    """

    method: NonNegativityMethod = "penalty"


@dataclass(frozen=True, slots=True)
class ModelingRecord:
    """The section modeling.

    inflow_non_negativity: what happens to a negative inflow.
    cost_scale_factor: what costs are divided by inside the LP; null: 1e6.
    """

    inflow_non_negativity: NonNegativityRecord = NonNegativityRecord()
    cost_scale_factor: Positive | None = None


@dataclass(frozen=True, slots=True)
class EstimationRecord:
    """The section estimation.

    max_order: the most lags of an inflow model.
    order_selection: how the number of lags is chosen; pacf_annual: with a yearly component.
    min_observations_per_season: fewer give a warning.
    max_coefficient_magnitude: a season with a larger coefficient gets no lags; null: any size.
    """

    max_order: NonNegativeCount = 6
    order_selection: Literal["pacf", "pacf_annual"] = "pacf"
    min_observations_per_season: NonNegativeCount = 30
    max_coefficient_magnitude: Positive | None = None


@dataclass(frozen=True, slots=True)
class CheckpointingRecord:
    """policy.checkpointing; null: our own choice.

    enabled: true: as the next two fields say; false: after the last iteration only; null: every ten iterations.
    initial_iteration: the first checkpoint, by default `interval_iterations`.
    interval_iterations: from one to the next.
    store_basis, compress: without effect here, with a warning where another value than ours is asked for.
    """

    enabled: bool | None = None
    initial_iteration: Count | None = None
    interval_iterations: Count | None = None
    store_basis: bool | None = None
    compress: bool | None = None


@dataclass(frozen=True, slots=True)
class PolicyRecord:
    """The section policy.

    path: where the policy is written, from the output directory.
    mode: begin, begin with the cuts that are there, or go on from the newest checkpoint.
    boundary: cuts that price what is left at the end.
    checkpointing: when to write checkpoints.
    """

    path: str = "./policy"
    mode: Literal["fresh", "warm_start", "resume"] = "fresh"
    boundary: BoundaryPolicy | None = None
    checkpointing: CheckpointingRecord = CheckpointingRecord()


@dataclass(frozen=True, slots=True)
class LipschitzRecord:
    """upper_bound_evaluation.lipschitz."""

    mode: str | None = None
    fallback_value: float | None = None
    scale_factor: float | None = None


@dataclass(frozen=True, slots=True)
class UpperBoundRecord:
    """The section upper_bound_evaluation, which no program acts on: without effect, with a warning."""

    enabled: bool | None = None
    initial_iteration: NonNegativeCount | None = None
    interval_iterations: NonNegativeCount | None = None
    lipschitz: LipschitzRecord = LipschitzRecord()


class ConfigFile(JsonFile):
    """All of config.json."""

    training: TrainingRecord
    simulation: SimulationRecord = SimulationRecord()
    modeling: ModelingRecord = ModelingRecord()
    estimation: EstimationRecord = EstimationRecord()
    policy: PolicyRecord = PolicyRecord()
    exports: ExportsConfig = ExportsConfig()
    upper_bound_evaluation: UpperBoundRecord = UpperBoundRecord()
