"""A tree of nodes that is solved as a whole: one value function and one realisation for each node.

Nodes are numbered stage by stage and, within a stage, in the order of their ids. The root is node 0. Paths are named by
their leaves, in order.
"""

import numpy as np

from cobre.core.arrays import Floats, Ints
from cobre.records import dataclass
from cobre.solver.batches import Realisations

NO_PARENT = -1  # the parent of the root


@dataclass(frozen=True, slots=True)
class ScenarioTree:
    """Parents and probabilities of nodes. realisations: by stage, one row for each of its nodes."""

    ids: Ints
    first: tuple[int, ...]  # by stage: its first node; at the end: how many nodes there are
    parent: Ints  # -1: of the root
    probability: Floats  # of coming from the parent to the node
    realisations: tuple[Realisations, ...]

    @property
    def num_nodes(self) -> int:
        """How many nodes all stages have together."""
        return self.first[-1]

    def nodes(self, stage: int) -> range:
        """Return the node numbers of a stage."""
        return range(self.first[stage], self.first[stage + 1])

    @property
    def leaves(self) -> range:
        """The nodes of the last stage: one for each path."""
        return self.nodes(len(self.first) - 2)

    def children(self, node: int) -> range:
        """Return the children of a node, which are numbered consecutively."""
        start = int(np.searchsorted(self.parent, node))
        return range(start, int(np.searchsorted(self.parent, node, side="right")))

    def paths(self) -> Ints:
        """Return nodes (path, stage) from the root to every leaf."""
        at = np.array(self.leaves, np.int32)
        found = [at]
        while at[0] != 0:
            at = self.parent[at]
            found.append(at)
        return np.stack(found[::-1], axis=1).astype(np.int32)

    def path_probabilities(self) -> Floats:
        """Return by leaf the probability of the path from the root to it."""
        total: Floats = np.multiply.accumulate(self.probability[self.paths()], axis=1)[:, -1]
        return total
