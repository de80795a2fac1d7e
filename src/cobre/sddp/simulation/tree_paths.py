"""Scenarios that are paths of a tree."""

from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from cobre.core.arrays import Floats, Indices, Ints
from cobre.records import dataclass
from cobre.sddp.tree.scenario_tree import ScenarioTree
from cobre.solver.batches import Batch, SharedBatch
from cobre.solver.program import StageProgram


def chosen_paths(tree: ScenarioTree, paths: Ints | None, scenarios: Sequence[int] | Indices) -> Ints:
    """The nodes (scenario, stage) of scenarios: as drawn, or the paths of the tree one by one."""
    numbers = np.array(scenarios, np.int64)
    found: Ints = tree.paths()[numbers if paths is None else paths[numbers]]
    return found


@dataclass(slots=True)
class JoinedBatch:
    """The parts of a batch that simulations read, put together from several batches."""

    objective: Floats
    future_cost: Floats
    decided: Floats
    inflow: Floats
    primal: Floats
    dual: Floats

    @classmethod
    def new(cls, program: StageProgram, count: int) -> "JoinedBatch":
        """Room for `count` solves of a stage."""
        widths = (program.num_decided, program.num_hydros, len(program.cost), len(program.row_lower))
        return cls(np.zeros(count), np.zeros(count), *(np.zeros((count, width)) for width in widths))

    @classmethod
    def of(cls, shared: SharedBatch) -> "JoinedBatch":
        """Room that a team shares."""
        tables = [getattr(shared, field.name) for field in fields(cls)]
        return cls(*tables)

    def put(self, at: Indices, batch: Batch) -> None:
        """Take over some solves."""
        for field in fields(self):
            getattr(self, field.name)[at] = getattr(batch, field.name)
