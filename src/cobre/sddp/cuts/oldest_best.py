"""Which cut is the oldest of the best at each visited state, kept up to date as cuts and states come.

Cuts and states only ever come, and a cut's value at a state never changes. So what is known of old states and old cuts
stays true: an iteration looks at its own states with all cuts, and at all states with its own cuts.
"""

import numpy as np

from cobre.core.arrays import Flags, Floats, Indices
from cobre.sddp.cuts.cuts_of_stage import CutsOfStage

BLOCK_STATES = 512  # whose values are in memory at once


class OldestBest:
    """For each state, the cuts that are higher there than all older ones and within a tolerance of the best.

    The oldest cut within the tolerance of the best is always one of them: an older cut that is at least as high would
    be within the tolerance, too. The best only rises, so that a cut that falls out never comes back.
    """

    def __init__(self, tolerance: float) -> None:
        self._tolerance = tolerance
        self._cuts = 0
        self._best = np.zeros(0)  # by state
        self._state: Indices = np.zeros(0, np.int64)  # of each record, with its cut and value
        self._cut: Indices = np.zeros(0, np.int64)
        self._value = np.zeros(0)

    def update(self, cuts: CutsOfStage, states: Floats) -> None:
        """Look at what is new; cuts and states begin with those of the last time."""
        known = len(self._best)
        self._best = np.concatenate([self._best, np.full(len(states) - known, -np.inf)])
        self._look(cuts, states, range(known), self._cuts)
        self._look(cuts, states, range(known, len(states)), 0)
        self._cuts = len(cuts)
        stays = self._value >= self._best[self._state] - self._tolerance
        self._state, self._cut, self._value = self._state[stays], self._cut[stays], self._value[stays]

    def _look(self, cuts: CutsOfStage, states: Floats, which: range, first: int) -> None:
        """Find records among the cuts from `first` on, at some states."""
        if first == len(cuts):
            return
        for start in range(which.start, which.stop, BLOCK_STATES):
            stop = min(start + BLOCK_STATES, which.stop)
            values = cuts.values_from(states[start:stop], first)
            before = np.concatenate([self._best[start:stop, None], values[:, :-1]], axis=1)
            state, cut = np.nonzero(values > np.maximum.accumulate(before, axis=1))
            self._state = np.concatenate([self._state, state + start])
            self._cut = np.concatenate([self._cut, cut + first])
            self._value = np.concatenate([self._value, values[state, cut]])
            self._best[start:stop] = np.maximum(self._best[start:stop], values.max(axis=1))

    def chosen(self) -> Flags:
        """By cut: whether it is the oldest of the best somewhere."""
        oldest = np.full(len(self._best), self._cuts, np.int64)
        np.minimum.at(oldest, self._state, self._cut)
        kept = np.zeros(self._cuts, bool)
        kept[oldest] = True
        return kept
