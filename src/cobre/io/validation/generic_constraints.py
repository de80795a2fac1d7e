"""Generic constraints: parameters and blocks that cover their stages, bounds that have an effect."""

import numpy as np

from cobre.core.arrays import sum_in_order
from cobre.core.case import Case
from cobre.core.file_names import CONSTRAINT_BOUNDS_FILE, CONSTRAINTS_FILE, PARAMETERS_FILE, STAGES_FILE
from cobre.core.generic_constraints import GenericConstraint, Parameter, names_in
from cobre.core.temporal import Stage
from cobre.io.findings import (
    Code,
    Findings,
    IdList,
    Layer,
    about,
    error_code,
    named,
    stages,
    warning_code,
)
from cobre.io.input_files.constraint_expressions import VARIABLES
from cobre.io.validation.references import constraint_subject
from cobre.io.validation.rules import Rule, distinct, rule

STARTS = ("hydro_storage_initial", "hydro_useful_volume_initial")

VALUE_MISSING = error_code(
    "parameter-value-missing",
    Layer.DIMENSIONS,
    "there is no value for {value}",
    expected="a value for each of them",
)

VALUE_OF_UNKNOWN_STAGE = error_code(
    "parameter-of-unknown-stage",
    Layer.DIMENSIONS,
    "there is no stage {value}",
    expected="values of stages only",
)

NO_SUCH_BLOCK = error_code(
    "term-of-unknown-block",
    Layer.DIMENSIONS,
    "stage {stage}, in which it acts, has no block {value}",
    expected="0 to {last}",
)

STORAGE_BETWEEN_BLOCKS = error_code(
    "storage-between-parallel-blocks",
    Layer.DIMENSIONS,
    "the blocks of stage {stage} are parallel: there is no storage between them",
    expected="block_mode chronological, or no block",
)

NO_ROW = error_code(
    "constraint-without-row",
    Layer.MEANING,
    f"has no row in {CONSTRAINT_BOUNDS_FILE}: it has no effect",
    expected="a row for each stage in which it applies; its bounds may be null",
)

NO_BOUNDS = warning_code(
    "constraint-without-bounds", Layer.MEANING, f"has no row in {CONSTRAINT_BOUNDS_FILE}: it has no effect"
)

BOTH_NULL = error_code(
    "constraint-bounds-null",
    Layer.MEANING,
    "both are null, and the expression has no bound",
    expected="at least one of them",
)

CROSSED = error_code(
    "constraint-bounds-crossed",
    Layer.MEANING,
    "is {value:g}, above bound_upper, which is {upper:g}",
    expected="at most bound_upper",
)

BELOW_EXPRESSION = error_code(
    "constraint-bound-below-expression",
    Layer.MEANING,
    "is {value:g}, below the bound of the expression with what the table adds, {bound:g}",
    expected="at least {bound:g}",
)

ABOVE_EXPRESSION = error_code(
    "constraint-bound-above-expression",
    Layer.MEANING,
    "is {value:g}, above the bound of the expression with what the table adds, {bound:g}",
    expected="at most {bound:g}",
)


@rule(PARAMETERS_FILE, STAGES_FILE)
def parameters_cover_stages(case: Case, findings: Findings) -> None:
    """Require a value of a parameter in every stage and block in which a constraint may use it."""
    for parameter in case.generic_constraints.parameters.values():
        missing = _missing(parameter, case.horizon.stages)
        if missing:
            field = "block_values" if parameter.kind == "per_stage_block" else "values"
            findings.add(VALUE_MISSING, PARAMETERS_FILE, named("parameter", parameter), field, value=missing)


def _missing(parameter: Parameter, horizon: tuple[Stage, ...]) -> str:
    """Name stages, seasons or the first block without a value; empty if none lacks one."""
    if parameter.kind == "per_stage":
        lacking = [stage.id for stage in horizon if stage.id not in parameter.values]
        return str(stages(lacking)) if lacking else ""
    if parameter.kind == "seasonal":
        without = [stage.id for stage in horizon if stage.season_id is None]
        if without:
            return f"{stages(without)} without a season_id"
        seasons = {stage.season_id for stage in horizon if stage.season_id is not None} - set(parameter.values)
        return str(IdList(seasons, "season")) if seasons else ""
    if parameter.kind == "per_stage_block":
        cells = ((stage.id, block.id) for stage in horizon for block in stage.blocks)
        absent = next((cell for cell in cells if cell not in parameter.values), None)
        return f"stage {absent[0]}, block {absent[1]}" if absent is not None else ""
    return ""


@rule(PARAMETERS_FILE, STAGES_FILE)
def parameters_name_stages(case: Case, findings: Findings) -> None:
    """Require that values of parameters belong to stages that exist."""
    stage_ids = {stage.id for stage in case.horizon.stages}
    for parameter in case.generic_constraints.parameters.values():
        if parameter.kind in ("per_stage", "per_stage_block"):
            unknown = {key if isinstance(key, int) else key[0] for key in parameter.values} - stage_ids
            if unknown:
                subject = named("parameter", parameter)
                findings.add(VALUE_OF_UNKNOWN_STAGE, PARAMETERS_FILE, subject, value=IdList(unknown))


