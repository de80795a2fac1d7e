"""Progress of a long preparation, reported step by step.

Slow functions call `report` at the beginning of each step, and in loops over stages with the number of those that are
done. That costs a call; the receiver decides how often it shows something.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import TypeVar

Item = TypeVar("Item")


class Step(StrEnum):
    """Steps before the first iteration, in the words that users read."""

    READING = "reading the case"
    CHECKING = "checking the case"
    INFLOWS = "estimating inflows and drawing noise"
    STAGES = "fitting production and resolving stages"
    PROGRAMS = "building the LPs of stages"
    LOADING = "loading LPs into the solver"


Report = Callable[[Step, int, int], None]
"""Takes a step, how many of its parts are done, and how many there are; 0: it has no parts."""


def no_report(step: Step, done: int = 0, total: int = 0) -> None:
    """Ignore progress: the default `report`."""


def reported(items: Sequence[Item] | Iterable[Item], step: Step, total: int, report: Report) -> Iterator[Item]:
    """Yield the items, and report before each how many are done."""
    for done, item in enumerate(items):
        report(step, done, total)
        yield item
