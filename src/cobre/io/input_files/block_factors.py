"""scenarios/load_factors.json and non_controllable_factors.json: factors of blocks, relative to the stage."""

from collections.abc import Mapping, Sequence

from cobre.io.decoding.json_documents import Document
from cobre.io.decoding.json_files import JsonFile, decode
from cobre.io.findings.duplicates import report_duplicates
from cobre.io.findings.problems import Layer, Problems
from cobre.records import dataclass

LOAD_FILE = "scenarios/load_factors.json"
SOURCE_FILE = "scenarios/non_controllable_factors.json"
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


def read_load_factors(document: Document | None, problems: Problems) -> Factors:
    """Load factors by (bus id, stage id), one number for each block."""
    file = decode(document, LoadFactorsFile, problems)
    rows = [(row.bus_id, row.stage_id, row.block_factors) for row in file.load_factors] if file else []
    return _by_entity_and_stage(LOAD_FILE, "bus", rows, problems)


def read_source_factors(document: Document | None, problems: Problems) -> Factors:
    """Availability factors by (source id, stage id), one number for each block."""
    file = decode(document, SourceFactorsFile, problems)
    rows = [(row.ncs_id, row.stage_id, row.block_factors) for row in file.non_controllable_factors] if file else []
    return _by_entity_and_stage(SOURCE_FILE, "source", rows, problems)


def _by_entity_and_stage(
    file: str, word: str, rows: Sequence[tuple[int, int, tuple[BlockFactor, ...]]], problems: Problems
) -> Factors:
    report_duplicates(file, f"{word}, stage", [row[:2] for row in rows], problems, "block_factors")
    return {
        (entity_id, stage_id): _in_order_of_blocks(file, f"{word} {entity_id}, stage {stage_id}", factors, problems)
        for entity_id, stage_id, factors in sorted(rows, key=lambda row: row[:2])
    }


def _in_order_of_blocks(
    file: str, entity: str, factors: tuple[BlockFactor, ...], problems: Problems
) -> tuple[float, ...]:
    ordered = sorted(factors, key=lambda factor: factor.block_id)
    found = [factor.block_id for factor in ordered]
    if found != list(range(len(found))):
        message = f"the blocks are {', '.join(str(block) for block in found)}"
        problems.error(Layer.DIMENSIONS, file, entity, "block_factors", message, "each block from 0 on, once")
    return tuple(factor.factor for factor in ordered)