@rule(CONSTRAINTS_FILE, STAGES_FILE, error_free=(CONSTRAINT_BOUNDS_FILE,))
def blocks_of_terms(case: Case, findings: Findings) -> None:
    """Require that each stage in which a constraint acts has the blocks that its terms name."""
    acting = _acting_stages(case)
    for constraint in case.generic_constraints.constraints:
        for term in constraint.terms:
            if term.block_id is None:
                continue
            field = f"expression, {term.variable}({term.entity_id}, {term.block_id})"
            for stage in acting[constraint.id]:
                code = _wrong_block(term.variable, term.block_id, stage)
                if code is not None:
                    facts = {"stage": stage.id, "value": term.block_id, "last": len(stage.blocks) - 1}
                    findings.add(code, CONSTRAINTS_FILE, constraint_subject(constraint), field, **facts)


def _acting_stages(case: Case) -> dict[int, list[Stage]]:
    """Return by id of a constraint the stages in which it acts."""
    by_id = {stage.id: stage for stage in case.horizon.stages}
    acting: dict[int, list[Stage]] = {constraint.id: [] for constraint in case.generic_constraints.constraints}
    for constraint_id, stage_id in distinct(case.generic_constraints.bounds, "constraint_id", "stage_id"):
        acting[constraint_id].append(by_id[stage_id])
    return acting


def _wrong_block(variable: str, block_id: int, stage: Stage) -> Code | None:
    last = len(stage.blocks) - 1
    if block_id > last:
        return NO_SUCH_BLOCK
    if not VARIABLES[variable].is_storage_boundary or stage.block_mode == "chronological":
        return None
    return STORAGE_BETWEEN_BLOCKS if block_id != (0 if variable in STARTS else last) else None


DIMENSION_RULES: tuple[Rule, ...] = (parameters_cover_stages, parameters_name_stages, blocks_of_terms)


@rule(CONSTRAINTS_FILE, STAGES_FILE, error_free=(CONSTRAINT_BOUNDS_FILE,))
def constraints_have_effect(case: Case, findings: Findings) -> None:
    """Require rows in the table of bounds: a constraint acts only if it has one."""
    acting = _acting_stages(case)
    for constraint in case.generic_constraints.constraints:
        if not acting[constraint.id]:
            has_relation = constraint.relation is not None
            code, field = (NO_ROW, "expression") if has_relation else (NO_BOUNDS, "")
            findings.add(code, CONSTRAINTS_FILE, constraint_subject(constraint), field)


@rule(CONSTRAINTS_FILE, error_free=(CONSTRAINT_BOUNDS_FILE,))
def bounds_of_rows(case: Case, findings: Findings) -> None:
    """Require a bound of each row, in the table or in the expression; where both have one, the sum counts."""
    by_id = {constraint.id: constraint for constraint in case.generic_constraints.constraints}
    table = case.generic_constraints.bounds
    if table is None:
        return
    columns = [table[name].tolist() for name in ("constraint_id", "stage_id", "bound_lower", "bound_upper")]
    for constraint_id, stage_id, lower, upper in zip(*columns, strict=True):
        wrong_row = _wrong_row(by_id[constraint_id], lower, upper)
        if wrong_row is not None:
            code, field, facts = wrong_row
            subject = about("constraint", constraint_id, "stage", stage_id)
            findings.add(code, CONSTRAINT_BOUNDS_FILE, subject, field, **facts)


WrongRow = tuple[Code, str, dict[str, float]]


def _wrong_row(constraint: GenericConstraint, lower: float, upper: float) -> WrongRow | None:
    if constraint.relation is not None:
        return _crossed(constraint, lower, upper)
    if np.isnan(lower) and np.isnan(upper):
        return BOTH_NULL, "bound_lower, bound_upper", {}
    return (CROSSED, "bound_lower", {"value": lower, "upper": upper}) if lower > upper else None


def _crossed(constraint: GenericConstraint, lower: float, upper: float) -> WrongRow | None:
    """Compare the other side of an inequality, from the table, with its bound, where that is a number."""
    is_least = constraint.relation == ">="
    other, added = (upper, lower) if is_least else (lower, upper)
    if constraint.relation == "==" or np.isnan(other) or any(names_in((*constraint.bound, *constraint.constant))):
        return None
    bound = sum_in_order(part.factor for part in constraint.bound)
    bound -= sum_in_order(part.factor for part in constraint.constant)
    bound += float(np.nan_to_num(added))
    facts = {"value": other, "bound": bound}
    if is_least:
        return (BELOW_EXPRESSION, "bound_upper", facts) if other < bound else None
    return (ABOVE_EXPRESSION, "bound_lower", facts) if other > bound else None


RULES: tuple[Rule, ...] = (constraints_have_effect, bounds_of_rows)
