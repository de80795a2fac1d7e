"""Cut selection at the end of an iteration: applies the plugin to the pool, stage by stage."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cobre.comm import Communicator
from cobre.sddp.cuts.pool import CutPool
from cobre.sddp.plugins.interfaces import CutSelection
from cobre.sddp.ranks import WorkSplit
from cobre.sddp.training.visited_states import VisitedStates


class SelectionStates:
    """The `CutSelection.new_state` of each stage between calls; discarded when the slots of its cuts have changed."""

    def __init__(self) -> None:
        self._stages: dict[int, tuple[object, NDArray[np.intp]]] = {}

    def of(self, stage: int, selection: CutSelection, slots: NDArray[np.intp]) -> object | None:
        """Return the selection state of a stage whose cuts are in these slots; a new one where they have changed."""
        found, known = self._stages.get(stage, (None, slots[:0]))
        if found is None or not np.array_equal(known, slots[: len(known)]):
            found = selection.new_state()
        if found is not None:
            self._stages[stage] = found, slots
        return found


def apply_selection(
    comm: Communicator,
    pool: CutPool,
    selection: CutSelection,
    visited: VisitedStates,
    iteration: int,
    kept: SelectionStates,
    ask: Callable[[], object] | None = None,
) -> int:
    """Choose the active cuts of every stage; each rank handles some stages, and the flags are gathered.

    ask: called before each stage; what it raises ends the selection. Returns the bytes exchanged.
    """
    split = WorkSplit(pool.num_stages - 1, comm.size)
    own = split.block(comm.rank)
    for stage in own:
        if ask is not None:
            ask()
        if stage == 0 and selection.spares_first_stage:
            continue
        _select(pool, selection, visited, iteration, kept, stage)
    if comm.size == 1:
        return 0
    table = np.empty((split.total, pool.count), np.uint8)
    chosen = np.ascontiguousarray(pool.active[own.start : own.stop])
    counts = [count * pool.count for count in split.counts]
    comm.allgatherv(chosen.reshape(-1), table.reshape(-1), counts, label="active cuts")
    pool.active[: split.total] = table
    return table.nbytes


def _select(
    pool: CutPool, selection: CutSelection, visited: VisitedStates, iteration: int, kept: SelectionStates, stage: int
) -> None:
    cuts = pool.written_cuts(stage)  # a stored policy may have fewer cuts in some stages than in others
    if not len(slots := cuts.slots):
        return
    states = visited.recent_states(stage + 1, pool.components(stage))
    created, now, known = pool.created[slots], pool.active[stage, slots], kept.of(stage, selection, slots)
    pool.active[stage, slots] = (
        selection.choose(cuts, states, created, iteration, now)
        if known is None
        else selection.update(known, cuts, states, created, iteration)
    )
