"""Stages: blocks, openings, and numbers per block."""

from cobre.core.case import Case
from cobre.core.temporal import Stage
from cobre.io.input_files.block_factors import LOAD_FILE, SOURCE_FILE
from cobre.io.input_files.stages_file import FILE
from cobre.io.validation.layer_findings import Findings, Rule
from cobre.wording import counted

MIN_STAGES = 2


def at_least_two_stages(case: Case, findings: Findings) -> None:
    """A study needs at least two stages: with one there is no future cost to approximate."""
    count = len(case.horizon.stages)
    if count < MIN_STAGES:
        findings.error(FILE, "", "stages", f"there are {count}", f"at least {MIN_STAGES}")


def blocks_count_from_zero(case: Case, findings: Findings) -> None:
    """Blocks are numbered 0, 1, 2, ... and have hours above 0."""
    for stage in case.horizon.stages:
        found = [block.id for block in stage.blocks]
        if not found:
            findings.error(FILE, f"stage {stage.id}", "blocks", "there is none", "at least one block")
        elif found != list(range(len(found))):
            message = f"their ids are {', '.join(str(id_) for id_ in found)}"
            findings.error(FILE, f"stage {stage.id}", "blocks", message, "0, 1, 2, ... without a gap")
        _check_hours(stage, findings)


def _check_hours(stage: Stage, findings: Findings) -> None:
    for block in stage.blocks:
        if block.hours <= 0:
            field = f"blocks (id {block.id}).hours"
            findings.error(FILE, f"stage {stage.id}", field, f"is {block.hours:g}", "a number of hours above 0")


def stages_have_openings(case: Case, findings: Findings) -> None:
    """Every stage has at least one opening."""
    has_nodes = bool(case.horizon.policy_graph.nodes) and case.config.training.is_enumerated
    for stage in case.horizon.stages:
        if stage.num_openings is None and has_nodes:
            continue  # nodes have their own realisations
        if not stage.num_openings or stage.num_openings < 1:
            found = "is missing" if stage.num_openings is None else f"is {stage.num_openings}"
            findings.error(FILE, f"stage {stage.id}", "num_openings", found, "at least 1")


def ids_of_stages(case: Case, findings: Findings) -> None:
    """Ids of the study's stages have no gap and usually start at 0; ids of pre-study stages are negative."""
    found = [stage.id for stage in case.horizon.stages]
    if found and (found[0] < 0 or found != list(range(found[0], found[0] + len(found)))):
        shown = ", ".join(str(id_) for id_ in found[:8])
        findings.error(FILE, "", "stages.id", f"the ids are {shown}", "0, 1, 2, ... without a gap")
    for stage in case.horizon.pre_study_stages:
        if stage.id >= 0:
            findings.error(FILE, f"pre-study stage {stage.id}", "id", "is not negative", "-1, -2, ...")


def factors_for_each_block(case: Case, findings: Findings) -> None:
    """Factors are given for as many blocks as the stage has."""
    blocks = {stage.id: len(stage.blocks) for stage in case.horizon.stages}
    kinds = (
        (LOAD_FILE, "bus", case.scenarios.load_factors),
        (SOURCE_FILE, "source", case.scenarios.non_controllable_factors),
    )
    for file, word, factors in kinds:
        for (entity_id, stage_id), values in factors.items():
            if len(values) != blocks[stage_id]:
                entity = f"{word} {entity_id}, stage {stage_id}"
                message = f"there are {len(values)} factors, but the stage has {counted(blocks[stage_id], 'block')}"
                findings.error(file, entity, "block_factors", message, "one factor for each block")


RULES: tuple[Rule, ...] = (
    at_least_two_stages,
    ids_of_stages,
    blocks_count_from_zero,
    stages_have_openings,
    factors_for_each_block,
)
