"""Parser of the expressions of generic constraints.

    constraint := expression [("<=" | ">=" | "==") expression]
    expression := product {("+" | "-") product}
    product    := factor {"*" factor}
    factor     := ("+" | "-") factor | number | "@" name | variable | "(" expression ")"
    variable   := name "(" entity id {"," (block id | "bus" "=" bus id)} ")"

`@name` is a parameter or a named expression. A product may have variables in at most one of its factors.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Literal, cast

from cobre.core.generic_constraints import Coefficient, Term
from cobre.io.constraints.linear_form import (
    LinearForm,
    NotLinearError,
    add,
    divide,
    multiply,
    negate,
    number,
    parameter,
)
from cobre.io.constraints.tokens import ExpressionError, Token, TokenKind, tokenise
from cobre.io.constraints.variables import VARIABLES, VariableKind
from cobre.records import dataclass

Relation = Literal["<=", ">=", "=="]
MAX_PARENTHESES = 50
MAX_ID = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ParsedConstraint:
    """`left relation right`; without a relation there is no right side. Variables are all on the left."""

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
    """Parse arithmetic over numbers and parameters alone, such as `(@a + 2) / @b`. Raises ExpressionError."""
    form = parse_expression(text, references)
    if form.terms:
        variable = f"{form.terms[0].variable}({form.terms[0].entity_id})"
        raise ExpressionError(1, f"{variable} is a variable of the LP", "numbers and @parameters only")
    return form.constants


def references_in(text: str) -> tuple[str, ...]:
    """The names after `@`, each once, in order of appearance."""
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
        """The relation at the current position, or None."""
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
            self._undefined.setdefault(name, ExpressionError(token.position, f"@{name} is not defined", remedy))
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
        remedy = f"one of {', '.join(VARIABLES)}" + _suggestion(token.text, VARIABLES)
        raise ExpressionError(token.position, f"{token} is not a variable", remedy)
    return kind


def _refuse_argument(token: Token, variable: str, argument: str, *, is_allowed: bool, is_second: bool) -> None:
    if not is_allowed:
        takers = [name for name, kind in VARIABLES.items() if kind.takes_bus]
        remedy = f"leave it out; only {' and '.join(takers)} take one" if argument == "bus" else "leave it out"
        raise ExpressionError(token.position, f"{variable} takes no {argument}", remedy)
    if is_second:
        raise ExpressionError(token.position, f"{variable} has two values for the {argument}", "give one")


def _suggestion(name: str, known: Mapping[str, object]) -> str:
    near = get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]}?" if near else ""
