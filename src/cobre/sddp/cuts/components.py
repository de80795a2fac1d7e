"""Which entries of the state the cuts of a stage can depend on; the others are zero in every cut and are not stored."""

from collections.abc import Sequence

import numpy as np

from cobre.core.arrays import Flags
from cobre.solver.program import StageProgram


def stored_components(programs: Sequence[StageProgram], *, is_priced: bool) -> list[Flags]:
    """By stage, for the state that leaves it. is_priced: cuts of another study follow the last stage.

    A lag matters where the next stage's inflow depends on it, or where it matters as the lag after it one stage later.
    What a stage decides or passes on always matters.
    """
    needed = [np.full(programs[-1].dimension, is_priced)]
    for program in reversed(programs[1:]):
        needed.append(_read_by(program, needed[-1]))
    return needed[::-1]


def _read_by(program: StageProgram, later: Flags) -> Flags:
    """The entries of the incoming state that a stage reads, when its own cuts depend on `later`."""
    read = np.ones(program.dimension, bool)
    first = program.num_decided
    lags = program.autoregression != 0.0
    leaving = later[first : first + lags.size].reshape(lags.shape)
    if len(program.lag_from):
        for lag in np.flatnonzero(program.lag_from >= 0):
            lags[program.lag_from[lag]] |= leaving[lag]
    else:
        lags[:-1] |= leaving[1:]
    read[first : first + lags.size] = lags.reshape(-1)
    return read
