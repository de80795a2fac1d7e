"""The phases of a run in which LPs are solved, and what the solver did in each."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

import numpy as np

from cobre.core.arrays import Floats
from cobre.solver.statistics import FIELDS, SolveStatistics


class Phase(StrEnum):
    """What LPs are solved for. `simulation` is also what a stopping rule asks for during training."""

    FORWARD = "forward"
    BACKWARD = "backward"
    LOWER_BOUND = "lower_bound"
    SIMULATION = "simulation"


PhaseStatistics = Mapping[Phase, SolveStatistics]  # a phase without a solve may be missing
WIDTH = len(Phase) * len(FIELDS)


def added(parts: Iterable[PhaseStatistics]) -> dict[Phase, SolveStatistics]:
    """The statistics of several parts of a run, added phase by phase."""
    total = {phase: SolveStatistics() for phase in Phase}
    for part in parts:
        for phase, statistics in part.items():
            total[phase] += statistics
    return total


def to_numbers(statistics: PhaseStatistics) -> list[float]:
    """`WIDTH` numbers, phase by phase: what ranks exchange and checkpoints keep."""
    return [number for phase in Phase for number in statistics.get(phase, SolveStatistics()).numbers]


def from_numbers(numbers: Floats) -> dict[Phase, SolveStatistics]:
    """Statistics by phase, from the numbers that `to_numbers` made."""
    rows = np.asarray(numbers).reshape(len(Phase), len(FIELDS)).tolist()
    return {phase: SolveStatistics.from_numbers(row) for phase, row in zip(Phase, rows, strict=True)}


def as_dict(statistics: PhaseStatistics) -> dict[str, Any]:
    """For a program that reads: the phases in which something was solved."""
    return {str(phase): part.as_dict() for phase, part in statistics.items() if part.solves}
