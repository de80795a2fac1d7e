"""Stages, blocks, seasons and the policy graph, as stages.json describes them."""

from datetime import date
from typing import Literal

from cobre.core.arrays import sum_in_order
from cobre.records import dataclass

DAYS_PER_YEAR = 365.25

SamplingMethod = Literal["saa", "lhs", "qmc_sobol", "qmc_halton", "selective", "historical_residuals"]


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a stage with constant dispatch. Its hours need not match the calendar."""

    id: int
    name: str
    hours: float


@dataclass(frozen=True, slots=True)
class CvarParameters:
    """Risk measure (1 - lambda) E[cost] + lambda CVaR_alpha[cost]: CVaR is the mean of the worst share alpha."""

    alpha: float
    lambda_: float

    @property
    def is_expectation(self) -> bool:
        """Whether the measure is the expectation: lambda is 0 or alpha is 1."""
        return self.lambda_ == 0.0 or self.alpha == 1.0


@dataclass(frozen=True, slots=True)
class StateVariables:
    """The state variables on which the cuts of a stage may depend."""

    storage: bool = True
    inflow_lags: bool = False


@dataclass(frozen=True, slots=True)
class Stage:
    """One decision period; `end_date` is the first day after it. `risk` None: expectation."""

    id: int
    start_date: date
    end_date: date
    blocks: tuple[Block, ...]
    num_openings: int | None = None
    season_id: int | None = None
    block_mode: Literal["parallel", "chronological"] = "parallel"
    annual_discount_rate_override: float | None = None
    risk: CvarParameters | None = None
    sampling_method: SamplingMethod = "saa"
    state_variables: StateVariables = StateVariables()

    @property
    def hours(self) -> float:
        """Hours of the stage: the sum over its blocks."""
        return sum_in_order(block.hours for block in self.blocks)


@dataclass(frozen=True, slots=True)
class PreStudyStage:
    """A period before the study to which tables may refer; its id is negative."""

    id: int
    start_date: date
    end_date: date
    season_id: int | None = None


@dataclass(frozen=True, slots=True)
class Season:
    """A recurring part of the year; custom seasons also have a last day."""

    id: int
    label: str
    month_start: int
    day_start: int | None = None
    month_end: int | None = None
    day_end: int | None = None


@dataclass(frozen=True, slots=True)
class SeasonDefinitions:
    """The seasons of a year, and whether they are months, weeks or custom periods."""

    cycle_type: Literal["monthly", "weekly", "custom"]
    seasons: tuple[Season, ...]


@dataclass(frozen=True, slots=True)
class Transition:
    """An edge of the policy graph, with its probability and discount rate."""

    source_id: int
    target_id: int
    probability: float
    annual_discount_rate_override: float | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the policy graph. `scenario_id`: the external scenario that is realised at this node."""

    id: int
    stage_id: int
    scenario_id: int | None = None
    label: str | None = None


@dataclass(frozen=True, slots=True)
class PolicyGraph:
    """How stages follow one another; without nodes it is the chain of stages, and transitions lead between stages."""

    type: Literal["finite_horizon"]
    annual_discount_rate: float
    transitions: tuple[Transition, ...] = ()
    nodes: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Horizon:
    """All of stages.json; stages in order of id."""

    policy_graph: PolicyGraph
    stages: tuple[Stage, ...]
    pre_study_stages: tuple[PreStudyStage, ...] = ()
    season_definitions: SeasonDefinitions | None = None

    def discount_factor(self, stage: Stage) -> float:
        """Return the factor of the step that leaves a stage, over the days of the calendar."""
        days = (stage.end_date - stage.start_date).days
        return float((1.0 + self._annual_rate(stage)) ** -(days / DAYS_PER_YEAR))

    def _annual_rate(self, stage: Stage) -> float:
        """Return the stage's own rate, else that of the transition that leaves it, else the graph's."""
        if stage.annual_discount_rate_override is not None:
            return stage.annual_discount_rate_override
        for transition in self.policy_graph.transitions:
            if transition.source_id == stage.id and transition.annual_discount_rate_override is not None:
                return transition.annual_discount_rate_override
        return self.policy_graph.annual_discount_rate
