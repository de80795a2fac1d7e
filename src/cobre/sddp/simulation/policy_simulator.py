"""Scenarios through the stages under a fixed policy."""

from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path

import numpy as np

from cobre.core.arrays import Floats, Indices, Ints
from cobre.records import dataclass
from cobre.sddp.cuts.pool import CutPool
from cobre.sddp.plugins.interfaces import SIMULATION_ITERATION, Sampler
from cobre.sddp.problem.problem import Problem
from cobre.sddp.records.phases import Phase
from cobre.sddp.simulation.tree_paths import JoinedBatch, chosen_paths
from cobre.sddp.stage_simulation import StageResult, sampled, simulate_stages
from cobre.sddp.stage_solve import StageSolve, solve_stage
from cobre.sddp.training.context import SolveCounter
from cobre.sddp.training.team import Team
from cobre.sddp.training.team_tables import taken_from
from cobre.sddp.tree.scenario_tree import ScenarioTree
from cobre.solver.batches import Bases, Batch, Chains, LpSolver, Outputs, Realisations


@dataclass(frozen=True, slots=True)
class PolicySimulator:
    """A policy that is followed. uses_all_cuts: inactive cuts count as well."""

    problem: Problem
    solver: LpSolver
    pool: CutPool
    sampler: Sampler
    failure_folder: Path | None = None
    paths: Ints | None = None  # of a tree: which of its paths each scenario follows; None: its own number
    counter: SolveCounter = field(default_factory=SolveCounter)
    uses_all_cuts: bool = True

    def simulate(
        self, scenarios: Sequence[int] | Indices, starts: list[Bases], outputs: Outputs, team: Team
    ) -> Iterator[StageResult[Batch]] | Iterator[StageResult[JoinedBatch]]:
        """Stage after stage, all scenarios side by side; together with the members of a team, which ask for the same.

        What a result of a team holds is there until the next result.
        """
        tree = self.problem.tree
        if tree is not None:
            return self._simulate_tree(tree, scenarios, starts, outputs, team)
        return self._simulate_stages(scenarios, starts, outputs, team)

    def _simulate_stages(
        self, scenarios: Sequence[int] | Indices, starts: list[Bases], outputs: Outputs, team: Team
    ) -> Iterator[StageResult[Batch]]:
        def noise(stage: int) -> tuple[Realisations, Ints]:
            return sampled(self.problem, self.sampler, SIMULATION_ITERATION, scenarios, stage)

        def solve(stage: int, states: Floats, realisations: Realisations, realisation_index: Ints) -> Batch:
            chains = Chains.single(states, realisation_index, starts[stage])
            shared = team.solutions(self.problem.stages[stage].program, len(states))
            work = StageSolve(stage, chains, realisations, outputs, all_cuts=self.uses_all_cuts, shared=shared)
            batch = self._solve(scenarios, work)
            team.wait("simulated scenarios")
            return batch

        return simulate_stages(self.problem, len(scenarios), noise, solve)

    def _simulate_tree(
        self,
        tree: ScenarioTree,
        scenarios: Sequence[int] | Indices,
        starts: list[Bases],
        outputs: Outputs,
        team: Team,
    ) -> Iterator[StageResult[JoinedBatch]]:
        """Solve the scenarios of a node together, each from the same basis: independent of the other scenarios."""
        nodes = chosen_paths(tree, self.paths, scenarios)

        def noise(stage: int) -> tuple[Realisations, Ints]:
            return tree.realisations[stage], nodes[:, stage] - tree.first[stage]

        def solve(stage: int, states: Floats, realisations: Realisations, realisation_index: Ints) -> JoinedBatch:
            program = self.problem.stages[stage].program
            met = np.unique(nodes[:, stage]).tolist()
            shared = team.solutions(program, len(states))
            joined = JoinedBatch.new(program, len(states)) if shared is None else JoinedBatch.of(shared)
            for number in range(len(met)) if shared is None else taken_from(shared.counter, len(met)):
                at = np.flatnonzero(nodes[:, stage] == met[number])
                chains = Chains.single(states[at], realisation_index[at], starts[stage])
                names = [int(scenarios[int(row)]) for row in at]
                work = StageSolve(
                    stage, chains, realisations, outputs, all_cuts=self.uses_all_cuts, pool_number=met[number]
                )
                joined.put(at, self._solve(names, work))
            team.wait("simulated scenarios")
            return joined

        return simulate_stages(self.problem, len(scenarios), noise, solve)

    def find_starts(self) -> list[Bases]:
        """Return the bases of scenario 0, from a cold start: where all scenarios start, stage by stage.

        Every rank finds them by itself, so that all begin alike whatever their share of the scenarios. What training
        left behind is not used: a policy from a file must give the same results as one from memory. Small LPs of a
        tree start cold.
        """
        nothing = [Bases.none(stage.program) for stage in self.problem.stages]
        if self.problem.tree is not None:
            return self._find_tree_starts(self.problem.tree, nothing)
        return [
            Bases(result.batch.basis_status, result.batch.basis_cuts)
            for result in self._simulate_stages(range(1), nothing, Outputs(basis=True), Team.alone(0))
        ]

    def _find_tree_starts(self, tree: ScenarioTree, nothing: list[Bases]) -> list[Bases]:
        is_large = [self.problem.is_large(stage) for stage in range(self.problem.num_stages)]
        if not any(is_large):
            return nothing
        [path] = chosen_paths(tree, self.paths, range(1))

        def noise(stage: int) -> tuple[Realisations, Ints]:
            return tree.realisations[stage], np.array([path[stage] - tree.first[stage]], np.int32)

        def solve(stage: int, states: Floats, realisations: Realisations, realisation_index: Ints) -> Batch:
            chains, wanted = Chains.single(states, realisation_index, nothing[stage]), Outputs(basis=True)
            node, all_cuts = int(path[stage]), self.uses_all_cuts
            return self._solve(
                range(1), StageSolve(stage, chains, realisations, wanted, all_cuts=all_cuts, pool_number=node)
            )

        return [
            Bases(result.batch.basis_status, result.batch.basis_cuts) if is_large[result.stage] else none
            for none, result in zip(nothing, simulate_stages(self.problem, 1, noise, solve), strict=True)
        ]

    def _solve(self, scenarios: Sequence[int] | Indices, work: StageSolve) -> Batch:
        def name_failure(chain: int) -> tuple[str, str]:
            return f"simulated scenario {scenarios[chain]}", f"scenario{scenarios[chain]}-stage{work.stage}"

        batch = solve_stage(self, work, name_failure)
        self.counter.add(Phase.SIMULATION, batch)
        return batch
