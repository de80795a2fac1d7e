"""Cut selection at the end of an iteration: the plugin chooses, the pool remembers."""

import numpy as np
from numpy.typing import NDArray

from cobre.core.arrays import Floats
from cobre.sddp.cuts.oldest_best import OldestBest
from cobre.sddp.cuts.pool import CutPool
from cobre.sddp.plugins.interfaces import CutSelection


class SelectionMemory:
    """What a selection knows of each stage from the last time; of no use once other cuts took the place of those."""

    def __init__(self) -> None:
        self._stages: dict[int, tuple[OldestBest, NDArray[np.intp]]] = {}

    def of(self, stage: int, selection: CutSelection, slots: NDArray[np.intp]) -> OldestBest | None:
        """Of a stage whose cuts lie in these slots."""
        found, known = self._stages.get(stage, (None, slots[:0]))
        if found is None or not np.array_equal(known, slots[: len(known)]):
            found = selection.new_memory()
        if found is not None:
            self._stages[stage] = found, slots
        return found


def apply_selection(
    pool: CutPool, selection: CutSelection, visited: list[Floats], iteration: int, memory: SelectionMemory
) -> None:
    """Let the plugin look at every stage's cuts. `visited`: by iteration, all stages' trial points side by side."""
    for stage in range(pool.num_stages - 1):
        cuts = pool.written_cuts(stage)  # a stored policy may have fewer cuts in some stages than in others
        if not len(slots := cuts.slots):
            continue
        columns = (stage + 1) * pool.dimension + pool.components(stage)
        states = np.concatenate([np.zeros((0, len(columns))), *(points[:, columns] for points in visited)])
        born, now, known = pool.born[slots], pool.in_play[stage, slots], memory.of(stage, selection, slots)
        pool.in_play[stage, slots] = (
            selection.choose(cuts, states, born, iteration, now)
            if known is None
            else selection.choose_again(known, cuts, states, born, iteration)
        )
