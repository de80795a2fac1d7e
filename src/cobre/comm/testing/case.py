"""Conformance cases: what they consist of, and their registry."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

from cobre.comm.backends.base import Backend

Params: TypeAlias = Mapping[str, Any]
"""Strings and numbers that select one variation of a case; JSON-serialisable."""

Value: TypeAlias = Any
"""The value that a rank returns; JSON-serialisable. Large arrays are returned as fingerprints."""

CaseFunction: TypeAlias = Callable[[Backend, Params], Value]
Expectation: TypeAlias = Callable[[Params, int], Sequence[Value]]
Judge: TypeAlias = Callable[[Params, Sequence[Value]], str]


class Depth(StrEnum):
    """Share of a grid to run: a small part, or all of it."""

    QUICK = "quick"
    FULL = "full"


Grid: TypeAlias = Callable[[int, Depth], Sequence[Params]]


@dataclass(frozen=True, slots=True)
class Case:
    """Something that every rank does, and how to check the result.

    id: "group/name", as on the command line.
    clauses: the numbers of the general clauses (`cobre.comm.communicator`) that it checks.
    run: called on every rank with the communicator and the parameters.
    judge: given the values of all ranks, returns a description of what is wrong, or an empty string.
    grid: the parameters to run with, for a number of ranks and a depth.
    own_world: the case breaks its world, so that no other case can run in it.
    skip_reason: returns why the case cannot run on this machine, or an empty string.
    """

    id: str
    clauses: tuple[int, ...]
    run: CaseFunction
    judge: Judge
    grid: Grid
    own_world: bool = False
    skip_reason: Callable[[], str] = str


_registry: dict[str, Case] = {}


def single_cell(_size: int, _depth: Depth) -> Sequence[Params]:
    """Return the grid of a case without parameters."""
    return ({},)


def needs_two_ranks(size: int, _depth: Depth) -> Sequence[Params]:
    """Return the grid of a case without parameters that needs more than one rank."""
    return ({},) if size > 1 else ()


def case(
    identifier: str,
    clauses: tuple[int, ...],
    *,
    expect: Expectation | None = None,
    judge: Judge | None = None,
    grid: Grid = single_cell,
    own_world: bool = False,
    skip_reason: Callable[[], str] = str,
) -> Callable[[CaseFunction], CaseFunction]:
    """Register a function as a case, with `expect` (the expected values, by rank) or `judge`."""

    def register(function: CaseFunction) -> CaseFunction:
        judge_values = judge or _equal_to(expect or (lambda _params, size: [True] * size))
        if identifier in _registry:
            raise ValueError(f"there are two cases named {identifier}")
        _registry[identifier] = Case(identifier, clauses, function, judge_values, grid, own_world, skip_reason)
        return function

    return register


def find_case(identifier: str) -> Case:
    """Return the case with this id; raises `KeyError`."""
    return all_cases()[identifier]


def all_cases() -> Mapping[str, Case]:
    """Return every case by its id, in a stable order."""
    from cobre.comm.testing import cases  # noqa: F401, PLC0415 - importing them registers them

    return _registry


def _equal_to(expect: Expectation) -> Judge:
    def judge(params: Params, values: Sequence[Value]) -> str:
        expected = json.loads(json.dumps(expect(params, len(values))))  # as the values, which were sent as JSON
        return "\n".join(
            f"rank {rank}: expected {_abbreviated(expected_value)}, got {_abbreviated(value)}"
            for rank, (expected_value, value) in enumerate(zip(expected, values, strict=True))
            if expected_value != value
        )

    return judge


def _abbreviated(value: Value) -> str:
    text = repr(value)
    return text if len(text) <= 400 else f"{text[:200]} ... {text[-150:]}"
