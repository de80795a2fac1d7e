"""The settings of a run, as config.json gives them."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Literal

from cobre.core.bound_methods import DEFAULT_CONFIDENCE, DEFAULT_PATHS, BoundMethodName
from cobre.records import dataclass

Scheme = Literal["in_sample", "out_of_sample", "external", "historical"]
NonNegativityMethod = Literal["none", "penalty", "truncation", "truncation_with_penalty"]
CutSet = Literal["all", "active"]
CAME_LATER = "came_later"  # metadata of a field: digests skip it while it is None, so that older digests stay valid


@dataclass(frozen=True, slots=True)
class IterationLimit:
    """Stop training after this many iterations."""

    limit: int


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """Stop at the end of the iteration in which the time is up."""

    seconds: float


@dataclass(frozen=True, slots=True)
class BoundStalling:
    """Stop when the lower bound grew by less than `tolerance` (relative) over `iterations` iterations."""

    iterations: int
    tolerance: float


@dataclass(frozen=True, slots=True)
class SimulationBased:
    """Stop when a simulation of the policy costs at most the lower bound plus a tolerance, at a confidence level."""

    replications: int
    period: int
    confidence: float = 0.95
    relative_tolerance: float = 0.0


@dataclass(frozen=True, slots=True)
class Gap:
    """Stop when the policy costs at most `tolerance` $ or `relative_tolerance` percent more than the lower bound.

    Of a sampled cost the upper end of the interval counts, at this confidence, in `patience` iterations in a row.
    """

    tolerance: float | None = None
    relative_tolerance: float | None = None
    confidence: float = DEFAULT_CONFIDENCE
    patience: int = 3


@dataclass(frozen=True, slots=True)
class UpperBoundGap:
    """Stop when an upper bound that is valid under risk measures is within `gap_percent` of the lower bound."""

    gap_percent: float
    period: int = 10
    method: BoundMethodName = "auto"
    paths: int = DEFAULT_PATHS
    confidence: float = DEFAULT_CONFIDENCE


StoppingRuleConfig = IterationLimit | TimeLimit | BoundStalling | SimulationBased | Gap | UpperBoundGap
STOPPING_RULES: dict[str, type[StoppingRuleConfig]] = {
    "iteration_limit": IterationLimit,
    "time_limit": TimeLimit,
    "bound_stalling": BoundStalling,
    "simulation": SimulationBased,
    "gap": Gap,
    "upper_bound": UpperBoundGap,
}
"""By their `type` in config.json."""


@dataclass(frozen=True, slots=True)
class CutSelectionConfig:
    """Which cuts of the pool the LPs use; `method` None: all of them. Each method reads only its own fields.

    rules: those of format 0.19 are exact, and leave the first and the last stage alone; None: those of 0.18.
    """

    method: Literal["level1", "lml1", "domination", "dynamic"] | None = None
    check_frequency: int = 5
    tie_tolerance: float = 1e-10
    domination_tolerance: float = 0.0
    seed_window: int = 5
    start_iteration: int = 2
    max_added_per_round: int = 10
    violation_tolerance: float = 1e-10
    candidate_recency: int | None = None
    max_active_per_stage: int | None = None
    state_window: int | None = field(default=None, metadata={CAME_LATER: True})
    row_activity_tolerance: float | None = None
    rules: Literal["0.19"] | None = field(default=None, metadata={CAME_LATER: True})


def iterations_in_window(iterations: int, window: int | None) -> int:
    """How many of the iterations so far a window of the latest ones covers; None: all of them."""
    return iterations if window is None else min(iterations, window)


@dataclass(frozen=True, slots=True)
class ScenarioSource:
    """Where the noise of forward passes and the openings come from. `historical_years` None: all years."""

    inflow: Scheme = "in_sample"
    load: Scheme = "in_sample"
    ncs: Scheme = "in_sample"
    seed: int | None = None
    historical_years: tuple[int, ...] | None = None
    openings: Literal["generated", "file"] = "generated"

    @property
    def is_in_sample(self) -> bool:
        """Whether all noise comes from the openings."""
        return {self.inflow, self.load, self.ncs} == {"in_sample"}


@dataclass(frozen=True, slots=True)
class SolverConfig:
    """Tolerances and retries of HiGHS, for LPs that the native simplex cannot finish. None: the default."""

    retry_max_attempts: int = 5
    retry_time_budget_seconds: float = 30.0
    primal_feasibility_tolerance: float | None = None
    dual_feasibility_tolerance: float | None = None


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """The section `training`. is_enumerated: all paths of a tree are used, and `forward_passes` is ignored."""

    forward_passes: int
    stopping_rules: tuple[StoppingRuleConfig, ...]
    enabled: bool = True
    tree_seed: int = 42
    stopping_mode: Literal["any", "all"] = "any"
    cut_selection: CutSelectionConfig = CutSelectionConfig()
    scenario_source: ScenarioSource = ScenarioSource()
    solver: SolverConfig = SolverConfig()
    is_enumerated: bool = False
    risk_weighted_share: float = 0.0  # of the forward passes, drawn by the weights of the risk measure

    @property
    def weighted_passes(self) -> int:
        """Forward passes of an iteration that are drawn by the weights of the risk measure: the share, rounded up."""
        return math.ceil(self.risk_weighted_share * self.forward_passes)

    @property
    def iteration_limit(self) -> int | None:
        """The most iterations that the stopping rules allow; None when no rule has a limit."""
        limits = (rule.limit for rule in self.stopping_rules if isinstance(rule, IterationLimit))
        return iteration_limit(limits, self.stopping_mode)


def iteration_limit(limits: Iterable[int], stopping_mode: str) -> int | None:
    """The lowest limit if any rule stops training (mode `any`), the highest if all must agree; None without limits."""
    return (min if stopping_mode == "any" else max)(limits, default=None)


NEVER_READ: Mapping[str, tuple[str, ...]] = {
    "cut_selection": ("max_added_per_round", "violation_tolerance", "row_activity_tolerance"),
    "solver": ("retry_time_budget_seconds",),
}
"""Settings that the format has and nothing here reads, by subsection of `training`: given ones have no effect."""


@dataclass(frozen=True, slots=True)
class SimulationConfig:
    """The section `simulation`; `scenario_source` None: as in training. is_enumerated: every path of a tree once.

    cut_set: all cuts of the policy, or those that were active when training ended.
    """

    enabled: bool = False
    num_scenarios: int = 2000
    scenario_source: ScenarioSource | None = None
    is_enumerated: bool = False
    cut_set: CutSet = "all"


@dataclass(frozen=True, slots=True)
class ModelingConfig:
    """The section `modeling`: how negative inflows are treated, and the scale of costs in the LPs."""

    inflow_non_negativity: NonNegativityMethod = "penalty"
    cost_scale_factor: float = 1e6


@dataclass(frozen=True, slots=True)
class EstimationConfig:
    """The section `estimation`: how PAR models are fitted to history."""

    max_order: int = 6
    order_selection: Literal["pacf", "pacf_annual"] = "pacf"
    min_observations_per_season: int = 30
    max_coefficient_magnitude: float | None = None


@dataclass(frozen=True, slots=True)
class CheckpointingConfig:
    """When training writes a checkpoint from which it can be resumed.

    enabled: None: the program decides; False: only after the last iteration.
    """

    enabled: bool | None = None
    initial_iteration: int | None = None
    interval_iterations: int = 1
    store_basis: bool = False
    compress: bool = False


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
    """The section `policy`: where the policy is stored, what training starts from, boundary policy and checkpoints."""

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
class Config:
    """All sections of config.json."""

    training: TrainingConfig
    simulation: SimulationConfig = SimulationConfig()
    modeling: ModelingConfig = ModelingConfig()
    estimation: EstimationConfig = EstimationConfig()
    policy: PolicyConfig = PolicyConfig()
    exports: ExportsConfig = ExportsConfig()
