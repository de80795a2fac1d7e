"""config.json as the file has it: one record per object. `io.config.file` turns them into what the program uses."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from cobre.core.config import BoundaryPolicy, ExportsConfig, NonNegativityMethod, Scheme
from cobre.io.config.field_types import Count, NonNegativeCount, Positive
from cobre.io.config.method_records import CutSelectionRecord, StoppingRuleRecord
from cobre.io.config.solver_profiles import SolverProfileRecord, TrainingSolverRecord
from cobre.io.json_files import JsonFile

DEFAULT_SOLVER = TrainingSolverRecord()
ALL_CUTS = CutSelectionRecord()


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
    """Every path of a node tree: bounds are exact."""

    method: Literal["enumerated"]


TrainingSelection = Annotated[SampledTraining | Enumerated, Field(discriminator="method")]
SimulationSelection = Annotated[SampledSimulation | Enumerated, Field(discriminator="method")]


@dataclass(frozen=True, slots=True)
class ByScenario:
    """Work of the backward pass split by trial point, the default."""

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
    cut_selection: CutSelectionRecord = ALL_CUTS
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
