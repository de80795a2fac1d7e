"""Scenarios through the stages under a fixed policy."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cobre.core.arrays import Floats, Ints
from cobre.sddp.cuts.pool import CutPool
from cobre.sddp.lp.failure import FailedSolve
from cobre.sddp.plugins.interfaces import Sampler
from cobre.sddp.problem import Problem
from cobre.sddp.simulation.tree_paths import JoinedBatch, chosen_paths, join_batches
from cobre.sddp.stage_walk import StageVisit, sampled, walk_stages
from cobre.sddp.tree import ScenarioTree
from cobre.solver.batches import Bases, Batch, Chains, Keep, LpSolver, Realisations, SolveFailedError

SIMULATION_ITERATION = 0  # scenarios are drawn as if they belonged to an iteration before the first


@dataclass(frozen=True, slots=True)
class Walker:
    """A policy that is followed; all cuts count, also those that selection put aside."""

    problem: Problem
    solver: LpSolver
    pool: CutPool
    sampler: Sampler
    failure_folder: Path | None
    paths: Ints | None = None  # of a tree: which of its paths each scenario follows; None: its own number

    def walk(self, scenarios: range, starts: list[Bases], keep: Keep) -> Iterator[StageVisit[Batch | JoinedBatch]]:
        """Stage after stage, all scenarios side by side."""
        tree = self.problem.tree
        if tree is not None:
            return self._walk_tree(tree, scenarios, keep)

        def noise(stage: int) -> tuple[Realisations, Ints]:
            return sampled(self.problem, self.sampler, SIMULATION_ITERATION, scenarios, stage)

        def solve(stage: int, states: Floats, realisations: Realisations, items: Ints) -> Batch:
            return self._solve(stage, scenarios, Chains.single(states, items, starts[stage]), realisations, keep)

        return walk_stages(self.problem, len(scenarios), noise, solve)

    def _walk_tree(self, tree: ScenarioTree, scenarios: range, keep: Keep) -> Iterator[StageVisit[Batch | JoinedBatch]]:
        """Scenarios of a node together, each from nothing: their results do not depend on who else is there."""
        nodes = chosen_paths(tree, self.paths, scenarios)

        def noise(stage: int) -> tuple[Realisations, Ints]:
            return tree.realisations[stage], nodes[:, stage] - tree.first[stage]

        def solve(stage: int, states: Floats, realisations: Realisations, items: Ints) -> JoinedBatch:
            nothing, parts = Bases.none(self.problem.stages[stage].program), []
            for node in np.unique(nodes[:, stage]).tolist():
                at = np.flatnonzero(nodes[:, stage] == node)
                chains, names = Chains.single(states[at], items[at], nothing), [scenarios[row] for row in at]
                parts.append((at, self._solve(stage, names, chains, realisations, keep, node)))
            return join_batches(parts, len(states))

        return walk_stages(self.problem, len(scenarios), noise, solve)

    def find_starts(self) -> list[Bases]:
        """The bases of scenario 0, solved from nothing: where all scenarios start, stage by stage.

        Every rank finds them by itself, so that all begin alike whatever their share of the scenarios. What training
        left behind is not used: a policy from a file must give the same results as one from memory.
        """
        nothing = [Bases.none(stage.program) for stage in self.problem.stages]
        if self.problem.tree is not None:
            return nothing
        return [
            Bases(visit.batch.basis_status, visit.batch.basis_cuts)
            for visit in self.walk(range(1), nothing, Keep(basis=True))
        ]

    def _solve(
        self,
        stage: int,
        scenarios: Sequence[int],
        chains: Chains,
        noise: Realisations,
        keep: Keep,
        pool_number: int | None = None,
    ) -> Batch:
        cuts = self.pool.rows(stage if pool_number is None else pool_number, all_cuts=True)
        try:
            return self.solver.solve(stage, cuts, chains, noise, keep)
        except SolveFailedError as error:
            scenario = scenarios[error.chain]
            where, name = f"simulated scenario {scenario}", f"scenario{scenario}-stage{stage}"
            failed = FailedSolve.of(self.problem.stages[stage], where, error, chains, noise)
            raise failed.as_error(self.problem.names, self.solver, stage, self.failure_folder, name) from error
