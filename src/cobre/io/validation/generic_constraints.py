"""Check generic constraints: what they refer to, their sizes and their meaning."""

from collections.abc import Mapping

import numpy as np

from cobre.core.arrays import sum_in_order
from cobre.core.case import Case
from cobre.core.generic_constraints import GenericConstraint, Parameter, Term, names_in
from cobre.core.temporal import Stage
from cobre.io.constraints.expressions import VARIABLES, EntityClass
from cobre.io.constraints.reading import BOUNDS, FILE, PARAMETERS_FILE
from cobre.io.validation.layer_findings import Findings, Rule, distinct, listed, named, with_ids
from cobre.io.validation.tables.case_tables import declared_ids

# References of generic constraints: terms, buses of split plants, plants of computed parameters.


WORDS: dict[EntityClass, str] = {
    "hydro": "hydro",
    "thermal": "thermal",
    "line": "line",
    "bus": "bus",
    "pumping_station": "pumping station",
    "contract": "contract",
    "non_controllable_source": "non-controllable source",
}


def entity_of(constraint: GenericConstraint) -> str:
    """A constraint in messages, such as `constraint 3 (reserve)`."""
    return f"constraint {constraint.id} ({constraint.name})"


def entities_of_terms(case: Case, findings: Findings) -> None:
    """Each term names an entity of the class that its variable belongs to."""
    ids = declared_ids(case).by_class
    for constraint in case.generic_constraints.constraints:
        for term in constraint.terms:
            word = WORDS[VARIABLES[term.variable].entity]
            field = f"expression, {term.variable}({term.entity_id})"
            findings.demand_known(ids[word], word, term.entity_id, FILE, entity_of(constraint), field)


def buses_of_terms(case: Case, findings: Findings) -> None:
    """`bus=` names a bus that one of the plant's unit groups feeds."""
    fed = {hydro.id: {group.bus_id for group in hydro.unit_groups} for hydro in case.system.hydros}
    for constraint in case.generic_constraints.constraints:
        for term in constraint.terms:
            if term.bus_id is not None and term.entity_id in fed and term.bus_id not in fed[term.entity_id]:
                buses = ", ".join(str(bus) for bus in sorted(fed[term.entity_id]))
                field = f"expression, {term.variable}({term.entity_id}, bus={term.bus_id})"
                message = f"no unit group of hydro {term.entity_id} feeds bus {term.bus_id}"
                findings.error(FILE, entity_of(constraint), field, message, f"it feeds: {buses}")


def directions_of_contracts(case: Case, findings: Findings) -> None:
    """contract_import needs an import contract, contract_export an export contract."""
    types = {contract.id: contract.type for contract in case.system.energy_contracts}
    for constraint in case.generic_constraints.constraints:
        for term in constraint.terms:
            _check_direction(term, types, entity_of(constraint), findings)


def _check_direction(term: Term, types: Mapping[int, str], entity: str, findings: Findings) -> None:
    wanted = {"contract_import": "import", "contract_export": "export"}.get(term.variable)
    found = types.get(term.entity_id)
    if wanted is not None and found is not None and found != wanted:
        field = f"expression, {term.variable}({term.entity_id})"
        findings.error(FILE, entity, field, f"contract {term.entity_id} is an {found}", f"write contract_{found}")


def plants_of_parameters(case: Case, findings: Findings) -> None:
    """Computed parameters name a plant that exists."""
    known = declared_ids(case).by_class["hydro"]
    for parameter in case.generic_constraints.parameters.values():
        entity, field = named("parameter", parameter), "computed_spec.hydro_id"
        findings.demand_known(known, "hydro", parameter.hydro_id, PARAMETERS_FILE, entity, field)


REFERENCE_RULES: tuple[Rule, ...] = (entities_of_terms, buses_of_terms, directions_of_contracts, plants_of_parameters)


# Generic constraints: parameters and blocks cover the stages in which a constraint acts.


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


DIMENSION_RULES: tuple[Rule, ...] = (parameters_cover_stages, parameters_name_stages, blocks_of_terms)


# Generic constraints: rows that have an effect, and bounds.


def constraints_have_effect(case: Case, findings: Findings) -> None:
    """A constraint acts only where the table of bounds has a row."""
    acting = acting_stages(case)
    for constraint in case.generic_constraints.constraints:
        if acting[constraint.id]:
            continue
        message = f"has no row in {BOUNDS.file}: it has no effect"
        if constraint.relation is not None:
            remedy = "a row for each stage in which it applies; its bounds may be null"
            findings.error(FILE, entity_of(constraint), "expression", message, remedy)
        else:
            findings.warn(FILE, entity_of(constraint), "", message)


def bounds_of_rows(case: Case, findings: Findings) -> None:
    """A row has a bound, in the table or in the expression; in both, that of the table is added to the expression's."""
    by_id = {constraint.id: constraint for constraint in case.generic_constraints.constraints}
    table = case.generic_constraints.bounds
    if table is None:
        return
    rows = zip(
        table["constraint_id"].tolist(),
        table["stage_id"].tolist(),
        table["bound_lower"].tolist(),
        table["bound_upper"].tolist(),
        strict=True,
    )
    for constraint_id, stage_id, lower, upper in rows:
        found = _wrong_row(by_id[constraint_id], lower, upper)
        if found:
            findings.error(BOUNDS.file, f"constraint {constraint_id}, stage {stage_id}", *found)


def _wrong_row(constraint: GenericConstraint, lower: float, upper: float) -> tuple[str, str, str] | None:
    is_given = not (np.isnan(lower) and np.isnan(upper))
    if constraint.relation is not None:
        return _crossed(constraint, lower, upper)
    if not is_given:
        return "bound_lower, bound_upper", "both are null, and the expression has no bound", "at least one of them"
    if lower > upper:
        return "bound_lower", f"is {lower:g}, above bound_upper, which is {upper:g}", "at most bound_upper"
    return None


def _crossed(constraint: GenericConstraint, lower: float, upper: float) -> tuple[str, str, str] | None:
    """The other side of an inequality, from the table, lies beyond its bound, where that is a number."""
    is_least = constraint.relation == ">="
    other, added = (upper, lower) if is_least else (lower, upper)
    if constraint.relation == "==" or np.isnan(other) or any(names_in((*constraint.bound, *constraint.constant))):
        return None
    bound = sum_in_order(part.factor for part in constraint.bound)
    bound -= sum_in_order(part.factor for part in constraint.constant)
    bound += float(np.nan_to_num(added))
    if (other < bound) if is_least else (other > bound):
        field, where = ("bound_upper", "below") if is_least else ("bound_lower", "above")
        remedy = f"at {'least' if is_least else 'most'} {bound:g}"
        return field, f"is {other:g}, {where} the bound of the expression with what the table adds, {bound:g}", remedy
    return None


MEANING_RULES: tuple[Rule, ...] = (constraints_have_effect, bounds_of_rows)
