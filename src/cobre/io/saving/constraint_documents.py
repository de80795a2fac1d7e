"""Generic constraints as JSON documents. Named expressions are not kept after parsing: their terms are written out."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from cobre.core.case import FormatVersion
from cobre.core.generic_constraints import Coefficient, GenericConstraint, GenericConstraints, Parameter, Term
from cobre.io.constraints.parameters import FILE as PARAMETER_FILE
from cobre.io.constraints.parameters import PAYLOADS
from cobre.io.constraints.reading import FILE

Piece = tuple[bool, list[str]]
"""Whether a product is negative, and its factors, the number first."""


def constraint_documents(given: GenericConstraints, version: FormatVersion) -> Iterator[tuple[str, Any]]:
    """Names of files, and their content."""
    if given.parameters:
        yield PARAMETER_FILE, {"scalar_parameters": [_parameter(one) for one in given.parameters.values()]}
    if given.constraints:
        yield FILE, {"constraints": [_constraint(constraint, version) for constraint in given.constraints]}


def _parameter(parameter: Parameter) -> dict[str, Any]:
    head = {"id": parameter.id, "name": parameter.name, "kind": parameter.kind}
    return head | {PAYLOADS[parameter.kind]: _payload(parameter)}


def _payload(parameter: Parameter) -> Any:
    if parameter.kind == "computed":
        return {"tag": parameter.computed_tag, "hydro_id": parameter.hydro_id}
    if parameter.kind == "expression":
        return _sum(_constant(part) for part in parameter.expression)
    if parameter.kind == "constant":
        return parameter.values[None]
    if parameter.kind == "per_stage_block":
        return [[stage, block, value] for (stage, block), value in parameter.values.items()]
    return [[key, value] for key, value in parameter.values.items()]


def _constraint(constraint: GenericConstraint, version: FormatVersion) -> dict[str, Any]:
    document: dict[str, Any] = {
        "id": constraint.id,
        "name": constraint.name,
        "expression": expression_text(constraint),
        "slack": {"enabled": constraint.slack_enabled},
    }
    if constraint.slack_penalty is not None:
        document["slack"]["penalty"] = constraint.slack_penalty
    if constraint.slack_enabled and (version == "0.19" or constraint.slack_basis != "per_hour"):
        document["slack"]["penalty_basis"] = constraint.slack_basis
    if constraint.description:
        document["description"] = constraint.description
    return document


def expression_text(constraint: GenericConstraint) -> str:
    """An expression that parses to this constraint, with the same numbers in the same order."""
    left = _sum([*(_term(term) for term in constraint.terms), *(_constant(one) for one in constraint.constant)])
    if constraint.relation is None:
        return left
    right = _sum([_constant(one) for one in constraint.bound]) or _nothing(constraint.terms)
    return f"{left} {constraint.relation} {right}"


def _nothing(terms: Sequence[Term]) -> str:
    """A right side without constants: 0 times a variable of the left side."""
    _, factors = _term(terms[0])
    return " * ".join(["0", *factors[1:]])


def _term(term: Term) -> Piece:
    arguments = [str(term.entity_id)]
    if term.block_id is not None:
        arguments.append(str(term.block_id))
    if term.bus_id is not None:
        arguments.append(f"bus={term.bus_id}")
    is_negative, factors = _constant(term.coefficient)
    return is_negative, [*factors, f"{term.variable}({', '.join(arguments)})"]


def _constant(coefficient: Coefficient) -> Piece:
    factors = [repr(abs(coefficient.factor)), *(f"@{name}" for name in coefficient.parameters)]
    for divisor in coefficient.divisors:
        factors[-1] += f" / ({_sum(_constant(part) for part in divisor)})"
    return coefficient.factor < 0, factors


def _sum(pieces: Iterable[Piece]) -> str:
    text = ""
    for is_negative, factors in pieces:
        sign = ("- " if is_negative else "+ ") if text else ("-" if is_negative else "")
        text += (" " if text else "") + sign + " * ".join(factors)
    return text
