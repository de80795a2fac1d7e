"""Generic constraints: rows that have an effect, and bounds."""

import numpy as np

from cobre.core.arrays import sum_in_order
from cobre.core.case import Case
from cobre.core.generic_constraints import GenericConstraint, names_in
from cobre.io.constraints.reading import BOUNDS, FILE
from cobre.io.validation.generic_constraints.generic_dimensions import acting_stages
from cobre.io.validation.generic_constraints.generic_references import entity_of
from cobre.io.validation.layer_findings import Findings, Rule


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


RULES: tuple[Rule, ...] = (constraints_have_effect, bounds_of_rows)
