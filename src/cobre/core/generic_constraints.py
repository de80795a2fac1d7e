"""Constraints that users write themselves, already parsed: linear expressions over names of the LP."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from numpy.typing import NDArray

ParameterKind = Literal["constant", "per_stage", "seasonal", "per_stage_block", "computed"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A named number. `values`: keyed by stage, season or (stage, block), by its kind; a constant has the key None."""

    id: int
    name: str
    kind: ParameterKind
    values: Mapping[Any, float] = field(default_factory=dict)
    computed_tag: str | None = None
    hydro_id: int | None = None


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A coefficient: a number times named parameters, whose values may differ by stage."""

    factor: float = 1.0
    parameters: tuple[str, ...] = ()


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
    """`terms + constant (<=, >=, ==) bound`; without a relation the bounds come from the table."""

    id: int
    name: str
    description: str
    terms: tuple[Term, ...]
    constant: tuple[Coefficient, ...] = ()
    relation: Literal["<=", ">=", "=="] | None = None
    bound: tuple[Coefficient, ...] = ()
    slack_enabled: bool = False
    slack_penalty: float | None = None


@dataclass(frozen=True, slots=True)
class GenericConstraints:
    """All generic constraints, in order of id, with their parameters by name and the table of bounds."""

    constraints: tuple[GenericConstraint, ...] = ()
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    bounds: Mapping[str, NDArray[Any]] | None = None
