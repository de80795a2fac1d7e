"""Steps of a preparation, and how slow functions report them.

They call `report` at the beginning of each step and, in loops over stages, with the number of stages done. The
receiver decides how often it shows something.
"""

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import TypeVar

Item = TypeVar("Item")


class PreparationStep(StrEnum):
    """Steps before the first iteration, in the words that users read."""

    READING = "reading the case"
    CHECKING = "checking the case"
    INFLOWS = "estimating inflows and drawing noise"
    STAGES = "fitting production and resolving stages"
    PROGRAMS = "building the LPs of stages"
    LOADING = "loading LPs into the solver"


StepReporter = Callable[[PreparationStep, int, int], None]
"""Takes a step, the number of its items that are done, and their total; 0 for a step without items."""


def no_report(step: PreparationStep, done: int = 0, total: int = 0) -> None:
    """Ignore a step: the default `report`."""


def report_each(items: Iterable[Item], step: PreparationStep, total: int, report: StepReporter) -> Iterator[Item]:
    """Yield the items; report before each how many are done."""
    for done, item in enumerate(items):
        report(step, done, total)
        yield item
