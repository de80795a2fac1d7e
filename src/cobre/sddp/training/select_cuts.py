"""Cut selection at the end of an iteration: the plugin chooses the active cuts, stage by stage."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cobre.comm import Communicator
from cobre.sddp.cut_pool import CutPool
from cobre.sddp.plugins.interfaces import CutSelection
from cobre.sddp.ranks import WorkSplit
from cobre.sddp.training.visited_states import VisitedStates


class SelectionStates:
    """The `CutSelection.new_state` of each stage between calls; discarded when the slots of its cuts have changed."""

    def __init__(self) -> None:
        self._stages: dict[int, tuple[object, NDArray[np.intp]]] = {}

    def of(self, stage: int, selection: CutSelection, slots: NDArray[np.intp]) -> object | None:
        """Return the selection state of a stage whose cuts are in these slots; a new one if they have changed."""
        state, last_slots = self._stages.get(stage, (None, slots[:0]))
        if state is None or not np.array_equal(last_slots, slots[: len(last_slots)]):
            state = selection.new_state()
        if state is not None:
            self._stages[stage] = state, slots
        return state


def apply_selection(
    comm: Communicator,
    pool: CutPool,
    selection: CutSelection,
    visited: VisitedStates,
    iteration: int,
    selection_states: SelectionStates,
    poll: Callable[[], object] | None = None,
) -> int:
    """Choose the active cuts of every stage; each rank handles some stages, and the flags are gathered.

    poll: called before each stage; an exception of it ends the selection. Returns the bytes exchanged.
    """
    split = WorkSplit(pool.num_stages - 1, comm.size)
    own = split.block(comm.rank)
    for stage in own:
        if poll is not None:
            poll()
        if stage > 0 or not selection.spares_first_stage:
            _select(pool, selection, visited, iteration, selection_states, stage)
    if comm.size == 1:
        return 0
    table = np.empty((split.total, pool.count), np.uint8)
    own_flags = np.ascontiguousarray(pool.active[own.start : own.stop])
    counts = [count * pool.count for count in split.counts]
    comm.allgatherv(own_flags.reshape(-1), table.reshape(-1), counts, label="active cuts")
    pool.active[: split.total] = table
    return table.nbytes


def _select(
    pool: CutPool,
    selection: CutSelection,
    visited: VisitedStates,
    iteration: int,
    selection_states: SelectionStates,
    stage: int,
) -> None:
    cuts = pool.written_cuts(stage)  # a stored policy may have fewer cuts in some stages than in others
    if not len(slots := cuts.slots):
        return
    states = visited.recent_states(stage + 1, pool.components(stage))
    created, active, state = (
        pool.created[slots],
        pool.active[stage, slots],
        selection_states.of(stage, selection, slots),
    )
    pool.active[stage, slots] = (
        selection.choose(cuts, states, created, iteration, active)
        if state is None
        else selection.update(state, cuts, states, created, iteration)
    )
