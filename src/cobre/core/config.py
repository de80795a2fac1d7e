"""The settings of a run: one frozen class for each object of config.json, with the names that the file has.

The file is decoded into these classes and written from them. Schemas, the reference page, the completion of `--set`
and the checks of types and ranges are generated from them: a setting is declared here once. Docstrings describe the
fields, for the reference page. Properties give values that follow from several settings.
"""

import math
from dataclasses import field, replace
from typing import Annotated, Any, Literal

from cobre.core.setting_types import (
    Choice,
    Count,
    NonNegative,
    NonNegativeCount,
    NullMeans,
    Positive,
    Share,
    extension,
    with_aliases,
)
from cobre.core.stopping import STOPPING_RULES, IterationLimit, StoppingMode, StoppingRule, iteration_limit
from cobre.records import dataclass

Scheme = Literal["in_sample", "out_of_sample", "external", "historical"]
OtherSchemeName = Literal["in_sample", "out_of_sample", "external"]
NonNegativityMethod = Literal["none", "penalty", "truncation", "truncation_with_penalty"]
SimulatedCuts = Literal["all", "active"]
# Metadata of a field: digests skip it while it is None, so that digests of earlier versions stay valid.
SKIPPED_WHEN_NONE = "skipped_when_none"
DEFAULT_SEED = 42
DEFAULT_SCENARIOS = 2000
DEFAULT_COST_SCALE = 1e6


# The paths of training and simulation.


@dataclass(frozen=True, slots=True)
class SampledTraining:
    """A fixed number of sampled paths in each iteration.

    forward_passes: paths through the horizon in each iteration; each gives one cut for every stage.
    risk_weighted_share: share of the forward passes, 0 to 1, whose openings are drawn by the weights of the risk
    measure; with a risk measure the run then estimates the cost of its policy in every iteration. An extension of the
    published format, which other programs do not know.
    """

    forward_passes: Count
    risk_weighted_share: Share = extension(0.0)
    method: Literal["sampled"] = "sampled"


@dataclass(frozen=True, slots=True)
class SampledSimulation:
    """A fixed number of sampled paths.

    num_scenarios: paths through the horizon.
    """

    num_scenarios: Count
    method: Literal["sampled"] = "sampled"


@dataclass(frozen=True, slots=True)
class Enumerated:
    """Every path of a scenario tree, with exact bounds."""

    method: Literal["enumerated"] = "enumerated"


NOISE_CLASSES = ("inflow", "load", "ncs")


@dataclass(frozen=True, slots=True)
class InflowScheme:
    """Source of the noise of inflows.

    scheme: the openings, new draws from the same model, a table of scenarios, or years of the history.
    """

    scheme: Scheme


@dataclass(frozen=True, slots=True)
class OtherScheme:
    """Source of the noise of a class without history.

    scheme: the openings, new draws from the same model, or a table of scenarios.
    """

    scheme: OtherSchemeName


@dataclass(frozen=True, slots=True)
class OpeningsSource:
    """Source of the openings.

    source: drawn from the model, or read from scenarios/noise_openings.parquet.
    """

    source: Literal["generated", "file"]


