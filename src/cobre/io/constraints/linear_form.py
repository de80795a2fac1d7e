"""Linear forms: sums of terms and constants, to which expressions evaluate."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from cobre.core.generic_constraints import Coefficient, Term
from cobre.errors import CobreError

# Products of named expressions grow quickly; limits keep a mistake from exhausting memory.
MAX_PARAMETERS = 8
MAX_PARTS = 20_000


class NotLinearError(CobreError, ValueError):
    """A product of two variables, which a linear program cannot hold."""


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


def _scaled(term: Term, by: Coefficient) -> Term:
    return replace(term, coefficient=_product(term.coefficient, by))


def _product(one: Coefficient, other: Coefficient) -> Coefficient:
    names = tuple(sorted((*one.parameters, *other.parameters)))
    if len(names) > MAX_PARAMETERS:
        raise NotLinearError(f"more than {MAX_PARAMETERS} parameters are multiplied")
    return Coefficient(one.factor * other.factor, names)


def _merged(terms: Iterable[Term], constants: Iterable[Coefficient]) -> LinearForm:
    """Merge like terms and like constants, in order of first appearance."""
    found: dict[Term, float] = {}
    for term in terms:
        key = replace(term, coefficient=Coefficient(1.0, term.coefficient.parameters))
        found[key] = found.get(key, 0.0) + term.coefficient.factor
    merged = [_scaled(key, Coefficient(factor)) for key, factor in found.items()]
    sums: dict[tuple[str, ...], float] = {}
    for constant in constants:
        sums[constant.parameters] = sums.get(constant.parameters, 0.0) + constant.factor
    return LinearForm(tuple(merged), tuple(Coefficient(factor, names) for names, factor in sums.items()))
