"""Fault plans and their registry."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from cobre.comm.testing.case import Grid, Params, single_cell
from cobre.comm.testing.faults.ranks import Ranks

PlanFunction: TypeAlias = Callable[[Ranks, Params], Sequence[str]]
"""Starts ranks, injects a fault, and returns descriptions of what violates the contract."""


class NotPermittedError(Exception):
    """The plan needs something that this machine does not allow; the text says what."""


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """A fault to inject.

    clauses: the numbers of the clauses of `cobre.comm.communicator` that it checks.
    grid: its parameters for a number of ranks.
    backend: the only backend that it applies to; empty: all.
    """

    id: str
    clauses: tuple[int, ...]
    run: PlanFunction
    grid: Grid
    backend: str = ""


_registry: dict[str, FaultPlan] = {}


def fault(
    identifier: str, clauses: tuple[int, ...], *, grid: Grid = single_cell, backend: str = ""
) -> Callable[[PlanFunction], PlanFunction]:
    """Register a function as a fault plan, with the id "faults/IDENTIFIER"."""

    def register(function: PlanFunction) -> PlanFunction:
        name = f"faults/{identifier}"
        _registry[name] = FaultPlan(name, clauses, function, grid, backend)
        return function

    return register


def registered() -> Mapping[str, FaultPlan]:
    """Return the plans of all modules that have been imported."""
    return _registry
