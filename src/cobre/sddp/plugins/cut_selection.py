"""Cut selections: level 1 (or domination), limited-memory level 1, the recent cuts, and a cap on their number.

Most of them compare the values of cuts at visited states. Cuts of the current iteration always stay active. Tolerances
are scaled costs.
"""

import numpy as np

from cobre.core.arrays import ByteFlags, Flags, Floats, Ints
from cobre.core.case import FormatVersion
from cobre.core.config import (
    CutSelectionConfig,
    DominationSelection,
    DynamicSelection,
    Level1Selection,
    iterations_in_window,
)
from cobre.records import dataclass
from cobre.sddp.cut_pool import BLOCK_STATES, CutsOfStage, LimitedMemoryLevel1State
from cobre.sddp.plugins.interfaces import CutSelection


@dataclass(frozen=True, slots=True)
class Level1(CutSelection):
    """Keep the cuts that are within a tolerance of the highest one at some visited state.

    Dominated cuts are deactivated: those below others by more than the tolerance at every visited state.
    `level1` and `domination` of a configuration are this rule, each with its own tolerance.
    only_oldest: one cut for each state, the oldest of those within the tolerance (limited-memory level 1, `lml1`).
    uses_state_window: states of old iterations are dropped, so nothing can be carried from one choice to the next.
    follows_0_19: new cuts are not spared, and all cuts of the first stage stay active. With
    `only_oldest` and no tolerance, each state then has one owner: the highest cut there, the oldest of equals.
    """

    check_frequency: int
    tolerance: float
    only_oldest: bool = False
    uses_state_window: bool = False
    follows_0_19: bool = False

    @property
    def spares_first_stage(self) -> bool:
        """Whether all cuts of the first stage stay active: only in format 0.19."""
        return self.follows_0_19

    def is_due(self, iteration: int) -> bool:
        """Return whether the iteration is a multiple of `check_frequency`."""
        return iteration % self.check_frequency == 0

    def choose(self, cuts: CutsOfStage, states: Floats, created: Ints, iteration: int, active: ByteFlags) -> ByteFlags:
        """Return cuts within the tolerance of the highest at some visited state, and those of this iteration."""
        if self.only_oldest:
            return self.update(LimitedMemoryLevel1State(self.tolerance), cuts, states, created, iteration)
        return _keep_current_iteration(_near_somewhere(cuts, states, self.tolerance), created, iteration)

    def new_state(self) -> LimitedMemoryLevel1State | None:
        """Return a state only for `only_oldest` over all states: otherwise all values of all cuts would be kept."""
        return LimitedMemoryLevel1State(self.tolerance) if self.only_oldest and not self.uses_state_window else None

    def update(
        self, state: LimitedMemoryLevel1State, cuts: CutsOfStage, states: Floats, created: Ints, iteration: int
    ) -> ByteFlags:
        """Return the oldest cut within the tolerance of the highest at each state, from new cuts and states only."""
        state.update(cuts, states)
        if self.follows_0_19:
            return state.chosen().astype(np.uint8)
        return _keep_current_iteration(state.chosen(), created, iteration)


@dataclass(frozen=True, slots=True)
class Recent(CutSelection):
    """Keep only the cuts of the last `window` iterations, from iteration `start` on."""

    window: int
    start: int

    @property
    def reads_states(self) -> bool:
        """False: only the iteration in which a cut was made matters."""
        return False

    def is_due(self, iteration: int) -> bool:
        """Return whether the next iteration is one in which the window applies."""
        return iteration + 1 >= self.start

    def choose(self, cuts: CutsOfStage, states: Floats, created: Ints, iteration: int, active: ByteFlags) -> ByteFlags:
        """Return cuts of the last `window` iterations: with a window of 3, those of iterations 8 to 10 after 10."""
        return (created > iteration - self.window).astype(np.uint8)


