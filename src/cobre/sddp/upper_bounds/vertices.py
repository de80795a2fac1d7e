"""The states at which an inner approximation has its vertices: visited ones, and corners of a box around all others."""

import itertools

import numpy as np

from cobre.core.arrays import Flags, Floats
from cobre.records import dataclass
from cobre.sddp.cuts.components import stored_components
from cobre.sddp.problem.problem import Problem
from cobre.solver.program import StageProgram

MAX_CORNERS = 256


@dataclass(frozen=True, slots=True)
class Box:
    """The minimum and maximum of every component of a state."""

    low: Floats
    high: Floats

    def around(self, states: Floats) -> "Box":
        """The box that holds some states too."""
        return Box(np.minimum(self.low, states.min(axis=0)), np.maximum(self.high, states.max(axis=0)))


def boxes(problem: Problem, visited: Floats) -> list[Box]:
    """By stage: what may enter it. Lags follow the openings; what a stage decides lies within its columns' limits.

    visited: states that entered the stages (stage, path, component).
    """
    found = [Box(problem.initial_state, problem.initial_state)]
    for stage in range(problem.num_stages - 1):
        after = _after(problem.stages[stage].program, found[-1], problem.openings[stage].realisations.inflow_m3s)
        found.append(_finite(after, visited[stage + 1]).around(visited[stage + 1]))
    return found


def corners(box: Box, relevant: Flags) -> Floats:
    """All corners in the relevant components; where that would be too many, the one with the least of everything."""
    varies = np.flatnonzero(relevant & (box.high > box.low))
    if 2 ** len(varies) > MAX_CORNERS:
        return box.low[None].copy()
    table = np.tile(box.low, (2 ** len(varies), 1))
    for row, choice in enumerate(itertools.product((False, True), repeat=len(varies))):
        table[row, varies] = np.where(choice, box.high[varies], box.low[varies])
    return table


def _after(program: StageProgram, before: Box, noise: Floats) -> Box:
    """The box of states that can leave a stage, from the box of those that enter it."""
    inflow = _inflows(program, before, noise)
    low = _leaving(program, before.low, inflow.low, program.column_lower)
    high = _leaving(program, before.high, inflow.high, program.column_upper)
    return Box(np.minimum(low, high), np.maximum(low, high))


def _leaving(program: StageProgram, before: Floats, inflow: Floats, bound: Floats) -> Floats:
    """One end of the box, from the same end of everything before."""
    decided = (bound * program.column_scale)[program.state_column]
    following: Floats = program.next_states(before[None], decided[None], inflow[None])[0]
    return following


def _inflows(program: StageProgram, before: Box, noise: Floats) -> Box:
    """The minimum and maximum inflow of every plant: autoregression over the box of its lags, and any opening."""
    by_low = program.autoregression * program.lags_of(before.low)
    by_high = program.autoregression * program.lags_of(before.high)
    least = noise.min(axis=0) + np.minimum(by_low, by_high).sum(axis=0)
    most = noise.max(axis=0) + np.maximum(by_low, by_high).sum(axis=0)
    return Box(np.maximum(least, 0.0), np.maximum(most, 0.0)) if program.truncates else Box(least, most)


def _finite(box: Box, visited: Floats) -> Box:
    """The box with infinite ends replaced by those of the visited states."""
    low, high = visited.min(axis=0), visited.max(axis=0)
    return Box(np.where(np.isfinite(box.low), box.low, low), np.where(np.isfinite(box.high), box.high, high))


def state_variables(problem: Problem) -> int:
    """How many components of the state some cost-to-go depends on."""
    programs = [stage.program for stage in problem.stages]
    read = np.any(stored_components(programs, is_priced=False)[:-1], axis=0) if len(programs) > 1 else np.zeros(0, bool)
    return int(read.sum())
