"""config.json as stored: one record per object. `io.config.file` converts them to the configuration of the program."""

from typing import Annotated, Literal

from pydantic import Field

from cobre.core.config import (
    BoundaryPolicy,
    CutSet,
    EstimationConfig,
    ExportsConfig,
    NonNegativityMethod,
    Scheme,
    SimulationConfig,
)
from cobre.io.config.method_records import (
    Count,
    CutSelectionRecord,
    NonNegative,
    NonNegativeCount,
    Positive,
    SolverProfileRecord,
    StoppingRuleRecord,
    TrainingSolverRecord,
)
from cobre.io.decoding.json_files import JsonFile
from cobre.records import dataclass

DEFAULT_SOLVER = TrainingSolverRecord()
ALL_CUTS = CutSelectionRecord()
_ESTIMATION = EstimationConfig()
_SIMULATION = SimulationConfig()


@dataclass(frozen=True, slots=True)
class SampledTraining:
    """A fixed number of sampled paths in each iteration.

    forward_passes: paths through the horizon in each iteration; each gives one cut for every stage.
    risk_weighted_share: share of the forward passes, 0 to 1, whose openings are drawn by the weights of the risk
    measure; with a risk measure the run then estimates the cost of its policy in every iteration. An extension of the
    published format, which other programs do not know.
    """

    method: Literal["sampled"]
    forward_passes: Count
    risk_weighted_share: Annotated[float, Field(ge=0, le=1)] = 0.0


@dataclass(frozen=True, slots=True)
class SampledSimulation:
    """A fixed number of sampled paths.

    num_scenarios: paths through the horizon.
    """

    method: Literal["sampled"]
    num_scenarios: Count


@dataclass(frozen=True, slots=True)
class Enumerated:
    """Every path of a scenario tree, with exact bounds."""

    method: Literal["enumerated"]


TrainingSelection = Annotated[SampledTraining | Enumerated, Field(discriminator="method")]
SimulationSelection = Annotated[SampledSimulation | Enumerated, Field(discriminator="method")]


@dataclass(frozen=True, slots=True)
class ByScenario:
    """Work of the backward pass split by trial point, the default."""

    method: Literal["by_scenario"]


@dataclass(frozen=True, slots=True)
class ByNode:
    """Work split by trial point and block of openings. Has no effect here and gives a warning.

    block_size: openings per block.
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

    scheme: the openings, new draws from the same model, a table of scenarios, or years of the history.
    """

    scheme: Scheme


@dataclass(frozen=True, slots=True)
class LoadSchemeRecord:
    """As SchemeRecord, for classes that have no history.

    scheme: the openings, new draws from the same model, or a table of scenarios.
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
    historical_years: years of the history to use; null: all complete ones.
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

    selection: the paths of an iteration.
    stopping_rules: when to stop; one of them must be an iteration_limit.
    enabled: whether to train; if false, the stored policy is simulated.
    tree_seed: seed of the openings; null: 42.
    stopping_mode: whether one rule is enough, or all rules except the iteration limit must agree.
    cut_selection: the cuts that are used in LPs.
    parallelism: how work is split; has no effect on results.
    scenario_source: where noise comes from; null: the openings.
    solver: tolerances and retries of the LP solver.
    """

    selection: TrainingSelection
    stopping_rules: tuple[StoppingRuleRecord, ...]
    enabled: bool = True
    tree_seed: int | None = None
    stopping_mode: Literal["any", "all"] = "any"
    cut_selection: CutSelectionRecord = ALL_CUTS
    parallelism: ParallelismRecord = ParallelismRecord()
    scenario_source: ScenarioSourceRecord | None = None
    solver: TrainingSolverRecord = DEFAULT_SOLVER


@dataclass(frozen=True, slots=True)
class SimulationRecord:
    """The section simulation.

    enabled: whether to simulate the policy after training.
    selection: the scenarios; null: 2000 sampled ones.
    scenario_source: where noise comes from; null: as in training.
    cut_set: the cuts of the policy that are used: all, or those that were active when training ended; format 0.19 only.
    io_channel_capacity, solver: no effect here, with a warning.
    """

    enabled: bool = False
    selection: SimulationSelection | None = None
    scenario_source: ScenarioSourceRecord | None = None
    cut_set: CutSet = _SIMULATION.cut_set
    io_channel_capacity: NonNegativeCount = 64
    solver: SolverProfileRecord | None = None


@dataclass(frozen=True, slots=True)
class NonNegativityRecord:
    """modeling.inflow_non_negativity.

    method: a negative inflow stays, is corrected at a penalty, becomes 0, or both; null: penalty in format 0.18,
    truncation_with_penalty in format 0.19.
    """

    method: NonNegativityMethod | None = None


@dataclass(frozen=True, slots=True)
class ModelingRecord:
    """The section modeling.

    inflow_non_negativity: treatment of negative inflows.
    cost_scale_factor: divisor of costs inside the LPs; null: 1e6.
    """

    inflow_non_negativity: NonNegativityRecord = NonNegativityRecord()
    cost_scale_factor: Positive | None = None


@dataclass(frozen=True, slots=True)
class EstimationRecord:
    """The section estimation.

    max_order: largest number of lags of an inflow model.
    order_selection: how the number of lags is chosen; pacf_annual: with a yearly component.
    min_observations_per_season: a season with fewer gives a warning.
    max_coefficient_magnitude: a season with a larger coefficient gets no lags; null: any size.
    """

    max_order: NonNegativeCount = _ESTIMATION.max_order
    order_selection: Literal["pacf", "pacf_annual"] = _ESTIMATION.order_selection
    min_observations_per_season: NonNegativeCount = _ESTIMATION.min_observations_per_season
    max_coefficient_magnitude: Positive | None = None


@dataclass(frozen=True, slots=True)
class CheckpointingRecord:
    """policy.checkpointing; null: the program decides.

    enabled: true: as given by the next two fields; false: only after the last iteration; null: every ten iterations.
    initial_iteration: iteration of the first checkpoint; by default `interval_iterations`.
    interval_iterations: iterations between checkpoints.
    store_basis, compress: no effect here; values other than the fixed ones give a warning.
    """

    enabled: bool | None = None
    initial_iteration: Count | None = None
    interval_iterations: Count | None = None
    store_basis: bool | None = None
    compress: bool | None = None


@dataclass(frozen=True, slots=True)
class PolicyRecord:
    """The section policy.

    path: folder of the policy, relative to the output directory.
    mode: start from scratch, with the cuts in `path`, or from the newest checkpoint.
    boundary: the boundary policy, whose cuts give the cost after the last stage.
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
    fallback_value: NonNegative | None = None
    scale_factor: Positive | None = None


@dataclass(frozen=True, slots=True)
class UpperBoundRecord:
    """The section upper_bound_evaluation: no effect, with a warning."""

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
