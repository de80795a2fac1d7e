"""Scenarios through the stages under a fixed policy."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from cobre.core.arrays import Floats, Indices, Ints
from cobre.sddp.cuts.pool import CutPool
from cobre.sddp.lp.failure import FailedSolve
from cobre.sddp.phases import Phase
from cobre.sddp.plugins.interfaces import Sampler
from cobre.sddp.problem import Problem
from cobre.sddp.simulation.tree_paths import JoinedBatch, chosen_paths
from cobre.sddp.stage_walk import StageVisit, sampled, walk_stages
from cobre.sddp.training.context import SolveCounter
from cobre.sddp.training.team import Team
from cobre.sddp.training.team_tables import taken_from
from cobre.sddp.tree import ScenarioTree
from cobre.solver.batches import Bases, Batch, Chains, CommonBatch, Keep, LpSolver, Realisations, SolveFailedError

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
    counter: SolveCounter = field(default_factory=SolveCounter)

    def walk(
        self, scenarios: Sequence[int] | Indices, starts: list[Bases], keep: Keep, team: Team
    ) -> Iterator[StageVisit[Batch]] | Iterator[StageVisit[JoinedBatch]]:
        """Stage after stage, all scenarios side by side; together with the members of a team, which ask for the same.

        What a visit of a team holds is there until the next visit.
        """
        tree = self.problem.tree
        if tree is not None:
            return self._walk_tree(tree, scenarios, keep, team)
        return self._walk_stages(scenarios, starts, keep, team)

    def _walk_stages(
        self, scenarios: Sequence[int] | Indices, starts: list[Bases], keep: Keep, team: Team
    ) -> Iterator[StageVisit[Batch]]:
        def noise(stage: int) -> tuple[Realisations, Ints]:
            return sampled(self.problem, self.sampler, SIMULATION_ITERATION, scenarios, stage)

        def solve(stage: int, states: Floats, realisations: Realisations, realisation_index: Ints) -> Batch:
            chains = Chains.single(states, realisation_index, starts[stage])
            common = team.solutions(self.problem.stages[stage].program, len(states))
            batch = self._solve(stage, scenarios, chains, realisations, keep, common=common)
            team.wait("simulated scenarios")
            return batch

        return walk_stages(self.problem, len(scenarios), noise, solve)

    def _walk_tree(
        self, tree: ScenarioTree, scenarios: Sequence[int] | Indices, keep: Keep, team: Team
    ) -> Iterator[StageVisit[JoinedBatch]]:
        """Scenarios of a node together, each from nothing: their results do not depend on who else is there."""
        nodes = chosen_paths(tree, self.paths, scenarios)

        def noise(stage: int) -> tuple[Realisations, Ints]:
            return tree.realisations[stage], nodes[:, stage] - tree.first[stage]

        def solve(stage: int, states: Floats, realisations: Realisations, realisation_index: Ints) -> JoinedBatch:
            program = self.problem.stages[stage].program
            met = np.unique(nodes[:, stage]).tolist()
            common = team.solutions(program, len(states))
            joined = JoinedBatch.new(program, len(states)) if common is None else JoinedBatch.of(common)
            for number in range(len(met)) if common is None else taken_from(common.counter, len(met)):
                at = np.flatnonzero(nodes[:, stage] == met[number])
                chains = Chains.single(states[at], realisation_index[at], Bases.none(program))
                names = [int(scenarios[int(row)]) for row in at]
                joined.put(at, self._solve(stage, names, chains, realisations, keep, met[number]))
            team.wait("simulated scenarios")
            return joined

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
            for visit in self._walk_stages(range(1), nothing, Keep(basis=True), Team.alone(0))
        ]

    def _solve(
        self,
        stage: int,
        scenarios: Sequence[int] | Indices,
        chains: Chains,
        noise: Realisations,
        keep: Keep,
        pool_number: int | None = None,
        common: CommonBatch | None = None,
    ) -> Batch:
        cuts = self.pool.rows(stage if pool_number is None else pool_number, all_cuts=True)
        try:
            batch = self.solver.solve(stage, cuts, chains, noise, keep, common)
        except SolveFailedError as error:
            scenario = scenarios[error.chain]
            where, name = f"simulated scenario {scenario}", f"scenario{scenario}-stage{stage}"
            failed = FailedSolve.of(self.problem.stages[stage], where, error, chains, noise)
            raise failed.as_error(self.problem.names, self.solver, stage, self.failure_folder, name) from error
        self.counter.add(Phase.SIMULATION, batch)
        return batch
