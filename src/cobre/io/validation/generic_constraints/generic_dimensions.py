"""Generic constraints: parameters and blocks cover the stages in which a constraint acts."""

from cobre.core.case import Case
from cobre.core.generic_constraints import Parameter
from cobre.core.temporal import Stage
from cobre.io.constraints.parameters import FILE as PARAMETERS_FILE
from cobre.io.constraints.reading import FILE
from cobre.io.constraints.variables import VARIABLES
from cobre.io.validation.generic_constraints.generic_references import entity_of
from cobre.io.validation.layer_findings import Findings, Rule, distinct, listed, named, with_ids

STARTS = ("hydro_storage_initial", "hydro_useful_volume_initial")


def acting_stages(case: Case) -> dict[int, list[Stage]]:
    """By id of a constraint: the stages in which it acts."""
    stages = {stage.id: stage for stage in case.horizon.stages}
    acting: dict[int, list[Stage]] = {constraint.id: [] for constraint in case.generic_constraints.constraints}
    for constraint_id, stage_id in distinct(case.generic_constraints.bounds, "constraint_id", "stage_id"):
        acting[constraint_id].append(stages[stage_id])
    return acting


def parameters_cover_stages(case: Case, findings: Findings) -> None:
    """A parameter has a value in every stage and block in which a constraint uses it."""
    for parameter in case.generic_constraints.parameters.values():
        missing = _missing(parameter, case.horizon.stages)
        if missing:
            field = "block_values" if parameter.kind == "per_stage_block" else "values"
            message = f"there is no value for {missing}"
            findings.error(PARAMETERS_FILE, named("parameter", parameter), field, message, "a value for each of them")


def _missing(parameter: Parameter, stages: tuple[Stage, ...]) -> str:
    if parameter.kind == "per_stage":
        lacking = [stage.id for stage in stages if stage.id not in parameter.values]
        return f"{with_ids('stage', lacking)}" if lacking else ""
    if parameter.kind == "seasonal":
        return _missing_seasons(parameter, stages)
    if parameter.kind == "per_stage_block":
        cells = [(stage.id, block.id) for stage in stages for block in stage.blocks]
        absent = [cell for cell in cells if cell not in parameter.values]
        return f"stage {absent[0][0]}, block {absent[0][1]}" if absent else ""
    return ""


def _missing_seasons(parameter: Parameter, stages: tuple[Stage, ...]) -> str:
    homeless = [stage.id for stage in stages if stage.season_id is None]
    if homeless:
        return f"{with_ids('stage', homeless)} without a season_id"
    lacking = {stage.season_id for stage in stages if stage.season_id is not None} - set(parameter.values)
    return f"{with_ids('season', lacking)}" if lacking else ""


def parameters_name_stages(case: Case, findings: Findings) -> None:
    """Values of parameters belong to stages that exist."""
    stages = {stage.id for stage in case.horizon.stages}
    for parameter in case.generic_constraints.parameters.values():
        if parameter.kind in ("per_stage", "per_stage_block"):
            used = {key if isinstance(key, int) else key[0] for key in parameter.values}
            if used - stages:
                message = f"there is no stage {listed(used - stages)}"
                findings.error(PARAMETERS_FILE, named("parameter", parameter), "", message, "values of stages only")


def blocks_of_terms(case: Case, findings: Findings) -> None:
    """A term may name a block only if each stage of the constraint has it."""
    acting = acting_stages(case)
    for constraint in case.generic_constraints.constraints:
        for term in constraint.terms:
            if term.block_id is None:
                continue
            for stage in acting[constraint.id]:
                field = f"expression, {term.variable}({term.entity_id}, {term.block_id})"
                problem = _wrong_block(term.variable, term.block_id, stage)
                if problem:
                    findings.error(FILE, entity_of(constraint), field, *problem)


def _wrong_block(variable: str, block_id: int, stage: Stage) -> tuple[str, str] | None:
    last = len(stage.blocks) - 1
    if block_id > last:
        return f"stage {stage.id}, in which it acts, has no block {block_id}", f"0 to {last}"
    if not VARIABLES[variable].is_storage_boundary or stage.block_mode == "chronological":
        return None
    end = 0 if variable in STARTS else last
    if block_id != end:
        message = f"the blocks of stage {stage.id} are parallel: there is no storage between them"
        return message, "block_mode chronological, or no block"
    return None


RULES: tuple[Rule, ...] = (parameters_cover_stages, parameters_name_stages, blocks_of_terms)
