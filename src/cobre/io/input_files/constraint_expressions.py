"""Parser of the expressions of generic constraints.

    constraint := expression [("<=" | ">=" | "==") expression]
    expression := product {("+" | "-") product}
    product    := factor {"*" factor}
    factor     := ("+" | "-") factor | number | "@" name | variable | "(" expression ")"
    variable   := name "(" entity id {"," (block id | "bus" "=" bus id)} ")"

`@name` is a parameter or a named expression. A product may have variables in at most one of its factors.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import Enum
from typing import Literal, cast

from cobre.core.generic_constraints import Coefficient, Term
from cobre.errors import CobreError
from cobre.records import dataclass

# The tokens of an expression: numbers, names, references, signs.

_PATTERN = re.compile(
    r"(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<reference>@[A-Za-z_]\w*)"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<relation><=|>=|==)"
    r"|(?P<sign>[-+*/(),=])",
    re.ASCII,
)

_BLANKS = re.compile(r"\s*")
_ADVICE = {"<": "write `<=`", ">": "write `>=`", "@": "write a name right after `@`"}


class TokenKind(Enum):
    """Kinds of tokens, named as the groups of the pattern."""

    NUMBER = "number"
    REFERENCE = "reference"
    NAME = "name"
    RELATION = "relation"
    SIGN = "sign"
    END = "end"


@dataclass(frozen=True, slots=True)
class Token:
    """A token and the position of its first character, counted from 1."""

    kind: TokenKind
    text: str
    position: int

    def __str__(self) -> str:
        return "the end" if self.kind is TokenKind.END else f"`{self.text}`"


class ExpressionError(CobreError, ValueError):
    """An invalid expression: position, reason and remedy. others: further errors in the same text."""

    others: tuple["ExpressionError", ...] = ()

    def __init__(self, position: int, message: str, remedy: str) -> None:
        super().__init__(f"at character {position}: {message} ({remedy})")
        self.position = position
        self.message = message
        self.remedy = remedy


class UndefinedNameError(ExpressionError):
    """A name after `@` that nothing defines."""

    def __init__(self, position: int, name: str, remedy: str) -> None:
        super().__init__(position, f"@{name} is not defined", remedy)
        self.name = name


def tokenise(text: str) -> list[Token]:
    """Return the tokens of a text, and an end token. Raises ExpressionError."""
    tokens = []
    position = _skip_blanks(text, 0)
    while position < len(text):
        token = _token_at(text, position)
        tokens.append(token)
        position = _skip_blanks(text, position + len(token.text))
    return [*tokens, Token(TokenKind.END, "", len(text) + 1)]


def _skip_blanks(text: str, position: int) -> int:
    blanks = _BLANKS.match(text, position)
    return blanks.end() if blanks else position


def _token_at(text: str, position: int) -> Token:
    match = _PATTERN.match(text, position)
    if match is None or match.lastgroup is None:
        character = text[position]
        remedy = _ADVICE.get(character, "use numbers, names, @names, + - * / ( ) , and one of <= >= ==")
        raise ExpressionError(position + 1, f"`{character}` is not allowed here", remedy)
    token = Token(TokenKind(match.lastgroup), match.group(), position + 1)
    if token.kind is TokenKind.NUMBER and not math.isfinite(float(token.text)):
        raise ExpressionError(token.position, f"{token.text} is too large", "use a number below 1e308")
    return token


# Linear forms: sums of terms and constants, to which expressions evaluate.

# Products of named expressions grow quickly; limits keep a mistake from exhausting memory.
MAX_PARAMETERS = 8
MAX_PARTS = 20_000


class NotLinearError(CobreError, ValueError):
    """A product of two variables, or a division by one, which a linear program cannot hold."""


@dataclass(frozen=True, slots=True)
class LinearForm:
    """`sum of terms + sum of constants`; like terms and like constants are merged."""

    terms: tuple[Term, ...] = ()
    constants: tuple[Coefficient, ...] = ()


def number(value: float) -> LinearForm:
    """Return the constant form of a number."""
    return LinearForm(constants=(Coefficient(value),))


def parameter(name: str) -> LinearForm:
    """Return the form of a parameter, whose value is looked up for each stage."""
    return LinearForm(constants=(Coefficient(1.0, (name,)),))


def add(first: LinearForm, second: LinearForm) -> LinearForm:
    """Return the sum of two linear forms."""
    return _merged((*first.terms, *second.terms), (*first.constants, *second.constants))


def negate(form: LinearForm) -> LinearForm:
    """Return a linear form times -1."""
    minus = Coefficient(-1.0)
    terms = tuple(_scaled(term, minus) for term in form.terms)
    return LinearForm(terms, tuple(_product(constant, minus) for constant in form.constants))


def multiply(first: LinearForm, second: LinearForm) -> LinearForm:
    """Return the product. Raises NotLinearError if both have variables, or if it has too many parts."""
    if first.terms and second.terms:
        raise NotLinearError("two variables are multiplied")
    if (len(first.terms) + len(first.constants)) * (len(second.terms) + len(second.constants)) > MAX_PARTS:
        raise NotLinearError(f"the product has more than {MAX_PARTS} parts")
    terms = [_scaled(term, by) for term in first.terms for by in second.constants]
    terms += [_scaled(term, by) for by in first.constants for term in second.terms]
    constants = [_product(one, other) for one in first.constants for other in second.constants]
    return _merged(terms, constants)


def divide(first: LinearForm, second: LinearForm) -> LinearForm:
    """Return the quotient. Raises NotLinearError if the divisor has variables, ZeroDivisionError if it is 0."""
    if second.terms:
        raise NotLinearError("something is divided by a variable")
    divisor = second.constants
    if all(part.factor == 0.0 for part in divisor):
        raise ZeroDivisionError("the divisor is 0")
    if len(divisor) == 1 and not divisor[0].parameters and not divisor[0].divisors:
        value = divisor[0].factor
        terms = [replace(term, coefficient=_over(term.coefficient, value)) for term in first.terms]
        return LinearForm(tuple(terms), tuple(_over(constant, value) for constant in first.constants))
    by = Coefficient(1.0, divisors=(divisor,))
    return multiply(first, LinearForm(constants=(by,)))


def _over(coefficient: Coefficient, value: float) -> Coefficient:
    return replace(coefficient, factor=coefficient.factor / value)


def _scaled(term: Term, by: Coefficient) -> Term:
    return replace(term, coefficient=_product(term.coefficient, by))


def _product(one: Coefficient, other: Coefficient) -> Coefficient:
    names = tuple(sorted((*one.parameters, *other.parameters)))
    divisors = (*one.divisors, *other.divisors)
    if len(names) + len(divisors) > MAX_PARAMETERS:
        raise NotLinearError(f"more than {MAX_PARAMETERS} parameters are multiplied")
    return Coefficient(one.factor * other.factor, names, divisors)


def _merged(terms: Iterable[Term], constants: Iterable[Coefficient]) -> LinearForm:
    """Merge like terms and like constants, in order of first appearance."""
    coefficients: dict[Term, float] = {}
    for term in terms:
        key = replace(term, coefficient=replace(term.coefficient, factor=1.0))
        coefficients[key] = coefficients.get(key, 0.0) + term.coefficient.factor
    merged = [_scaled(key, Coefficient(factor)) for key, factor in coefficients.items()]
    sums: dict[Coefficient, float] = {}
    for constant in constants:
        like = replace(constant, factor=1.0)
        sums[like] = sums.get(like, 0.0) + constant.factor
    return LinearForm(tuple(merged), tuple(replace(like, factor=factor) for like, factor in sums.items()))


# The variables of generic constraints, and the arguments of each.

EntityClass = Literal["hydro", "thermal", "line", "bus", "pumping_station", "contract", "non_controllable_source"]


@dataclass(frozen=True, slots=True)
class VariableKind:
    """The class of the entity in the first argument, and whether a block and a bus may follow."""

    entity: EntityClass
    takes_block: bool = True
    takes_bus: bool = False
    is_storage_boundary: bool = False


_BOUNDARY = VariableKind("hydro", is_storage_boundary=True)

VARIABLES: Mapping[str, VariableKind] = {
    "hydro_storage": VariableKind("hydro", takes_block=False),
    "hydro_storage_initial": _BOUNDARY,
    "hydro_storage_final": _BOUNDARY,
    "hydro_useful_volume_initial": _BOUNDARY,
    "hydro_useful_volume_final": _BOUNDARY,
    "hydro_turbined": VariableKind("hydro", takes_bus=True),
    "hydro_spillage": VariableKind("hydro"),
    "hydro_diversion": VariableKind("hydro"),
    "hydro_outflow": VariableKind("hydro"),
    "hydro_generation": VariableKind("hydro", takes_bus=True),
    "hydro_evaporation": VariableKind("hydro"),
    "hydro_inflow": VariableKind("hydro"),
    "thermal_generation": VariableKind("thermal"),
    "anticipated_decision": VariableKind("thermal", takes_block=False),
    "line_direct": VariableKind("line"),
    "line_reverse": VariableKind("line"),
    "line_exchange": VariableKind("line"),
    "bus_deficit": VariableKind("bus"),
    "bus_excess": VariableKind("bus"),
    "pumping_flow": VariableKind("pumping_station"),
    "pumping_power": VariableKind("pumping_station"),
    "contract_import": VariableKind("contract"),
    "contract_export": VariableKind("contract"),
    "non_controllable_generation": VariableKind("non_controllable_source"),
    "non_controllable_curtailment": VariableKind("non_controllable_source"),
}

Relation = Literal["<=", ">=", "=="]
MAX_PARENTHESES = 50
MAX_ID = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ParsedConstraint:
    """`left relation right`; without a relation there is no right-hand side. Variables are all on the left."""

    left: LinearForm
    relation: Relation | None
    right: tuple[Coefficient, ...]


def parse_constraint(text: str, references: Mapping[str, LinearForm]) -> ParsedConstraint:
    """Parse a constraint; `references` are the forms that `@name` may name. Raises ExpressionError."""
    parser = _Parser(text, references)
    left = parser.expression()
    relation = parser.take_relation()
    right = parser.expression() if relation else LinearForm()
    parser.finish()
    left = add(left, negate(LinearForm(right.terms)))
    if not left.terms:
        raise ExpressionError(1, "the expression has no variable", "write at least one, such as hydro_storage(0)")
    return ParsedConstraint(left, relation, right.constants)


def parse_expression(text: str, references: Mapping[str, LinearForm]) -> LinearForm:
    """Parse a linear expression without a relation, such as `2 * hydro_storage(3) + 1`. Raises ExpressionError."""
    parser = _Parser(text, references)
    form = parser.expression()
    parser.finish()
    return form


def parse_number(text: str, references: Mapping[str, LinearForm]) -> tuple[Coefficient, ...]:
    """Parse arithmetic over numbers and parameters only, such as `(@a + 2) / @b`. Raises ExpressionError."""
    form = parse_expression(text, references)
    if form.terms:
        variable = f"{form.terms[0].variable}({form.terms[0].entity_id})"
        raise ExpressionError(1, f"{variable} is a variable of the LP", "numbers and @parameters only")
    return form.constants


def references_in(text: str) -> tuple[str, ...]:
    """Return the names after `@`, each once, in order of appearance."""
    names = (token.text[1:] for token in tokenise(text) if token.kind is TokenKind.REFERENCE)
    return tuple(dict.fromkeys(names))


class _Parser:
    """Recursive descent over the tokens of one text."""

    def __init__(self, text: str, references: Mapping[str, LinearForm]) -> None:
        self._tokens = tokenise(text)
        self._next = 0
        self._references = references
        self._depth = 0
        self._undefined: dict[str, ExpressionError] = {}
        if self._tokens[0].kind is TokenKind.END:
            raise ExpressionError(1, "the expression is empty", "write a sum of terms, such as 2 * hydro_storage(0)")

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _advance(self) -> Token:
        token = self._token
        self._next += 1
        return token

    def _take(self, *signs: str) -> Token | None:
        is_sign = self._token.kind is TokenKind.SIGN and self._token.text in signs
        return self._advance() if is_sign else None

    def _demand(self, sign: str, purpose: str) -> None:
        if self._take(sign) is None:
            raise ExpressionError(self._token.position, f"{self._token} found where `{sign}` was expected", purpose)

    def take_relation(self) -> Relation | None:
        """Return the relation at the current position, or None."""
        if self._token.kind is not TokenKind.RELATION:
            return None
        return cast("Relation", self._advance().text)

    def finish(self) -> None:
        """Raise ExpressionError unless the text has been parsed to its end, and all its names are defined."""
        token = self._token
        if token.kind is TokenKind.END:
            if self._undefined:
                first, *others = self._undefined.values()
                first.others = tuple(others)
                raise first
            return
        if token.kind is TokenKind.RELATION:
            remedy = "write two constraints, or give bound_lower and bound_upper in generic_constraint_bounds.parquet"
            raise ExpressionError(token.position, f"{token} is not the only relation", remedy)
        if token.text == "=":
            raise ExpressionError(token.position, "`=` is not a relation", "write `==`")
        raise ExpressionError(token.position, f"{token} is not allowed here", "join terms by `+`, `-`, `*` or `/`")

    def expression(self) -> LinearForm:
        """Parse a sum of products."""
        form = self._product()
        while sign := self._take("+", "-"):
            product = self._product()
            form = add(form, product if sign.text == "+" else negate(product))
        return form

    def _product(self) -> LinearForm:
        form = self._factor()
        while sign := self._take("*", "/"):
            factor = self._factor()
            try:
                form = multiply(form, factor) if sign.text == "*" else divide(form, factor)
            except NotLinearError as error:
                raise ExpressionError(sign.position, str(error), "keep the expression linear") from error
            except ZeroDivisionError as error:
                raise ExpressionError(sign.position, str(error), "divide by another number") from error
        return form

    def _factor(self) -> LinearForm:
        self._depth += 1
        if self._depth > MAX_PARENTHESES:
            raise ExpressionError(self._token.position, "the expression is nested too deeply", "use fewer parentheses")
        try:
            return self._signed() or self._group() or self._atom()
        finally:
            self._depth -= 1

    def _signed(self) -> LinearForm | None:
        sign = self._take("+", "-")
        if sign is None:
            return None
        factor = self._factor()
        return factor if sign.text == "+" else negate(factor)

    def _group(self) -> LinearForm | None:
        if self._take("(") is None:
            return None
        form = self.expression()
        self._demand(")", "close the parenthesis")
        return form

    def _atom(self) -> LinearForm:
        token = self._token
        if token.kind is TokenKind.NUMBER:
            return number(float(self._advance().text))
        if token.kind is TokenKind.REFERENCE:
            return self._reference(self._advance())
        if token.kind is TokenKind.NAME:
            return self._variable(self._advance())
        message = f"{token} found where a term was expected"
        raise ExpressionError(token.position, message, "write a number, a variable, @name or a parenthesis")

    def _reference(self, token: Token) -> LinearForm:
        name = token.text[1:]
        if name not in self._references:
            remedy = "declare it in generic_parameters.json or under `expressions`" + _suggestion(
                name, self._references
            )
            self._undefined.setdefault(name, UndefinedNameError(token.position, name, remedy))
            return parameter(name)  # the rest is parsed, and all undefined names are reported together
        return self._references[name]

    def _variable(self, token: Token) -> LinearForm:
        kind = _kind_of(token)
        self._demand("(", f"write {token.text}(id)")
        entity_id = self._integer("the id of an entity")
        block_id, bus_id = self._arguments(token.text, kind)
        self._demand(")", f"close the parenthesis of {token.text}")
        return LinearForm((Term(Coefficient(), token.text, entity_id, block_id, bus_id),))

    def _arguments(self, variable: str, kind: VariableKind) -> tuple[int | None, int | None]:
        block_id: int | None = None
        bus_id: int | None = None
        while self._take(","):
            token = self._token
            if token.kind is not TokenKind.NAME:
                _refuse_argument(token, variable, "block", is_allowed=kind.takes_block, is_second=block_id is not None)
                block_id = self._integer("the id of a block")
            else:
                self._bus_keyword()
                _refuse_argument(token, variable, "bus", is_allowed=kind.takes_bus, is_second=bus_id is not None)
                bus_id = self._integer("the id of a bus")
        return block_id, bus_id

    def _bus_keyword(self) -> None:
        token = self._advance()
        if token.text != "bus":
            remedy = "only a block id and bus=ID may follow the entity's id"
            raise ExpressionError(token.position, f"`{token.text}` is not an argument", remedy)
        self._demand("=", "write bus=ID")

    def _integer(self, what: str) -> int:
        token = self._token
        is_whole = token.kind is TokenKind.NUMBER and float(token.text).is_integer() and float(token.text) <= MAX_ID
        if not is_whole:
            raise ExpressionError(token.position, f"{token} found where {what} was expected", "write a whole number")
        self._advance()
        return int(float(token.text))


def _kind_of(token: Token) -> VariableKind:
    kind = VARIABLES.get(token.text)
    if kind is None:
        remedy = f"use one of {', '.join(VARIABLES)}" + _suggestion(token.text, VARIABLES)
        raise ExpressionError(token.position, f"{token} is not a variable", remedy)
    return kind


def _refuse_argument(token: Token, variable: str, argument: str, *, is_allowed: bool, is_second: bool) -> None:
    if not is_allowed:
        takers = [name for name, kind in VARIABLES.items() if kind.takes_bus]
        remedy = f"leave it out; only {' and '.join(takers)} take one" if argument == "bus" else "leave it out"
        raise ExpressionError(token.position, f"{variable} takes no {argument}", remedy)
    if is_second:
        raise ExpressionError(token.position, f"{variable} has two values for the {argument}", "give one")


def _suggestion(name: str, names: Mapping[str, object]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415  (only for errors)

    near = get_close_matches(name, names, n=1)
    return f"; did you mean {near[0]}?" if near else ""
