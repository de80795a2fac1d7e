"""stages.json: stages, blocks, seasons and policy graph."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from cobre.core.delays import PostStudy, PostStudyBound, PostStudyStage
from cobre.core.file_names import LOAD_FACTORS_FILE, POST_STUDY_FILE, SOURCE_FACTORS_FILE, STAGES_FILE
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
from cobre.io.decoding.json_records import JsonFile, decode
from cobre.io.decoding.schema_errors import report_duplicates
from cobre.io.findings import Findings, Layer, about, error_code
from cobre.records import dataclass

CYCLIC_GRAPH = error_code(
    "cyclic-policy-graph",
    Layer.MEANING,
    "cyclic policy graphs are reserved: no program can solve them",
    remedy="use finite_horizon",
)

BLOCKS_OF_FACTORS = error_code(
    "blocks-of-factors", Layer.DIMENSIONS, "the blocks are {value}", expected="each block from 0 on, once"
)

DURATION = error_code(
    "post-study-duration", Layer.SCHEMA, "is {value:g}", expected="a number above 0 and at most {most:g}"
)

MAX_OPENINGS = 1_000_000  # larger numbers are typing errors: memory would not suffice


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
    """A stage as stages.json declares it.

    start_date, end_date: the first day of the stage, and the first day after it.
    blocks: groups of hours in each of which power balances.
    num_openings: outcomes that training considers, equally likely. Required, without a default, except in a tree of
    nodes under enumerated selection, whose nodes have one outcome each.
    season_id: the season whose statistics inflows follow.
    block_mode: parallel blocks share one volume of each reservoir, chronological ones follow one another.
    annual_discount_rate_override: instead of the rate of the policy graph.
    risk_measure: weighs the openings of the next stage.
    sampling_method: how openings are drawn.
    state_variables: null: storages only.
    """

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


def read_stages(document: Document | None, findings: Findings) -> Horizon | None:
    """Return the horizon, with stages and blocks in order of id; None after errors."""
    file = decode(document, StagesFile, findings)
    if file is None:
        return None
    if file.policy_graph.type == "cyclic":
        findings.add(CYCLIC_GRAPH, STAGES_FILE, (), "policy_graph.type", value=file.policy_graph.type)
    _report_duplicates(file, findings)
    return Horizon(
        policy_graph=_policy_graph(file.policy_graph),
        stages=tuple(_stage(record) for record in sorted(file.stages, key=lambda stage: stage.id)),
        pre_study_stages=tuple(sorted(file.pre_study_stages, key=lambda stage: stage.id)),
        season_definitions=_seasons(file.season_definitions),
    )


def _report_duplicates(file: StagesFile, findings: Findings) -> None:
    report_duplicates(STAGES_FILE, "stage", [stage.id for stage in file.stages], findings)
    report_duplicates(STAGES_FILE, "node", [node.id for node in file.policy_graph.nodes], findings)
    report_duplicates(STAGES_FILE, "pre-study stage", [stage.id for stage in file.pre_study_stages], findings)
    for stage in file.stages:
        report_duplicates(
            STAGES_FILE, "block", [block.id for block in stage.blocks], findings, within=about("stage", stage.id)
        )
    if file.season_definitions is not None:
        report_duplicates(STAGES_FILE, "season", [season.id for season in file.season_definitions.seasons], findings)


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


# scenarios/load_factors.json and non_controllable_factors.json: factors of blocks, relative to the stage.

Factors = Mapping[tuple[int, int], tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class BlockFactor:
    """The factor of one block: load or availability relative to the stage's."""

    block_id: int
    factor: float


@dataclass(frozen=True, slots=True)
class LoadFactors:
    """The factors of a bus's load in the blocks of a stage."""

    bus_id: int
    stage_id: int
    block_factors: tuple[BlockFactor, ...]


@dataclass(frozen=True, slots=True)
class SourceFactors:
    """The factors of a source's availability in the blocks of a stage."""

    ncs_id: int
    stage_id: int
    block_factors: tuple[BlockFactor, ...]


class LoadFactorsFile(JsonFile):
    """All of load_factors.json."""

    load_factors: tuple[LoadFactors, ...]


class SourceFactorsFile(JsonFile):
    """All of non_controllable_factors.json."""

    non_controllable_factors: tuple[SourceFactors, ...]


def read_load_factors(document: Document | None, findings: Findings) -> Factors:
    """Read load factors by (bus id, stage id), one number for each block."""
    file = decode(document, LoadFactorsFile, findings)
    rows = [(row.bus_id, row.stage_id, row.block_factors) for row in file.load_factors] if file else []
    return _by_entity_and_stage(LOAD_FACTORS_FILE, "bus", rows, findings)


def read_source_factors(document: Document | None, findings: Findings) -> Factors:
    """Read availability factors by (source id, stage id), one number for each block."""
    file = decode(document, SourceFactorsFile, findings)
    rows = [(row.ncs_id, row.stage_id, row.block_factors) for row in file.non_controllable_factors] if file else []
    return _by_entity_and_stage(SOURCE_FACTORS_FILE, "source", rows, findings)


def _by_entity_and_stage(
    file: str, word: str, rows: Sequence[tuple[int, int, tuple[BlockFactor, ...]]], findings: Findings
) -> Factors:
    report_duplicates(file, (word, "stage"), [row[:2] for row in rows], findings, "block_factors")
    return {
        (entity_id, stage_id): _in_order_of_blocks(file, (word, entity_id, "stage", stage_id), factors, findings)
        for entity_id, stage_id, factors in sorted(rows, key=lambda row: row[:2])
    }


def _in_order_of_blocks(
    file: str, place: tuple[str | int, ...], factors: tuple[BlockFactor, ...], findings: Findings
) -> tuple[float, ...]:
    expected = list(range(len(factors)))
    if [factor.block_id for factor in factors] != expected:
        factors = tuple(sorted(factors, key=lambda factor: factor.block_id))
        block_ids = [factor.block_id for factor in factors]
        if block_ids != expected:
            findings.add(BLOCKS_OF_FACTORS, file, about(*place), "block_factors", value=", ".join(map(str, block_ids)))
    return tuple([factor.factor for factor in factors])


# post_study_stages.json: stages after the study, and bounds of deliveries in them.

MAX_HOURS = 8784.0 * 100
"""A century: dates after it are typing errors, and later ones than the year 9999 cannot be computed."""


class PostStudyStagesFile(JsonFile):
    """All of post_study_stages.json."""

    stages: tuple[PostStudyStage, ...]
    thermal_bounds: tuple[PostStudyBound, ...]


def read_post_study_stages(document: Document | None, findings: Findings) -> PostStudy:
    """Read the stages after the study and their bounds; empty without the file."""
    file = decode(document, PostStudyStagesFile, findings)
    if file is None:
        return PostStudy()
    keys = [(row.thermal_id, row.post_study_stage_index) for row in file.thermal_bounds]
    report_duplicates(POST_STUDY_FILE, ("bounds of thermal", "stage"), keys, findings, "thermal_bounds")
    for index, stage in enumerate(file.stages):
        if not 0.0 < stage.duration_hours <= MAX_HOURS:
            subject = about("stage", index)
            findings.add(
                DURATION, POST_STUDY_FILE, subject, "duration_hours", value=stage.duration_hours, most=MAX_HOURS
            )
    return PostStudy(file.stages, file.thermal_bounds)
