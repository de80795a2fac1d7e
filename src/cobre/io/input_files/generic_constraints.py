"""Read constraints/generic_constraints.json, generic_parameters.json and generic_constraint_bounds.parquet."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from cobre.core.case import Table
from cobre.core.file_names import CONSTRAINT_BOUNDS_FILE, CONSTRAINTS_FILE, PARAMETERS_FILE
from cobre.core.generic_constraints import (
    Coefficient,
    GenericConstraint,
    GenericConstraints,
    Parameter,
    ParameterKind,
    PenaltyBasis,
    Term,
)
from cobre.io.decoding.format_version import FORMAT_018, RecognisedFormat
from cobre.io.decoding.json_documents import Document, rewritten
from cobre.io.decoding.json_records import JsonFile, decode
from cobre.io.decoding.parquet_tables import Column, TableFormat
from cobre.io.findings import Findings, Layer, Part, Subject, error_code
from cobre.io.input_files.constraint_expressions import (
    ExpressionError,
    LinearForm,
    UndefinedNameError,
    parameter,
    parse_constraint,
    parse_expression,
    parse_number,
    references_in,
)

# constraints/generic_parameters.json: the named parameters of generic constraints.


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

REFERENCE_NAME = error_code(
    "name-not-referable",
    Layer.SCHEMA,
    "`{value}` cannot be used after `@`",
    expected="letters, digits and underscores, not starting with a digit",
)

INVALID_EXPRESSION = error_code(
    "invalid-expression", Layer.SCHEMA, "at character {position}: {reason}", remedy="{advice}"
)

UNDEFINED_NAME = error_code(
    "undefined-name", Layer.SCHEMA, "at character {position}: @{value} is not defined", remedy="{advice}"
)

REFERENCE_CYCLE = error_code(
    "reference-cycle",
    Layer.SCHEMA,
    "these {kind} refer to one another in a cycle: {value}",
    remedy="remove one reference",
)

PARAMETER_TWICE = error_code(
    "parameter-twice", Layer.SCHEMA, "another parameter has the {name} {value}", expected="a different one for each"
)

PAYLOAD_MISSING = error_code(
    "parameter-payload-missing", Layer.SCHEMA, "is missing", remedy="a parameter of kind {kind} needs it"
)

PAYLOAD_OF_OTHER_KIND = error_code(
    "parameter-payload-of-other-kind",
    Layer.SCHEMA,
    "cannot be combined with kind {kind}",
    remedy="remove it and give `{wanted}`",
)

KEY_TWICE = error_code("parameter-key-twice", Layer.SCHEMA, "a key is given twice", remedy="give each key once")

BOUNDS_WITHOUT_CONSTRAINTS = error_code(
    "bounds-without-constraints",
    Layer.STRUCTURE,
    "there are bounds, but no constraints",
    remedy="add {needed} or remove this file",
)

NAME_TAKEN = error_code(
    "expression-name-taken",
    Layer.SCHEMA,
    "another expression or a parameter has this name",
    expected="unique names for use with `@`",
)

SLACK_WITHOUT_COST = error_code(
    "slack-without-cost", Layer.SCHEMA, "a slack without a cost", remedy="add it, in {unit}"
)

SLACK_COST = error_code("slack-cost", Layer.SCHEMA, "is {value:g}", expected="a number above 0")

SLACK_BASIS = error_code(
    "slack-basis-missing",
    Layer.SCHEMA,
    "is missing: format 0.19 does not say whether the penalty counts by the hour",
    expected='"per_hour" for a row in MW or m3/s, "per_unit" for a row in MWh or hm3',
)

SLACK_NOT_ENABLED = error_code(
    "slack-not-enabled",
    Layer.SCHEMA,
    "is given, but the slack is not enabled",
    remedy="remove it, or set `enabled` to true",
)

CONSTRAINT_ID_TWICE = error_code(
    "constraint-id-twice", Layer.SCHEMA, "another constraint has this id", expected="a different one for each"
)

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
    """Return whether an expression can refer to this name by `@name`."""
    return _REFERENCE_NAME.fullmatch(name) is not None


def read_parameters(document: Document | None, findings: Findings) -> dict[str, Parameter]:
    """Return the parameters of generic_parameters.json by name, in order of id; empty without the file."""
    if document is not None and isinstance(document.content, dict):
        # The one file of the format that allows other keys at its root.
        remaining = {key: value for key, value in document.content.items() if key in ("$schema", "scalar_parameters")}
        if len(remaining) < len(document.content):
            document = rewritten(document, remaining)
    file = decode(document, GenericParametersFile, findings)
    if file is None:
        return {}
    _refuse_names(file.scalar_parameters, findings)
    _refuse_repeated_parameters(file.scalar_parameters, findings)
    sound = [record for record in file.scalar_parameters if _has_its_payload(record, findings)]
    ordered = sorted(sound, key=lambda record: record.id)
    sums = _sums(ordered, declared_names(document), findings)
    return {record.name: _parameter(record, sums.get(record.name, ()), findings) for record in ordered}


def declared_names(document: Document | None) -> list[str]:
    """Return every name that the file declares, whether or not the rest of the parameter can be read."""
    content = document.content if document is not None else None
    records = content.get("scalar_parameters") if isinstance(content, dict) else None
    names = [record.get("name") for record in records if isinstance(record, dict)] if isinstance(records, list) else []
    return [name for name in names if isinstance(name, str)]


def _sums(records: list[_Parameter], names: list[str], findings: Findings) -> dict[str, tuple[Coefficient, ...]]:
    """Parse the parameters of kind `expression`, by name. names: all that they may refer to."""
    references = {name: parameter(name) for name in names}
    sums = {}
    for record in records:
        if record.kind == "expression":
            sums[record.name] = _parsed(record, references, findings)
    _refuse_cycle([record for record in records if record.kind == "expression"], findings)
    return sums


def _parsed(record: _Parameter, references: Mapping[str, LinearForm], findings: Findings) -> tuple[Coefficient, ...]:
    try:
        return parse_number(record.expression or "", references)
    except ExpressionError as error:
        advice = "use the name of another parameter of this file; expressions of constraints cannot be used here"
        _report(PARAMETERS_FILE, _subject(record), error, findings, advice)
        return (Coefficient(),)


def _refuse_cycle(records: list[_Parameter], findings: Findings) -> None:
    """Report parameters that refer to one another: those that are left when all with known references are gone."""
    waiting = {record.name: set(_named_in(record)) for record in records}
    while ready := [name for name, names in waiting.items() if not names & waiting.keys()]:
        for name in ready:
            del waiting[name]
    if waiting:
        names = ", ".join(f"@{name}" for name in waiting)
        findings.add(REFERENCE_CYCLE, PARAMETERS_FILE, (), "scalar_parameters", kind="parameters", value=names)


def _named_in(record: _Parameter) -> tuple[str, ...]:
    try:
        return references_in(record.expression or "")
    except ExpressionError:
        return ()  # reported when it is parsed


def _refuse_names(records: tuple[_Parameter, ...], findings: Findings) -> None:
    for record in records:
        if not is_reference_name(record.name):
            findings.add(REFERENCE_NAME, PARAMETERS_FILE, _subject(record), "name", value=record.name)


def _refuse_repeated_parameters(records: tuple[_Parameter, ...], findings: Findings) -> None:
    for field in ("id", "name"):
        seen: set[Any] = set()
        for record in records:
            value = getattr(record, field)
            if value in seen:
                findings.add(PARAMETER_TWICE, PARAMETERS_FILE, _subject(record), field, name=field, value=value)
            seen.add(value)


def _has_its_payload(record: _Parameter, findings: Findings) -> bool:
    expected = PAYLOADS[record.kind]
    for field in sorted(set(PAYLOADS.values())):
        is_given = getattr(record, field) is not None
        if field == expected and not is_given:
            findings.add(PAYLOAD_MISSING, PARAMETERS_FILE, _subject(record), field, kind=record.kind)
        elif field != expected and is_given:
            facts = {"kind": record.kind, "wanted": expected}
            findings.add(PAYLOAD_OF_OTHER_KIND, PARAMETERS_FILE, _subject(record), field, **facts)
    return getattr(record, expected) is not None


def _parameter(record: _Parameter, expression: tuple[Coefficient, ...], findings: Findings) -> Parameter:
    spec = record.computed_spec if record.kind == "computed" else None
    return Parameter(
        id=record.id,
        name=record.name,
        kind=record.kind,
        values=_values(record, findings),
        computed_tag=spec.tag if spec else None,
        hydro_id=spec.hydro_id if spec else None,
        expression=expression,
    )


def _values(record: _Parameter, findings: Findings) -> Mapping[Any, float]:
    if record.kind == "constant":
        return {None: record.value or 0.0}
    if record.kind == "per_stage_block":
        pairs: list[tuple[Any, float]] = [((stage, block), value) for stage, block, value in record.block_values or ()]
    else:
        pairs = list(record.values or ())
    values = dict(sorted(pairs))
    if len(values) < len(pairs):
        findings.add(KEY_TWICE, PARAMETERS_FILE, _subject(record), PAYLOADS[record.kind])
    return values


def _subject(record: _Parameter) -> Subject:
    return (Part("parameter", record.id, record.name),)


BOUNDS = TableFormat(
    CONSTRAINT_BOUNDS_FILE,
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
    findings: Findings,
    case_format: RecognisedFormat = FORMAT_018,
) -> GenericConstraints:
    """Read and parse all generic constraints of a case; empty without such files."""
    parameters_by_name = read_parameters(parameters, findings)
    # A parameter that cannot be read is reported once, and not as missing wherever it is used.
    usable = {name: parameter(name) for name in declared_names(parameters)}
    parsed = _read_constraints(constraints, usable, findings, case_format)
    if (
        bounds is not None
        and constraints is None
        and not any(error.file == CONSTRAINTS_FILE for error in findings.errors)
    ):
        findings.add(BOUNDS_WITHOUT_CONSTRAINTS, BOUNDS.file, needed=CONSTRAINTS_FILE)
    return GenericConstraints(parsed or (), parameters_by_name, bounds)


def _read_constraints(
    document: Document | None, parameters: Mapping[str, LinearForm], findings: Findings, case_format: RecognisedFormat
) -> tuple[GenericConstraint, ...] | None:
    """Return all constraints of a document, by id; None without a document that can be decoded."""
    file = decode(document, GenericConstraintsFile, findings)
    if file is None:
        return None
    references = _references(file.expressions, parameters, findings)
    _refuse_duplicates(file.constraints, findings)
    parsed = [_constraint(record, references, findings, case_format) for record in file.constraints]
    return tuple(
        sorted((constraint for constraint in parsed if constraint is not None), key=lambda constraint: constraint.id)
    )


def _references(
    expressions: Sequence[_NamedExpression], parameters: Mapping[str, LinearForm], findings: Findings
) -> dict[str, LinearForm]:
    """Return the forms that `@name` may name: parameters and named expressions."""
    references = dict(parameters)
    waiting: dict[str, _NamedExpression] = {}
    for expression in expressions:
        if not is_reference_name(expression.name):
            findings.add(REFERENCE_NAME, CONSTRAINTS_FILE, _named(expression), "name", value=expression.name)
        elif expression.name in references or expression.name in waiting:
            findings.add(NAME_TAKEN, CONSTRAINTS_FILE, _named(expression), "name", value=expression.name)
        else:
            waiting[expression.name] = expression
    _resolve(waiting, references, findings)
    return references


def _resolve(waiting: dict[str, _NamedExpression], resolved: dict[str, LinearForm], findings: Findings) -> None:
    """Parse expressions whose references are known, until none is left or the rest refer to one another in a cycle."""
    while waiting:
        ready = [expression for expression in waiting.values() if not _awaits(expression, waiting)]
        if not ready:
            names = ", ".join(f"@{name}" for name in waiting)
            findings.add(REFERENCE_CYCLE, CONSTRAINTS_FILE, (), "expressions", kind="expressions", value=names)
            resolved.update(dict.fromkeys(waiting, UNREADABLE))
            return
        for expression in ready:
            del waiting[expression.name]
            _read_named(expression, resolved, findings)


def _awaits(expression: _NamedExpression, waiting: Mapping[str, _NamedExpression]) -> bool:
    try:
        return any(name in waiting for name in references_in(expression.expression))
    except ExpressionError:
        return False  # reported when it is read


def _read_named(expression: _NamedExpression, resolved: dict[str, LinearForm], findings: Findings) -> None:
    try:
        resolved[expression.name] = parse_expression(expression.expression, resolved)
    except ExpressionError as error:
        _report(CONSTRAINTS_FILE, _named(expression), error, findings)
        resolved[expression.name] = UNREADABLE


def _constraint(
    record: _Constraint, references: Mapping[str, LinearForm], findings: Findings, case_format: RecognisedFormat
) -> GenericConstraint | None:
    subject = (Part("constraint", record.id, record.name),)
    _check_slack(record.slack, subject, findings, case_format)
    try:
        parsed = parse_constraint(record.expression, references)
    except ExpressionError as error:
        _report(CONSTRAINTS_FILE, subject, error, findings)
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


def _check_slack(slack: _Slack, subject: Subject, findings: Findings, case_format: RecognisedFormat) -> None:
    if not slack.enabled:
        if case_format.version == "0.19":
            _refuse_unused(slack, subject, findings)
        return
    if slack.penalty is None:
        unit = "$ per unit and hour" if case_format.version == "0.18" else "$"
        findings.add(SLACK_WITHOUT_COST, CONSTRAINTS_FILE, subject, "slack.penalty", unit=unit)
    elif slack.penalty <= 0:
        findings.add(SLACK_COST, CONSTRAINTS_FILE, subject, "slack.penalty", value=slack.penalty)
    if slack.penalty_basis is None and case_format.version == "0.19":
        findings.add(SLACK_BASIS, CONSTRAINTS_FILE, subject, "slack.penalty_basis")


def _refuse_unused(slack: _Slack, subject: Subject, findings: Findings) -> None:
    for name in ("penalty", "penalty_basis"):
        if getattr(slack, name) is not None:
            findings.add(SLACK_NOT_ENABLED, CONSTRAINTS_FILE, subject, f"slack.{name}")


def _refuse_duplicates(constraints: Sequence[_Constraint], findings: Findings) -> None:
    ids: set[int] = set()
    for record in constraints:
        if record.id in ids:
            findings.add(CONSTRAINT_ID_TWICE, CONSTRAINTS_FILE, (Part("constraint", record.id, record.name),), "id")
        ids.add(record.id)


def _report(
    file: str, subject: Subject, error: ExpressionError, findings: Findings, on_undefined: str | None = None
) -> None:
    """Add the errors of an expression. on_undefined: advice on names that are not defined; None: the usual one."""
    for each in (error, *error.others):
        if isinstance(each, UndefinedNameError):
            facts = {"position": each.position, "value": each.name, "advice": on_undefined or each.remedy}
            findings.add(UNDEFINED_NAME, file, subject, "expression", **facts)
        else:
            facts = {"position": each.position, "reason": each.message, "advice": each.remedy}
            findings.add(INVALID_EXPRESSION, file, subject, "expression", **facts)


def _named(expression: _NamedExpression) -> Subject:
    return (Part("expression", expression.name),)
