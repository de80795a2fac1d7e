"""Scenarios that are paths of a tree."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from cobre.core.arrays import Floats, Indices, Ints
from cobre.sddp.tree import ScenarioTree
from cobre.solver.batches import Batch


def chosen_paths(tree: ScenarioTree, paths: Ints | None, scenarios: range) -> Ints:
    """The nodes (scenario, stage) of scenarios: as drawn, or the paths of the tree one by one."""
    numbers = np.array(scenarios, np.int64)
    found: Ints = tree.paths()[numbers if paths is None else paths[numbers]]
    return found


@dataclass
class JoinedBatch:
    """The parts of a batch that simulations read, put together from several batches."""

    objective: Floats
    future_cost: Floats
    gradient: Floats
    decided: Floats
    inflow: Floats
    primal: Floats
    dual: Floats
    basis_status: NDArray[np.int8]
    basis_cuts: Ints
    iterations: Ints


def join_batches(parts: Sequence[tuple[Indices, Batch]], count: int) -> JoinedBatch:
    """One batch of `count` solves; each part says which of them are its own."""
    joined = {}
    for field in fields(JoinedBatch):
        first = getattr(parts[0][1], field.name)
        table = np.zeros((count if len(first) else 0, *first.shape[1:]), first.dtype)
        for at, batch in parts if len(first) else ():
            table[at] = getattr(batch, field.name)
        joined[field.name] = table
    return JoinedBatch(**joined)
