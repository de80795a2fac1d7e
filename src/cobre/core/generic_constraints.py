"""Constraints that users write themselves, already parsed: linear expressions over names of the LP."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any, Literal

from numpy.typing import NDArray

from cobre.core.arrays import sum_in_order
from cobre.records import dataclass

ParameterKind = Literal["constant", "per_stage", "seasonal", "per_stage_block", "computed", "expression"]
PenaltyBasis = Literal["per_hour", "per_unit"]


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A number times named parameters, whose values may differ by stage, divided by sums of such products."""

    factor: float = 1.0
    parameters: tuple[str, ...] = ()
    divisors: tuple[tuple["Coefficient", ...], ...] = ()

    def names(self) -> Iterator[str]:
        """Yield all parameters, those of divisors too."""
        yield from self.parameters
        for divisor in self.divisors:
            yield from names_in(divisor)


def names_in(parts: Iterable[Coefficient]) -> Iterator[str]:
    """Yield the parameters of a sum."""
    return (name for part in parts for name in part.names())


def total(parts: Iterable[Coefficient], value_of: Callable[[str], float]) -> float:
    """Return the value of a sum; raises ZeroDivisionError if a divisor is 0."""
    return sum_in_order(product(part, value_of) for part in parts)


def product(coefficient: Coefficient, value_of: Callable[[str], float]) -> float:
    """Return the value of one product; raises ZeroDivisionError with the parameters of a divisor that is 0."""
    value = coefficient.factor
    for name in coefficient.parameters:
        value *= value_of(name)
    for divisor in coefficient.divisors:
        by = total(divisor, value_of)
        if by == 0.0:
            raise ZeroDivisionError(", ".join(f"@{name}" for name in dict.fromkeys(names_in(divisor))))
        value /= by
    return value


@dataclass(frozen=True, slots=True)
class Parameter:
    """A named number. `values`: keyed by stage, season or (stage, block), by its kind; a constant has the key None.

    expression: the sum that a parameter of that kind stands for.
    """

    id: int
    name: str
    kind: ParameterKind
    values: Mapping[Any, float] = field(default_factory=dict)
    computed_tag: str | None = None
    hydro_id: int | None = None
    expression: tuple[Coefficient, ...] = ()


@dataclass(frozen=True, slots=True)
class Term:
    """`coefficient * variable(entity_id[, block][, bus=bus_id])`; `block_id` None: the block of the row."""

    coefficient: Coefficient
    variable: str
    entity_id: int
    block_id: int | None = None
    bus_id: int | None = None


@dataclass(frozen=True, slots=True)
class GenericConstraint:
    """`terms + constant (<=, >=, ==) bound`; without a relation the bounds come from the table.

    A relation sets its side, to which a number of the table is added; the other side is the table's. slack_basis:
    whether the penalty of a violation counts by the hour, or once.
    """

    id: int
    name: str
    description: str
    terms: tuple[Term, ...]
    constant: tuple[Coefficient, ...] = ()
    relation: Literal["<=", ">=", "=="] | None = None
    bound: tuple[Coefficient, ...] = ()
    slack_enabled: bool = False
    slack_penalty: float | None = None
    slack_basis: PenaltyBasis = "per_hour"


@dataclass(frozen=True, slots=True)
class GenericConstraints:
    """All generic constraints, in order of id, with their parameters by name and the table of bounds."""

    constraints: tuple[GenericConstraint, ...] = ()
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    bounds: Mapping[str, NDArray[Any]] | None = None
