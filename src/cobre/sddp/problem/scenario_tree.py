"""A tree of nodes that is solved as a whole, built from a case: one value function and one realisation for each node.

Nodes are numbered stage by stage and, within a stage, in the order of their ids. The root is node 0. Paths are named by
their leaves, in order.
"""

from itertools import pairwise

import numpy as np

from cobre.core.arrays import Floats, Ints
from cobre.core.case import Case
from cobre.core.config import NOISE_CLASSES
from cobre.core.temporal import Node, PolicyGraph, Transition
from cobre.records import dataclass
from cobre.sddp.problem.openings import realise
from cobre.solver.batches import Realisations
from cobre.stochastic.external import external_library
from cobre.stochastic.model import NoiseModel

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
        """Number of nodes of all stages together."""
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
        levels = [at]
        while at[0] != 0:
            at = self.parent[at]
            levels.append(at)
        return np.stack(levels[::-1], axis=1).astype(np.int32)

    def path_probabilities(self) -> Floats:
        """Return by leaf the probability of the path from the root to it."""
        total: Floats = np.multiply.accumulate(self.probability[self.paths()], axis=1)[:, -1]
        return total


def build_tree(case: Case, noise: NoiseModel) -> ScenarioTree:
    """Return the tree of a case; without nodes it is the chain of stages."""
    graph, stages = case.horizon.policy_graph, [stage.id for stage in case.horizon.stages]
    if not graph.nodes:
        edges = tuple(Transition(a, b, 1.0) for a, b in pairwise(stages))
        graph = PolicyGraph("finite_horizon", 0.0, edges, tuple(Node(stage, stage) for stage in stages))
    source = {edge.target_id: edge for edge in graph.transitions}
    nodes = _in_order(graph, stages, {edge.target_id: edge.source_id for edge in graph.transitions})
    index_of = {node.id: index for index, node in enumerate(nodes)}
    probability = np.array([source[node.id].probability if node.id in source else 1.0 for node in nodes])
    parent = np.array(
        [index_of[source[node.id].source_id] if node.id in source else NO_PARENT for node in nodes], np.int32
    )
    counts = [sum(node.stage_id == stage for node in nodes) for stage in stages]
    first = tuple(int(count) for count in np.cumsum([0, *counts]))
    realisations = _NodeRealisations(case, noise, nodes, parent)
    outcomes = tuple(realisations.at(stage, range(first[stage], first[stage + 1])) for stage in range(len(stages)))
    return ScenarioTree(
        np.array([node.id for node in nodes], np.int32), first, parent, _normalised(probability, parent), outcomes
    )


def _in_order(graph: PolicyGraph, stages: list[int], parent_of: dict[int, int]) -> list[Node]:
    """Sort nodes by stage, children of one parent side by side, and then by id."""
    nodes: list[Node] = []
    index_of: dict[int, int] = {}
    for stage in stages:
        here = [node for node in graph.nodes if node.stage_id == stage]
        here.sort(key=lambda node: (index_of.get(parent_of.get(node.id, NO_PARENT), NO_PARENT), node.id))
        nodes += here
        index_of = {node.id: index for index, node in enumerate(nodes)}
    return nodes


def _normalised(given: Floats, parent: Ints) -> Floats:
    """Scale probabilities of a parent's children so that they add up to one."""
    total = np.zeros(len(given) + 1)
    for node, above in enumerate(parent.tolist()):
        total[above] += given[node]
    return given / total[parent]


class _NodeRealisations:
    """Realisations at the nodes: a column of external scenarios, or the stage's only opening."""

    def __init__(self, case: Case, noise: NoiseModel, nodes: list[Node], parent: Ints) -> None:
        self._noise, self._nodes, self._parent = noise, nodes, parent
        source = case.config.training.scenario_source
        self._libraries = {
            name: external_library(case, name) for name in NOISE_CLASSES if source.scheme(name) == "external"
        }
        self._ids = {
            "inflow": [hydro.id for hydro in case.system.hydros],
            "load": [bus.id for bus in case.system.buses],
            "ncs": [one.id for one in case.system.non_controllable_sources],
        }
        self._slots = np.zeros((len(nodes), *noise.initial_lags.shape))

    def at(self, stage: int, nodes: range) -> Realisations:
        """Return realisations of all nodes of a stage; those of their parents must be known."""
        noise = self._noise
        opening = realise(noise, stage, noise.openings[stage])
        rows = [
            np.repeat(table[:1], len(nodes), axis=0)
            for table in (opening.inflow_m3s, opening.load_mw, opening.availability)
        ]
        for table, name in zip(rows, NOISE_CLASSES, strict=True):
            self._fill(table, name, stage, nodes)
        lags = np.array([self._lags(node) for node in nodes])
        from_lags = (noise.ar_coefficients[stage] * lags).sum(axis=1)
        if "inflow" in self._libraries:
            rows[0] = rows[0] - from_lags  # the LP adds what follows from the lags
        for row, node in enumerate(nodes):
            self._slots[node] = noise.next_lags(stage, lags[row], rows[0][row] + from_lags[row])
        return Realisations(
            *(np.ascontiguousarray(table) for table in (rows[0], np.maximum(rows[1], 0.0), np.clip(rows[2], 0.0, 1.0)))
        )

    def _fill(self, table: Floats, name: str, stage: int, nodes: range) -> None:
        library = self._libraries.get(name)
        if library is None:
            return
        columns = [self._ids[name].index(id_) for id_ in library.entity_ids]
        for row, node in enumerate(nodes):
            table[row, columns] = library.values[stage, self._nodes[node].scenario_id or 0]

    def _lags(self, node: int) -> Floats:
        above = int(self._parent[node])
        return self._noise.initial_lags if above == NO_PARENT else self._slots[above]
