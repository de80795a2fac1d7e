"""Read constraints/generic_constraints.json, generic_parameters.json and generic_constraint_bounds.parquet."""

from collections.abc import Mapping, Sequence

from pydantic import BaseModel, ConfigDict

from cobre.core.case import Table
from cobre.core.generic_constraints import (
    Coefficient,
    GenericConstraint,
    GenericConstraints,
    PenaltyBasis,
    Term,
)
from cobre.io.constraints.expressions import parse_constraint, parse_expression, references_in
from cobre.io.constraints.linear_form import LinearForm, parameter
from cobre.io.constraints.parameters import declared_names, is_reference_name, read_parameters, report_reference_name
from cobre.io.constraints.tokens import ExpressionError
from cobre.io.decoding.format_version import FORMAT_018, FormatSeen
from cobre.io.decoding.json_documents import Document
from cobre.io.decoding.json_files import JsonFile, decode
from cobre.io.decoding.parquet_tables import Column, TableFormat
from cobre.io.findings.problems import Layer, Problems

FILE = "constraints/generic_constraints.json"
BOUNDS = TableFormat(
    "constraints/generic_constraint_bounds.parquet",
    (
        Column("constraint_id", "id"),
        Column("stage_id", "id"),
        Column("block_id", "id", is_required=False, is_nullable=True),
        Column("bound_lower", "number", is_required=False, is_nullable=True),
        Column("bound_upper", "number", is_required=False, is_nullable=True),
    ),
    ("constraint_id", "stage_id", "block_id"),
)
# Placeholder for an expression with errors, so that further errors are found; the case is refused anyway.
UNREADABLE = LinearForm((Term(Coefficient(), "hydro_storage", 0),))


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True, defer_build=True)


class _Slack(_Record):
    enabled: bool
    penalty: float | None = None
    penalty_basis: PenaltyBasis | None = None


class _Constraint(_Record):
    id: int
    name: str
    expression: str
    slack: _Slack
    description: str | None = None


class _NamedExpression(_Record):
    name: str
    expression: str
    description: str | None = None


class GenericConstraintsFile(JsonFile):
    """All of generic_constraints.json."""

    constraints: tuple[_Constraint, ...]
    expressions: tuple[_NamedExpression, ...] = ()


def read_generic_constraints(
    constraints: Document | None,
    parameters: Document | None,
    bounds: Table | None,
    problems: Problems,
    seen: FormatSeen = FORMAT_018,
) -> GenericConstraints:
    """All generic constraints of a case, parsed; empty without such files."""
    known = read_parameters(parameters, problems)
    # What cannot be read is reported as such, and not as missing wherever it is used.
    usable = {name: parameter(name) for name in declared_names(parameters)}
    parsed = _read_constraints(constraints, usable, problems, seen)
    if bounds is not None and constraints is None and not any(error.file == FILE for error in problems.errors):
        message = "there are bounds, but no constraints"
        problems.error(Layer.STRUCTURE, BOUNDS.file, "", "", message, f"add {FILE} or remove this file")
    return GenericConstraints(parsed or (), known, bounds)


def _read_constraints(
    document: Document | None, parameters: Mapping[str, LinearForm], problems: Problems, seen: FormatSeen
) -> tuple[GenericConstraint, ...] | None:
    """All constraints of a document, by id; None without a document that can be decoded."""
    file = decode(document, GenericConstraintsFile, problems)
    if file is None:
        return None
    references = _references(file.expressions, parameters, problems)
    _refuse_duplicates(file.constraints, problems)
    parsed = [_constraint(record, references, problems, seen) for record in file.constraints]
    return tuple(sorted((found for found in parsed if found is not None), key=lambda found: found.id))


def _references(
    expressions: Sequence[_NamedExpression], parameters: Mapping[str, LinearForm], problems: Problems
) -> dict[str, LinearForm]:
    """The forms that `@name` may name: parameters and named expressions."""
    found = dict(parameters)
    waiting: dict[str, _NamedExpression] = {}
    for expression in expressions:
        if not is_reference_name(expression.name):
            report_reference_name(FILE, _named(expression), expression.name, problems)
        elif expression.name in found or expression.name in waiting:
            message, remedy = "another expression or a parameter has this name", "names used with `@` must be unique"
            problems.error(Layer.SCHEMA, FILE, _named(expression), "name", message, remedy)
        else:
            waiting[expression.name] = expression
    _resolve(waiting, found, problems)
    return found


