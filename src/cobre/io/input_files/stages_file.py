"""stages.json: stages, blocks, seasons and policy graph."""

from datetime import date
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from cobre.core.temporal import (
    Block,
    CvarParameters,
    Horizon,
    Node,
    PolicyGraph,
    PreStudyStage,
    SamplingMethod,
    SeasonDefinitions,
    Stage,
    StateVariables,
    Transition,
)
from cobre.io.decoding.json_documents import Document
from cobre.io.decoding.json_files import JsonFile, decode
from cobre.io.file_names import STAGES_FILE
from cobre.io.findings.duplicates import report_duplicates
from cobre.io.findings.problems import Layer, Problems
from cobre.records import dataclass

MAX_OPENINGS = 1_000_000  # larger numbers are typing errors: memory would not suffice

FILE = STAGES_FILE


@dataclass(frozen=True, slots=True)
class PolicyGraphRecord:
    """The policy graph: which stage or node follows which."""

    type: Literal["finite_horizon", "cyclic"]
    annual_discount_rate: float
    transitions: tuple[Transition, ...] = ()
    nodes: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class CvarRecord:
    """Weights of a conditional value at risk."""

    alpha: float
    lambda_: Annotated[float, Field(alias="lambda")]


@dataclass(frozen=True, slots=True)
class RiskRecord:
    """A risk measure with parameters."""

    cvar: CvarRecord


def _risk_form(value: Any) -> str:
    return "name" if isinstance(value, str) else "parameters"


RiskMeasure = Annotated[
    Annotated[Literal["expectation"], Tag("name")] | Annotated[RiskRecord, Tag("parameters")],
    Discriminator(_risk_form),
]


@dataclass(frozen=True, slots=True)
class StageRecord:
    """A stage as stages.json declares it."""

    id: int
    start_date: date
    end_date: date
    blocks: tuple[Block, ...]
    num_openings: Annotated[int, Field(ge=0, le=MAX_OPENINGS)] | None = None
    season_id: int | None = None
    block_mode: Literal["parallel", "chronological"] = "parallel"
    annual_discount_rate_override: float | None = None
    risk_measure: RiskMeasure = "expectation"
    sampling_method: SamplingMethod = "saa"
    state_variables: StateVariables | None = None


class StagesFile(JsonFile):
    """All of stages.json."""

    policy_graph: PolicyGraphRecord
    stages: tuple[StageRecord, ...]
    pre_study_stages: tuple[PreStudyStage, ...] = ()
    season_definitions: SeasonDefinitions | None = None


def read_stages(document: Document | None, problems: Problems) -> Horizon | None:
    """The horizon, with stages and blocks in order of id; None after errors."""
    file = decode(document, StagesFile, problems)
    if file is None:
        return None
    _refuse_what_is_not_modelled(file.policy_graph, problems)
    _report_duplicates(file, problems)
    return Horizon(
        policy_graph=_policy_graph(file.policy_graph),
        stages=tuple(_stage(record) for record in sorted(file.stages, key=lambda stage: stage.id)),
        pre_study_stages=tuple(sorted(file.pre_study_stages, key=lambda stage: stage.id)),
        season_definitions=_seasons(file.season_definitions),
    )


def _refuse_what_is_not_modelled(graph: PolicyGraphRecord, problems: Problems) -> None:
    if graph.type == "cyclic":
        message = "cyclic policy graphs are reserved: no program can solve them"
        problems.error(Layer.MEANING, FILE, "", "policy_graph.type", message, "use finite_horizon")


def _report_duplicates(file: StagesFile, problems: Problems) -> None:
    report_duplicates(FILE, "stage", [stage.id for stage in file.stages], problems)
    report_duplicates(FILE, "node", [node.id for node in file.policy_graph.nodes], problems)
    report_duplicates(FILE, "pre-study stage", [stage.id for stage in file.pre_study_stages], problems)
    for stage in file.stages:
        report_duplicates(FILE, f"stage {stage.id}, block", [block.id for block in stage.blocks], problems)
    if file.season_definitions is not None:
        report_duplicates(FILE, "season", [season.id for season in file.season_definitions.seasons], problems)


def _policy_graph(record: PolicyGraphRecord) -> PolicyGraph:
    ordered = sorted(record.transitions, key=lambda edge: (edge.source_id, edge.target_id))
    nodes = tuple(sorted(record.nodes, key=lambda node: (node.stage_id, node.id)))
    return PolicyGraph("finite_horizon", record.annual_discount_rate, tuple(ordered), nodes)


def _stage(record: StageRecord) -> Stage:
    return Stage(
        id=record.id,
        start_date=record.start_date,
        end_date=record.end_date,
        blocks=tuple(sorted(record.blocks, key=lambda block: block.id)),
        num_openings=record.num_openings,
        season_id=record.season_id,
        block_mode=record.block_mode,
        annual_discount_rate_override=record.annual_discount_rate_override,
        risk=_risk(record.risk_measure),
        sampling_method=record.sampling_method,
        state_variables=record.state_variables or StateVariables(),
    )


def _risk(measure: Any) -> CvarParameters | None:
    return CvarParameters(measure.cvar.alpha, measure.cvar.lambda_) if isinstance(measure, RiskRecord) else None


def _seasons(definitions: SeasonDefinitions | None) -> SeasonDefinitions | None:
    if definitions is None:
        return None
    return SeasonDefinitions(definitions.cycle_type, tuple(sorted(definitions.seasons, key=lambda season: season.id)))
