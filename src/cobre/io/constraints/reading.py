"""Read constraints/generic_constraints.json, generic_parameters.json and generic_constraint_bounds.parquet."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from cobre.core.case import Table
from cobre.core.generic_constraints import (
    Coefficient,
    GenericConstraint,
    GenericConstraints,
    Parameter,
    ParameterKind,
    PenaltyBasis,
    Term,
)
from cobre.io.constraints.expressions import (
    ExpressionError,
    LinearForm,
    parameter,
    parse_constraint,
    parse_expression,
    parse_number,
    references_in,
)
from cobre.io.decoding.format_version import FORMAT_018, FormatSeen
from cobre.io.decoding.json_documents import Document, rewritten
from cobre.io.decoding.json_files import JsonFile, decode
from cobre.io.decoding.parquet_tables import Column, TableFormat
from cobre.io.findings.problems import Layer, Problems

# constraints/generic_parameters.json: the named parameters of generic constraints.


PARAMETERS_FILE = "constraints/generic_parameters.json"


ComputedTag = Literal[
    "equivalent_productivity",
    "accumulated_productivity",
    "specific_productivity",
    "reference_volume",
    "reference_turbine",
    "min_storage",
    "max_storage",
    "integrated_equivalent_productivity",
    "integrated_accumulated_productivity",
    "max_stored_energy",
    "integrated_equivalent_productivity_mwh_per_hm3",
    "integrated_accumulated_productivity_mwh_per_hm3",
    "max_stored_energy_mwh",
]


# By kind: the field with its values. The others must be absent.
PAYLOADS: Mapping[ParameterKind, str] = {
    "constant": "value",
    "per_stage": "values",
    "seasonal": "values",
    "per_stage_block": "block_values",
    "computed": "computed_spec",
    "expression": "expression",
}


_REFERENCE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class _ComputedSpec(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)
    tag: ComputedTag
    hydro_id: int


class _Parameter(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True, defer_build=True)
    id: int
    name: str
    kind: ParameterKind
    value: float | None = None
    values: tuple[tuple[int, float], ...] | None = None
    block_values: tuple[tuple[int, int, float], ...] | None = None
    computed_spec: _ComputedSpec | None = None
    expression: str | None = None


class GenericParametersFile(JsonFile):
    """All of generic_parameters.json."""

    scalar_parameters: tuple[_Parameter, ...]


def is_reference_name(name: str) -> bool:
    """Whether an expression can refer to this name by `@name`."""
    return _REFERENCE_NAME.fullmatch(name) is not None


def report_reference_name(file: str, entity: str, name: str, problems: Problems) -> None:
    """Add the error of a name that cannot be used after `@`."""
    message, remedy = f"`{name}` cannot be used after `@`", "letters, digits and underscores, not starting with a digit"
    problems.error(Layer.SCHEMA, file, entity, "name", message, remedy)


def read_parameters(document: Document | None, problems: Problems) -> dict[str, Parameter]:
    """The parameters of generic_parameters.json by name, in the order of their ids; empty without the file."""
    if document is not None and isinstance(document.content, dict):
        # The one file of the format that allows other keys at its root.
        kept = {key: value for key, value in document.content.items() if key == "scalar_parameters"}
        document = rewritten(document, kept)
    file = decode(document, GenericParametersFile, problems)
    if file is None:
        return {}
    _refuse_names(file.scalar_parameters, problems)
    _refuse_repeated_parameters(file.scalar_parameters, problems)
    sound = [record for record in file.scalar_parameters if _has_its_payload(record, problems)]
    ordered = sorted(sound, key=lambda record: record.id)
    sums = _sums(ordered, declared_names(document), problems)
    return {record.name: _parameter(record, sums.get(record.name, ()), problems) for record in ordered}


def declared_names(document: Document | None) -> list[str]:
    """Every name that the file declares, whether or not the rest of the parameter can be read."""
    content = document.content if document is not None else None
    records = content.get("scalar_parameters") if isinstance(content, dict) else None
    names = [record.get("name") for record in records if isinstance(record, dict)] if isinstance(records, list) else []
    return [name for name in names if isinstance(name, str)]


def _sums(records: list[_Parameter], names: list[str], problems: Problems) -> dict[str, tuple[Coefficient, ...]]:
    """By name: what the parameters of kind `expression` stand for, parsed. names: all that may be referred to."""
    references = {name: parameter(name) for name in names}
    found = {}
    for record in records:
        if record.kind == "expression":
            found[record.name] = _parsed(record, references, problems)
    _refuse_cycle([record for record in records if record.kind == "expression"], problems)
    return found


def _parsed(record: _Parameter, references: Mapping[str, LinearForm], problems: Problems) -> tuple[Coefficient, ...]:
    try:
        return parse_number(record.expression or "", references)
    except ExpressionError as error:
        for each in (error, *error.others):
            remedy = each.remedy
            if "is not defined" in each.message:
                remedy = "the name of another parameter of this file; expressions of constraints cannot be used here"
            message = f"at character {each.position}: {each.message}"
            problems.error(Layer.SCHEMA, PARAMETERS_FILE, _entity(record), "expression", message, remedy)
        return (Coefficient(),)


def _refuse_cycle(records: list[_Parameter], problems: Problems) -> None:
    """Report parameters that refer to one another: those that are left when all with known references are gone."""
    waiting = {record.name: set(_named_in(record)) for record in records}
    while ready := [name for name, names in waiting.items() if not names & waiting.keys()]:
        for name in ready:
            del waiting[name]
    if waiting:
        names = ", ".join(f"@{name}" for name in waiting)
        message = f"these parameters refer to one another in a cycle: {names}"
        problems.error(Layer.SCHEMA, PARAMETERS_FILE, "", "scalar_parameters", message, "remove one reference")


def _named_in(record: _Parameter) -> tuple[str, ...]:
    try:
        return references_in(record.expression or "")
    except ExpressionError:
        return ()  # reported when it is parsed


def _refuse_names(records: tuple[_Parameter, ...], problems: Problems) -> None:
    for record in records:
        if not is_reference_name(record.name):
            report_reference_name(PARAMETERS_FILE, _entity(record), record.name, problems)


def _refuse_repeated_parameters(records: tuple[_Parameter, ...], problems: Problems) -> None:
    for field in ("id", "name"):
        seen: set[Any] = set()
        for record in records:
            value = getattr(record, field)
            if value in seen:
                message = f"another parameter has the {field} {value}"
                problems.error(Layer.SCHEMA, PARAMETERS_FILE, _entity(record), field, message, "they must differ")
            seen.add(value)


def _has_its_payload(record: _Parameter, problems: Problems) -> bool:
    wanted = PAYLOADS[record.kind]
    for field in sorted(set(PAYLOADS.values())):
        is_given = getattr(record, field) is not None
        if field == wanted and not is_given:
            message, remedy = "is missing", f"a parameter of kind {record.kind} needs it"
            problems.error(Layer.SCHEMA, PARAMETERS_FILE, _entity(record), field, message, remedy)
        elif field != wanted and is_given:
            message = f"cannot be combined with kind {record.kind}"
            problems.error(
                Layer.SCHEMA, PARAMETERS_FILE, _entity(record), field, message, f"remove it and give `{wanted}`"
            )
    return getattr(record, wanted) is not None


def _parameter(record: _Parameter, expression: tuple[Coefficient, ...], problems: Problems) -> Parameter:
    spec = record.computed_spec if record.kind == "computed" else None
    return Parameter(
        id=record.id,
        name=record.name,
        kind=record.kind,
        values=_values(record, problems),
        computed_tag=spec.tag if spec else None,
        hydro_id=spec.hydro_id if spec else None,
        expression=expression,
    )


def _values(record: _Parameter, problems: Problems) -> Mapping[Any, float]:
    if record.kind == "constant":
        return {None: record.value or 0.0}
    if record.kind == "per_stage_block":
        pairs: list[tuple[Any, float]] = [((stage, block), value) for stage, block, value in record.block_values or ()]
    else:
        pairs = list(record.values or ())
    values = dict(sorted(pairs))
    if len(values) < len(pairs):
        field = PAYLOADS[record.kind]
        problems.error(
            Layer.SCHEMA, PARAMETERS_FILE, _entity(record), field, "a key is given twice", "give each key once"
        )
    return values


def _entity(record: _Parameter) -> str:
    return f"parameter {record.id} ({record.name})"


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