def _resolve(waiting: dict[str, _NamedExpression], found: dict[str, LinearForm], problems: Problems) -> None:
    """Parse expressions whose references are known, until none is left or the rest refer to one another in a cycle."""
    while waiting:
        ready = [expression for expression in waiting.values() if not _awaits(expression, waiting)]
        if not ready:
            names = ", ".join(f"@{name}" for name in waiting)
            message = f"these expressions refer to one another in a cycle: {names}"
            problems.error(Layer.SCHEMA, FILE, "", "expressions", message, "remove one reference")
            found.update(dict.fromkeys(waiting, UNREADABLE))
            return
        for expression in ready:
            del waiting[expression.name]
            _read_named(expression, found, problems)


def _awaits(expression: _NamedExpression, waiting: Mapping[str, _NamedExpression]) -> bool:
    try:
        return any(name in waiting for name in references_in(expression.expression))
    except ExpressionError:
        return False  # reported when it is read


def _read_named(expression: _NamedExpression, found: dict[str, LinearForm], problems: Problems) -> None:
    try:
        found[expression.name] = parse_expression(expression.expression, found)
    except ExpressionError as error:
        _report(_named(expression), error, problems)
        found[expression.name] = UNREADABLE


def _constraint(
    record: _Constraint, references: Mapping[str, LinearForm], problems: Problems, seen: FormatSeen
) -> GenericConstraint | None:
    entity = f"constraint {record.id} ({record.name})"
    _check_slack(record.slack, entity, problems, seen)
    try:
        parsed = parse_constraint(record.expression, references)
    except ExpressionError as error:
        _report(entity, error, problems)
        return None
    return GenericConstraint(
        id=record.id,
        name=record.name,
        description=record.description or "",
        terms=parsed.left.terms,
        constant=parsed.left.constants,
        relation=parsed.relation,
        bound=parsed.right,
        slack_enabled=record.slack.enabled,
        slack_penalty=record.slack.penalty if record.slack.enabled else None,
        slack_basis=record.slack.penalty_basis or "per_hour",
    )


def _check_slack(slack: _Slack, entity: str, problems: Problems, seen: FormatSeen) -> None:
    if not slack.enabled:
        if seen.version == "0.19":
            _refuse_unused(slack, entity, problems)
        return
    if slack.penalty is None:
        remedy = "add it, in $ per unit and hour" if seen.version == "0.18" else "add it, in $"
        problems.error(Layer.SCHEMA, FILE, entity, "slack.penalty", "a slack without a cost", remedy)
    elif slack.penalty <= 0:
        problems.error(Layer.SCHEMA, FILE, entity, "slack.penalty", f"is {slack.penalty:g}", "a number above 0")
    if slack.penalty_basis is None and seen.version == "0.19":
        message = "is missing: format 0.19 does not say whether the penalty counts by the hour"
        remedy = '"per_hour" for a row in MW or m3/s, "per_unit" for a row in MWh or hm3'
        problems.error(Layer.SCHEMA, FILE, entity, "slack.penalty_basis", message, remedy)


def _refuse_unused(slack: _Slack, entity: str, problems: Problems) -> None:
    for name in ("penalty", "penalty_basis"):
        if getattr(slack, name) is not None:
            message, remedy = "is given, but the slack is not enabled", "remove it, or set `enabled` to true"
            problems.error(Layer.SCHEMA, FILE, entity, f"slack.{name}", message, remedy)


def _refuse_duplicates(constraints: Sequence[_Constraint], problems: Problems) -> None:
    seen: set[int] = set()
    for record in constraints:
        if record.id in seen:
            entity = f"constraint {record.id} ({record.name})"
            problems.error(Layer.SCHEMA, FILE, entity, "id", "another constraint has this id", "ids must be unique")
        seen.add(record.id)


def _report(entity: str, error: ExpressionError, problems: Problems) -> None:
    for each in (error, *error.others):
        message = f"at character {each.position}: {each.message}"
        problems.error(Layer.SCHEMA, FILE, entity, "expression", message, each.remedy)


def _named(expression: _NamedExpression) -> str:
    return f"expression {expression.name}"