@dataclass(frozen=True, slots=True)
class Capped(CutSelection):
    """Another selection (or none), and then no more than `max_cuts` cuts.

    Those that have not been best at any visited state for the longest time are removed first; of these, those that were
    best the fewest times, and then the oldest. Cuts of the current iteration always stay.

    follows_0_19: all cuts of the first stage stay active; only cuts of this run are counted and removed; a cut that was
    never best is ranked by its iteration.

    Has no `new_state`, even if the inner selection has one: if that is not due, the cap starts from the cuts that
    are active now, which `update` does not get.
    """

    inner: CutSelection | None
    max_cuts: int
    state_window: int | None = None  # latest iterations whose states are used; None: all
    follows_0_19: bool = False

    @property
    def spares_first_stage(self) -> bool:
        """Whether all cuts of the first stage stay active: only in format 0.19."""
        return self.follows_0_19

    def is_due(self, iteration: int) -> bool:
        """Return True: the cap applies in every iteration."""
        return True

    def choose(self, cuts: CutsOfStage, states: Floats, created: Ints, iteration: int, active: ByteFlags) -> ByteFlags:
        """Return the inner choice if it is due, with the cap applied."""
        selected = active
        if self.inner is not None and self.inner.is_due(iteration):
            selected = self.inner.choose(cuts, states, created, iteration, active)
        slots = np.flatnonzero(selected)
        is_own = created[slots] > 0 if self.follows_0_19 else np.ones(len(slots), np.bool_)  # 0: of a stored policy
        is_new = created[slots] == iteration
        limit = max(self.max_cuts, int(is_new.sum()))
        if is_own.sum() <= limit:
            return selected
        seen = iterations_in_window(iteration, self.state_window)
        last_active_iteration, times_active = _activity(cuts.values_at(states)[:, slots], seen)
        if self.follows_0_19:
            last_active_iteration = np.where(
                last_active_iteration < 0, created[slots], last_active_iteration + iteration - seen + 1
            )
        ranking = np.lexsort((-slots, -times_active, -last_active_iteration, ~is_new, ~is_own))
        capped = selected.copy()
        capped[slots[ranking[limit : is_own.sum()]]] = 0
        return capped


def _near_somewhere(cuts: CutsOfStage, states: Floats, tolerance: float) -> Flags:
    """Return by cut whether it is within a tolerance of the best at some state, computed in blocks of states."""
    is_near = np.zeros(len(cuts), bool)
    for start in range(0, len(states), BLOCK_STATES):
        values = cuts.values_at(states[start : start + BLOCK_STATES])
        is_near |= (values >= values.max(axis=1, keepdims=True) - tolerance).any(axis=0)
    return is_near


def _keep_current_iteration(selected: Flags, created: Ints, iteration: int) -> ByteFlags:
    """Return flags for the solver: the selected cuts, and every cut of the current iteration."""
    flags: ByteFlags = (selected | (created == iteration)).astype(np.uint8)
    return flags


def _activity(values: Floats, iterations: int) -> tuple[Ints, Ints]:
    """Return from values (states x cuts) the last iteration in which each cut was best (-1: never), and how often."""
    best = values.argmax(axis=1)
    per_iteration = max(1, len(values) // iterations)
    last = np.full(values.shape[1], -1, np.int32)
    np.maximum.at(last, best, (np.arange(len(values)) // per_iteration).astype(np.int32))
    return last, np.bincount(best, minlength=len(last)).astype(np.int32)


def cut_selection(config: CutSelectionConfig, version: FormatVersion = "0.18") -> CutSelection | None:
    """Return the selection of a configuration; None: all cuts, or those that the solver adds when they are violated.

    version: the format of the case. Format 0.19 has no tolerances.
    """
    inner: CutSelection | None = None
    selection, window, follows_0_19 = config.selection, config.window, version == "0.19"
    if isinstance(selection, Level1Selection):
        only_oldest = follows_0_19 or selection.method == "lml1"
        tolerance = 0.0 if follows_0_19 else selection.tie_tolerance
        inner = Level1(selection.check_frequency, tolerance, only_oldest, window is not None, follows_0_19)
    elif isinstance(selection, DominationSelection):
        inner = Level1(selection.check_frequency, selection.domination_tolerance)
    elif isinstance(selection, DynamicSelection) and selection.candidate_recency is not None:
        # Cuts of the seed window are in every LP, however old a candidate may be.
        inner = Recent(max(selection.candidate_recency, selection.seed_window), selection.start_iteration)
    if config.max_active_per_stage is None:
        return inner
    return Capped(inner, config.max_active_per_stage, window, follows_0_19)