@dataclass(frozen=True, slots=True)
class YearRange:
    """Years from one to another, both included."""

    from_: int  # `from` in the file, which is a keyword of Python
    to: int

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Return the schema with the name that the file has; the decoder calls this."""
        return with_aliases(handler(source), {"from_": "from"})


_INFLOW_IN_SAMPLE = InflowScheme("in_sample")
_IN_SAMPLE = OtherScheme("in_sample")
_GENERATED = OpeningsSource("generated")


@dataclass(frozen=True, slots=True)
class ScenarioSource:
    """Source of the noise of forward passes or simulations, and of the openings.

    seed: seed of the draws; required for out_of_sample and external.
    historical_years: years of the history to use, as a list or as a range; null: all complete ones.
    inflow, load, ncs: where their noise comes from; null: in_sample.
    openings: where the openings come from; null: generated. In a simulation no effect, with a warning.
    """

    inflow: Annotated[InflowScheme, NullMeans(_INFLOW_IN_SAMPLE)] = _INFLOW_IN_SAMPLE
    load: Annotated[OtherScheme, NullMeans(_IN_SAMPLE)] = _IN_SAMPLE
    ncs: Annotated[OtherScheme, NullMeans(_IN_SAMPLE)] = _IN_SAMPLE
    seed: int | None = None
    historical_years: tuple[int, ...] | YearRange | None = None
    openings: Annotated[OpeningsSource, NullMeans(_GENERATED)] = _GENERATED

    @classmethod
    def of(
        cls,
        inflow: Scheme = "in_sample",
        load: OtherSchemeName = "in_sample",
        ncs: OtherSchemeName = "in_sample",
        **settings: Any,
    ) -> "ScenarioSource":
        """Return a source with these schemes, by class."""
        return cls(InflowScheme(inflow), OtherScheme(load), OtherScheme(ncs), **settings)

    def scheme(self, entity_class: str) -> Scheme:
        """Return the scheme of a class: inflow, load or ncs."""
        chosen: InflowScheme | OtherScheme = getattr(self, entity_class)
        return chosen.scheme

    @property
    def is_in_sample(self) -> bool:
        """Whether all noise comes from the openings."""
        return {self.inflow.scheme, self.load.scheme, self.ncs.scheme} == {"in_sample"}

    @property
    def has_openings_file(self) -> bool:
        """Whether the openings are read from a file."""
        return self.openings.source == "file"

    @property
    def years(self) -> tuple[int, ...] | None:
        """The years of the history to use; None: all."""
        years = self.historical_years
        return tuple(range(years.from_, years.to + 1)) if isinstance(years, YearRange) else years


# Cuts.


@dataclass(frozen=True, slots=True)
class Level1Selection:
    """Keeps cuts that are near the best at some visited state (lml1: only the oldest of them).

    check_frequency: iterations between two selections.
    tie_tolerance: largest distance from the best cut; format 0.18 only.
    lookback_iterations: number of latest iterations whose visited states choose cuts; null: all; format 0.19 only.
    method: lml1 belongs to format 0.18 only.
    """

    check_frequency: Count = 5
    tie_tolerance: NonNegative = extension(1e-10)
    lookback_iterations: Count | None = None
    method: Literal["level1", "lml1"] = "level1"


@dataclass(frozen=True, slots=True)
class DominationSelection:
    """Removes cuts that are below the best at every visited state; format 0.18 only.

    domination_tolerance: smallest distance below the best cut.
    check_frequency: iterations between two selections.
    """

    domination_tolerance: NonNegative
    check_frequency: Count = 5
    method: Literal["domination"] = "domination"


@dataclass(frozen=True, slots=True)
class DynamicSelection:
    """Adds cuts to an LP when they are violated.

    candidate_recency: number of recent iterations whose cuts are used; null: all.
    start_iteration: first iteration in which `candidate_recency` applies.
    seed_window: number of recent iterations whose cuts are always used; no effect if `candidate_recency` is null.
    max_added_per_round, violation_tolerance: no effect here, with a warning.
    """

    seed_window: NonNegativeCount = 5
    start_iteration: Count = 2
    max_added_per_round: Count = 10
    violation_tolerance: NonNegative | None = None
    candidate_recency: Count | None = None
    method: Literal["dynamic"] = "dynamic"


AnySelection = Level1Selection | DominationSelection | DynamicSelection


@dataclass(frozen=True, slots=True)
class CutSelectionConfig:
    """Cuts that the LPs use.

    selection: method of choosing cuts; null: all are used.
    max_active_per_stage: largest number of active cuts per stage; in format 0.19 of those that this run made, and not
    in the first stage. Cuts of the current iteration stay, also with 0.
    state_window: number of latest iterations whose visited states choose cuts; null: all iterations.
    row_activity_tolerance: no effect here, with a warning.
    """

    selection: Annotated[AnySelection, Choice("method")] | None = None
    max_active_per_stage: NonNegativeCount | None = None
    state_window: Count | None = None
    row_activity_tolerance: NonNegative | None = None

    @property
    def window(self) -> int | None:
        """Number of latest iterations whose visited states choose cuts, as either format gives it; None: all."""
        selection = self.selection
        lookback = selection.lookback_iterations if isinstance(selection, Level1Selection) else None
        return lookback or self.state_window

    @property
    def effective(self) -> "CutSelectionConfig":
        """The same without settings that have no effect."""
        selection = self.selection
        if isinstance(selection, DynamicSelection):
            unread = DynamicSelection()
            added, tolerance = unread.max_added_per_round, unread.violation_tolerance
            selection = replace(selection, max_added_per_round=added, violation_tolerance=tolerance)
        return replace(self, selection=selection, row_activity_tolerance=None)


def iterations_in_window(iterations: int, window: int | None) -> int:
    """Return the number of iterations in a window of the latest ones; all of them without a window."""
    return iterations if window is None else min(iterations, window)


# The LP solver: all keys are accepted, few have an effect.


@dataclass(frozen=True, slots=True)
class SolverProfile:
    """LP solver settings of one phase; null: the default.

    No effect here, with a warning, except for the tolerances of training: LPs are solved the same way everywhere.

    primal_feasibility_tolerance, dual_feasibility_tolerance: of the solves that HiGHS does, because our own simplex
    could not finish them; our own simplex has fixed tolerances. HiGHS gets one value for both tolerances and both
    training phases: the smallest. A tolerance that is not set keeps its default, 1e-9.
    """

    dual_edge_weight: Literal["devex", "steepest_edge", "dantzig"] | None = None
    price: Literal["row", "row_hyper_sparse"] | None = None
    presolve: Literal["on", "off", "choose"] | None = None
    scale: Literal["off", "solver_scaling"] | None = None
    primal_feasibility_tolerance: Positive | None = None
    dual_feasibility_tolerance: Positive | None = None
    cost_perturbation: float | None = None
    factor_pivot_threshold: float | None = None
    refactor_error_tolerance: float | None = None
    simplex_update_limit: int | None = None
    steepest_edge_devex_fallback_threshold: float | None = None
    use_warm_start: bool | None = None


TOLERANCES = ("primal_feasibility_tolerance", "dual_feasibility_tolerance")


@dataclass(frozen=True, slots=True)
class SolverConfig:
    """Tolerances and retries of the LP solver.

    retry_max_attempts: number of other settings to try if a solve fails.
    retry_time_budget_seconds: no effect here, with a warning: results must not depend on time.
    forward, backward: one setting is used for both phases.
    """

    retry_max_attempts: NonNegativeCount = 5
    retry_time_budget_seconds: NonNegative = 30.0
    forward: SolverProfile | None = None
    backward: SolverProfile | None = None

    def tolerances(self, name: str) -> list[float]:
        """Return the values of a tolerance that the phases have, ascending; empty: the default."""
        phases = (getattr(phase, name) for phase in (self.forward, self.backward) if phase is not None)
        return sorted(value for value in phases if value is not None)

    @property
    def primal_feasibility_tolerance(self) -> float | None:
        """The tighter of both phases; None: the default."""
        return next(iter(self.tolerances("primal_feasibility_tolerance")), None)

    @property
    def dual_feasibility_tolerance(self) -> float | None:
        """The tighter of both phases; None: the default."""
        return next(iter(self.tolerances("dual_feasibility_tolerance")), None)

    @property
    def effective(self) -> tuple[int, float | None, float | None]:
        """The settings that have an effect."""
        return self.retry_max_attempts, self.primal_feasibility_tolerance, self.dual_feasibility_tolerance


# The sections.


@dataclass(frozen=True, slots=True)
class ByScenario:
    """Work of the backward pass split by trial point, the default."""

    method: Literal["by_scenario"] = "by_scenario"


@dataclass(frozen=True, slots=True)
class ByNode:
    """Work split by trial point and block of openings. Has no effect here and gives a warning.

    block_size: openings per block.
    """

    block_size: Count | None = None
    method: Literal["by_node"] = "by_node"


@dataclass(frozen=True, slots=True)
class ParallelismConfig:
    """How work is split."""

    backward_scheduler: Annotated[ByScenario | ByNode, Choice("method")] = ByScenario()


@dataclass(frozen=True, slots=True)
class PluginConfig:
    """A plug-in of another distribution, registered in the group `cobre.plugins` of entry points.

    name: of the entry point.
    settings: arguments of its class.
    """

    name: str
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PluginsConfig:
    """Decisions that plug-ins make. An extension of the published format.

    risk_measure: of every stage, in place of the case's.
    stopping_rules: in addition to training.stopping_rules.
    cut_selection: in place of training.cut_selection.
    sampler: of forward passes, in place of training.scenario_source.
    """

    risk_measure: PluginConfig | None = None
    stopping_rules: tuple[PluginConfig, ...] = ()
    cut_selection: PluginConfig | None = None
    sampler: PluginConfig | None = None


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """Settings of training.

    selection: the paths of an iteration.
    stopping_rules: when to stop; one of them must be an iteration_limit.
    enabled: whether to train; if false, the stored policy is simulated.
    tree_seed: seed of the openings, without its sign; null: 42.
    stopping_mode: whether one rule is enough, or all rules except the iteration limit must agree.
    cut_selection: the cuts that are used in LPs.
    scenario_source: where noise comes from; null: the openings.
    solver: tolerances and retries of the LP solver.
    parallelism: how work is split; has no effect on results.
    plugins: decisions that installed plug-ins make; an extension of the published format.
    """

    selection: Annotated[SampledTraining | Enumerated, Choice("method")]
    stopping_rules: tuple[Annotated[StoppingRule, Choice("type", STOPPING_RULES.values)], ...]
    enabled: bool = True
    tree_seed: Annotated[int, NullMeans(DEFAULT_SEED, abs)] = DEFAULT_SEED
    stopping_mode: StoppingMode = "any"
    cut_selection: CutSelectionConfig = CutSelectionConfig()
    scenario_source: Annotated[ScenarioSource, NullMeans(ScenarioSource())] = ScenarioSource()
    solver: SolverConfig = SolverConfig()
    parallelism: ParallelismConfig = extension(ParallelismConfig())
    plugins: PluginsConfig = extension(PluginsConfig())

    @property
    def is_enumerated(self) -> bool:
        """Whether all paths of a tree are used."""
        return isinstance(self.selection, Enumerated)

    @property
    def forward_passes(self) -> int:
        """Sampled paths of an iteration; 1 where paths are enumerated."""
        return 1 if isinstance(self.selection, Enumerated) else self.selection.forward_passes

    @property
    def weighted_passes(self) -> int:
        """Forward passes of an iteration that are drawn by the weights of the risk measure: the share, rounded up."""
        return math.ceil(self.risk_weighted_share * self.forward_passes)

    @property
    def risk_weighted_share(self) -> float:
        """Share of the forward passes that are drawn by the weights of the risk measure."""
        return 0.0 if isinstance(self.selection, Enumerated) else self.selection.risk_weighted_share

    @property
    def iteration_limit(self) -> int | None:
        """The most iterations that the stopping rules allow; None when no rule has a limit."""
        limits = (rule.limit for rule in self.stopping_rules if isinstance(rule, IterationLimit))
        return iteration_limit(limits, self.stopping_mode)


_DEFAULT_SIMULATION = SampledSimulation(DEFAULT_SCENARIOS)


@dataclass(frozen=True, slots=True)
class SimulationConfig:
    """Settings of the simulation after training.

    enabled: whether to simulate the policy after training.
    selection: the scenarios; null: 2000 sampled ones.
    scenario_source: where noise comes from; null: as in training.
    cut_set: the cuts of the policy that are used: all, or those that were active when training ended; format 0.19 only.
    io_channel_capacity, solver: no effect here, with a warning.
    sampler: a plug-in that draws the scenarios; an extension of the published format.
    """

    enabled: bool = False
    selection: Annotated[SampledSimulation | Enumerated, Choice("method"), NullMeans(_DEFAULT_SIMULATION)] = (
        _DEFAULT_SIMULATION
    )
    scenario_source: ScenarioSource | None = None
    cut_set: SimulatedCuts = extension("all")
    io_channel_capacity: NonNegativeCount = extension(64)
    solver: SolverProfile | None = None
    sampler: PluginConfig | None = None

    @property
    def is_enumerated(self) -> bool:
        """Whether every path of a tree is simulated once."""
        return isinstance(self.selection, Enumerated)

    @property
    def num_scenarios(self) -> int:
        """Sampled scenarios; the default number where paths are enumerated."""
        return DEFAULT_SCENARIOS if isinstance(self.selection, Enumerated) else self.selection.num_scenarios


@dataclass(frozen=True, slots=True)
class NonNegativityConfig:
    """Treatment of negative inflows.

    method: a negative inflow stays, is corrected at a penalty, becomes 0, or both; null: penalty in format 0.18,
    truncation_with_penalty in format 0.19.
    """

    method: NonNegativityMethod | None = None


@dataclass(frozen=True, slots=True)
class ModelingConfig:
    """Settings of the model.

    inflow_non_negativity: treatment of negative inflows.
    cost_scale_factor: divisor of costs inside the LPs; null: 1e6.
    """

    inflow_non_negativity: NonNegativityConfig = NonNegativityConfig()
    cost_scale_factor: Annotated[Positive, NullMeans(DEFAULT_COST_SCALE)] = DEFAULT_COST_SCALE

    @property
    def non_negativity_method(self) -> NonNegativityMethod:
        """The treatment of negative inflows; that of format 0.18 where nothing is set."""
        return self.inflow_non_negativity.method or "penalty"


@dataclass(frozen=True, slots=True)
class EstimationConfig:
    """Settings of PAR models that are fitted to history.

    max_order: largest number of lags of an inflow model.
    order_selection: how the number of lags is chosen; pacf_annual: with a yearly component.
    min_observations_per_season: a season with fewer gives a warning.
    max_coefficient_magnitude: a season with a larger coefficient gets no lags; null: any size.
    """

    max_order: NonNegativeCount = 6
    order_selection: Literal["pacf", "pacf_annual"] = "pacf"
    min_observations_per_season: NonNegativeCount = 30
    max_coefficient_magnitude: Positive | None = None


@dataclass(frozen=True, slots=True)
class CheckpointingConfig:
    """When training writes a checkpoint from which it can be resumed; null: the program decides.

    enabled: true: as given by the next two fields; false: only after the last iteration; null: every ten iterations.
    initial_iteration: iteration of the first checkpoint; by default `interval_iterations`.
    interval_iterations: iterations between checkpoints; null: 1.
    store_basis, compress: no effect here; values other than the fixed ones give a warning.
    """

    enabled: bool | None = None
    initial_iteration: Count | None = None
    interval_iterations: Annotated[Count, NullMeans(1)] = 1
    store_basis: bool | None = None
    compress: bool | None = None


@dataclass(frozen=True, slots=True)
class BoundaryPolicy:
    """Cuts of another study for the cost after the end of this one.

    path: the policy file or its folder, relative to the case.
    strict: refuse cuts with state variables that this study does not have; otherwise these count as zero.
    """

    path: str
    strict: bool = False


@dataclass(frozen=True, slots=True)
class PolicyConfig:
    """Settings of the policy.

    path: folder of the policy, relative to the output directory.
    mode: start from scratch, with the cuts in `path`, or from the newest checkpoint.
    boundary: the boundary policy, whose cuts give the cost after the last stage.
    checkpointing: when to write checkpoints.
    """

    path: str = "./policy"
    mode: Literal["fresh", "warm_start", "resume"] = "fresh"
    boundary: BoundaryPolicy | None = None
    checkpointing: CheckpointingConfig = CheckpointingConfig()


@dataclass(frozen=True, slots=True)
class ExportsConfig:
    """Extra outputs.

    states: states visited in training.
    stochastic: inflow models, openings and correlations as used.
    fpha_deviation_points: deviation of fitted production planes from the exact function.
    """

    states: bool = False
    stochastic: bool = False
    fpha_deviation_points: bool = False


@dataclass(frozen=True, slots=True)
class LipschitzConfig:
    """Lipschitz constants of an upper bound, without effect."""

    mode: str | None = None
    fallback_value: NonNegative | None = None
    scale_factor: Positive | None = None


@dataclass(frozen=True, slots=True)
class UpperBoundConfig:
    """Settings of another program's upper bound: no effect, with a warning."""

    enabled: bool | None = None
    initial_iteration: NonNegativeCount | None = None
    interval_iterations: NonNegativeCount | None = None
    lipschitz: LipschitzConfig = LipschitzConfig()


@dataclass(frozen=True, slots=True)
class Config:
    """All sections of config.json."""

    training: TrainingConfig
    simulation: SimulationConfig = SimulationConfig()
    modeling: ModelingConfig = ModelingConfig()
    estimation: EstimationConfig = EstimationConfig()
    policy: PolicyConfig = PolicyConfig()
    exports: ExportsConfig = ExportsConfig()
    upper_bound_evaluation: UpperBoundConfig = extension(UpperBoundConfig())
