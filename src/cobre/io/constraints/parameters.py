"""constraints/generic_parameters.json: the named parameters of generic constraints."""

import re
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from cobre.core.generic_constraints import Coefficient, Parameter, ParameterKind
from cobre.io.constraints.expressions import parse_number, references_in
from cobre.io.constraints.linear_form import LinearForm, parameter
from cobre.io.constraints.tokens import ExpressionError
from cobre.io.decoding.json_documents import Document, rewritten
from cobre.io.decoding.json_files import JsonFile, decode
from cobre.io.findings.problems import Layer, Problems

FILE = "constraints/generic_parameters.json"

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
    _refuse_duplicates(file.scalar_parameters, problems)
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
            problems.error(Layer.SCHEMA, FILE, _entity(record), "expression", message, remedy)
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
        problems.error(Layer.SCHEMA, FILE, "", "scalar_parameters", message, "remove one reference")


def _named_in(record: _Parameter) -> tuple[str, ...]:
    try:
        return references_in(record.expression or "")
    except ExpressionError:
        return ()  # reported when it is parsed


def _refuse_names(records: tuple[_Parameter, ...], problems: Problems) -> None:
    for record in records:
        if not is_reference_name(record.name):
            report_reference_name(FILE, _entity(record), record.name, problems)


def _refuse_duplicates(records: tuple[_Parameter, ...], problems: Problems) -> None:
    for field in ("id", "name"):
        seen: set[Any] = set()
        for record in records:
            value = getattr(record, field)
            if value in seen:
                message = f"another parameter has the {field} {value}"
                problems.error(Layer.SCHEMA, FILE, _entity(record), field, message, "they must differ")
            seen.add(value)


def _has_its_payload(record: _Parameter, problems: Problems) -> bool:
    wanted = PAYLOADS[record.kind]
    for field in sorted(set(PAYLOADS.values())):
        is_given = getattr(record, field) is not None
        if field == wanted and not is_given:
            message, remedy = "is missing", f"a parameter of kind {record.kind} needs it"
            problems.error(Layer.SCHEMA, FILE, _entity(record), field, message, remedy)
        elif field != wanted and is_given:
            message = f"cannot be combined with kind {record.kind}"
            problems.error(Layer.SCHEMA, FILE, _entity(record), field, message, f"remove it and give `{wanted}`")
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
        problems.error(Layer.SCHEMA, FILE, _entity(record), field, "a key is given twice", "give each key once")
    return values


def _entity(record: _Parameter) -> str:
    return f"parameter {record.id} ({record.name})"
