"""Which cuts stay in play: level 1, limited-memory level 1, domination, and a cap on their number.

All of them look at the values of the cuts at the states that were visited. Cuts of the present iteration always stay.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.core.config import CutSelectionConfig
from cobre.sddp.cuts.pool import CutSet
from cobre.sddp.plugins.interfaces import CutSelection
from cobre.solver.program import Floats, Ints

Flags = NDArray[np.uint8]


def values_at(cuts: CutSet, states: Floats) -> Floats:
    """States x cuts; added component by component, in order."""
    values = np.broadcast_to(cuts.intercepts, (len(states), len(cuts.intercepts))).copy()
    for component in range(states.shape[1]):
        values += states[:, component, None] * cuts.coefficients[None, :, component]
    return values


@dataclass(frozen=True, slots=True)
class Level1(CutSelection):
    """Keep cuts within a tolerance of the best one at some visited state; `only_oldest`: one for each state."""

    check_frequency: int
    tolerance: float
    only_oldest: bool = False

    def is_due(self, iteration: int) -> bool:
        """Every few iterations."""
        return iteration % self.check_frequency == 0

    def choose(self, cuts: CutSet, states: Floats, born: Ints, iteration: int) -> Flags:
        """Best or near best somewhere."""
        values = values_at(cuts, states)
        best = values.max(axis=1, keepdims=True)
        near = values >= best - self.tolerance * np.maximum(1.0, np.abs(best))
        if self.only_oldest:
            kept = np.zeros(values.shape[1], bool)
            kept[np.argmax(near, axis=1)] = True  # slots are in order of birth
        else:
            kept = near.any(axis=0)
        stays: Flags = (kept | (born == iteration)).astype(np.uint8)
        return stays


@dataclass(frozen=True, slots=True)
class Domination(CutSelection):
    """Drop cuts that lie below the others by more than a tolerance at every visited state."""

    check_frequency: int
    tolerance: float

    def is_due(self, iteration: int) -> bool:
        """Every few iterations."""
        return iteration % self.check_frequency == 0

    def choose(self, cuts: CutSet, states: Floats, born: Ints, iteration: int) -> Flags:
        """Not dominated everywhere."""
        values = values_at(cuts, states)
        kept = (values >= values.max(axis=1, keepdims=True) - self.tolerance).any(axis=0)
        stays: Flags = (kept | (born == iteration)).astype(np.uint8)
        return stays


@dataclass(frozen=True, slots=True)
class Capped(CutSelection):
    """Another selection (or none), and then no more than `most` cuts: those that are best at the most states stay."""

    inner: CutSelection | None
    most: int

    def is_due(self, iteration: int) -> bool:
        """Every iteration: a cap holds always."""
        return True

    def choose(self, cuts: CutSet, states: Floats, born: Ints, iteration: int) -> Flags:
        """The inner choice first, then by wins, then by age, the youngest first."""
        kept = np.ones(len(cuts.intercepts), np.uint8)
        if self.inner is not None and self.inner.is_due(iteration):
            kept = self.inner.choose(cuts, states, born, iteration)
        if int(kept.sum()) <= self.most:
            return kept
        wins = np.bincount(values_at(cuts, states).argmax(axis=1), minlength=len(kept))
        slots = np.flatnonzero(kept)
        ranking = np.lexsort((-slots, -wins[slots], -(born[slots] == iteration).astype(int)))
        chosen = np.zeros_like(kept)
        chosen[slots[ranking[: self.most]]] = 1
        return chosen


def cut_selection(config: CutSelectionConfig) -> CutSelection | None:
    """The selection of a configuration. `dynamic` is what the solver does anyway: nothing is dropped."""
    inner: CutSelection | None = None
    if config.method in ("level1", "lml1"):
        inner = Level1(config.check_frequency, config.tie_tolerance, config.method == "lml1")
    elif config.method == "domination":
        inner = Domination(config.check_frequency, config.domination_tolerance)
    return inner if config.max_active_per_stage is None else Capped(inner, config.max_active_per_stage)
