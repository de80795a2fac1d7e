"""What a fault plan is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from cobre.comm.testing.case import Grid, Params, once
from cobre.comm.testing.faults.ranks import Ranks

PlanFunction: TypeAlias = Callable[[Ranks, Params], Sequence[str]]
"""Starts ranks, makes trouble, and says what went otherwise than the contract says."""


class NotPermittedError(Exception):
    """The plan needs something that this machine does not allow; the text says what."""


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """Bad luck of one kind.

    clauses: of `cobre.comm.communicator`.
    grid: its parameters for a number of ranks.
    backend: the only backend that it makes sense for; empty: all.
    """

    id: str
    clauses: tuple[int, ...]
    run: PlanFunction
    grid: Grid
    backend: str = ""


_registry: dict[str, FaultPlan] = {}


def fault(
    identifier: str, clauses: tuple[int, ...], *, grid: Grid = once, backend: str = ""
) -> Callable[[PlanFunction], PlanFunction]:
    """Register a function as a plan."""

    def register(function: PlanFunction) -> PlanFunction:
        name = f"faults/{identifier}"
        _registry[name] = FaultPlan(name, clauses, function, grid, backend)
        return function

    return register


def registered() -> Mapping[str, FaultPlan]:
    """The plans of all modules that have been imported."""
    return _registry
