"""Cut selection at the end of an iteration: the plugin chooses, the pool remembers."""

import numpy as np

from cobre.sddp.cuts.pool import CutPool
from cobre.sddp.plugins.interfaces import CutSelection
from cobre.solver.program import Floats


def apply_selection(pool: CutPool, selection: CutSelection, visited: list[Floats], iteration: int) -> None:
    """Let the plugin look at every stage's cuts. `visited`: by iteration, all stages' trial points side by side."""
    for stage in range(pool.num_stages - 1):
        columns = (stage + 1) * pool.dimension + pool.components(stage)
        states = np.concatenate([np.zeros((0, len(columns))), *(points[:, columns] for points in visited)])
        cuts = pool.written_cuts(stage)  # a stored policy may have fewer cuts in some stages than in others
        if len(slots := cuts.slots):
            now = pool.in_play[stage, slots]
            pool.in_play[stage, slots] = selection.choose(cuts, states, pool.born[slots], iteration, now)
