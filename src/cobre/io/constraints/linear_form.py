"""Linear forms: sums of terms and constants, to which expressions evaluate."""

from collections.abc import Iterable
from dataclasses import replace

from cobre.core.generic_constraints import Coefficient, Term
from cobre.errors import CobreError
from cobre.records import dataclass

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
    """The constant form of a number."""
    return LinearForm(constants=(Coefficient(value),))


def parameter(name: str) -> LinearForm:
    """The form of a parameter, whose value is looked up for each stage."""
    return LinearForm(constants=(Coefficient(1.0, (name,)),))


def add(first: LinearForm, second: LinearForm) -> LinearForm:
    """The sum of two linear forms."""
    return _merged((*first.terms, *second.terms), (*first.constants, *second.constants))


def negate(form: LinearForm) -> LinearForm:
    """A linear form times -1."""
    minus = Coefficient(-1.0)
    terms = tuple(_scaled(term, minus) for term in form.terms)
    return LinearForm(terms, tuple(_product(constant, minus) for constant in form.constants))


def multiply(first: LinearForm, second: LinearForm) -> LinearForm:
    """The product. Raises NotLinearError if both have variables, or if it has too many parts."""
    if first.terms and second.terms:
        raise NotLinearError("two variables are multiplied")
    if (len(first.terms) + len(first.constants)) * (len(second.terms) + len(second.constants)) > MAX_PARTS:
        raise NotLinearError(f"the product has more than {MAX_PARTS} parts")
    terms = [_scaled(term, by) for term in first.terms for by in second.constants]
    terms += [_scaled(term, by) for by in first.constants for term in second.terms]
    constants = [_product(one, other) for one in first.constants for other in second.constants]
    return _merged(terms, constants)


def divide(first: LinearForm, second: LinearForm) -> LinearForm:
    """The quotient. Raises NotLinearError if the divisor has variables, and ZeroDivisionError if it is the number 0."""
    if second.terms:
        raise NotLinearError("something is divided by a variable")
    whole = second.constants
    if all(part.factor == 0.0 for part in whole):
        raise ZeroDivisionError("the divisor is 0")
    if len(whole) == 1 and not whole[0].parameters and not whole[0].divisors:
        value = whole[0].factor
        terms = [replace(term, coefficient=_over(term.coefficient, value)) for term in first.terms]
        return LinearForm(tuple(terms), tuple(_over(constant, value) for constant in first.constants))
    by = Coefficient(1.0, divisors=(whole,))
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
    found: dict[Term, float] = {}
    for term in terms:
        key = replace(term, coefficient=replace(term.coefficient, factor=1.0))
        found[key] = found.get(key, 0.0) + term.coefficient.factor
    merged = [_scaled(key, Coefficient(factor)) for key, factor in found.items()]
    sums: dict[Coefficient, float] = {}
    for constant in constants:
        like = replace(constant, factor=1.0)
        sums[like] = sums.get(like, 0.0) + constant.factor
    return LinearForm(tuple(merged), tuple(replace(like, factor=factor) for like, factor in sums.items()))
