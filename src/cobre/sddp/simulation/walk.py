"""Scenarios through the stages under a fixed policy."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cobre.core.arrays import Floats, Ints
from cobre.sddp.cuts.pool import CutPool
from cobre.sddp.lp.failure import FailedSolve, StageFailedError
from cobre.sddp.plugins.interfaces import Sampler
from cobre.sddp.problem import Problem, realise
from cobre.sddp.simulation.tree_paths import JoinedBatch, chosen_paths, join_batches, node_realisations
from cobre.solver.batches import Bases, Batch, Chains, Keep, LpSolver, Realisations, SolveFailedError

SIMULATION_ITERATION = 0  # scenarios are drawn as if they belonged to an iteration before the first


@dataclass(frozen=True, slots=True)
class StageStep:
    """What came out of one stage for all scenarios of a walk."""

    stage: int
    state: Floats  # entering
    noise: Realisations
    batch: Batch | JoinedBatch


@dataclass(frozen=True, slots=True)
class Walker:
    """A policy that is followed; all cuts count, also those that selection put aside."""

    problem: Problem
    solver: LpSolver
    pool: CutPool
    sampler: Sampler
    failure_folder: Path | None
    paths: Ints | None = None  # of a tree: which of its paths each scenario follows; None: its own number

    def walk(self, scenarios: range, starts: list[Bases], keep: Keep) -> Iterator[StageStep]:
        """Stage after stage, all scenarios side by side."""
        state = np.tile(self.problem.initial_state, (len(scenarios), 1))
        tree = self.problem.tree
        nodes = None if tree is None else chosen_paths(tree, self.paths, scenarios)
        for stage, lp in enumerate(self.problem.stages):
            if tree is not None and nodes is not None:
                noise = node_realisations(tree, stage, nodes[:, stage])
                batch: Batch | JoinedBatch = self._solve_nodes(stage, scenarios, state, noise, nodes[:, stage], keep)
            else:
                values = self.sampler.sample(SIMULATION_ITERATION, scenarios, stage)
                noise = realise(self.problem.noise, stage, values)
                batch = self._solve(stage, scenarios, state, noise, starts[stage], keep)
            yield StageStep(stage, state, noise, batch)
            state = lp.program.next_states(state, batch.decided, batch.inflow)

    def _solve_nodes(
        self, stage: int, scenarios: range, state: Floats, noise: Realisations, nodes: Ints, keep: Keep
    ) -> JoinedBatch:
        """Scenarios of a node together, each from nothing: their results do not depend on who else is there."""
        nothing, parts = Bases.none(self.problem.stages[stage].program), []
        for node in np.unique(nodes).tolist():
            at = np.flatnonzero(nodes == node)
            own = Realisations(noise.inflow_m3s[at], noise.load_mw[at], noise.availability[at])
            parts.append((at, self._solve(stage, [scenarios[row] for row in at], state[at], own, nothing, keep, node)))
        return join_batches(parts, len(state))

    def find_starts(self) -> list[Bases]:
        """The bases of scenario 0, solved from nothing: where all scenarios start, stage by stage.

        Every rank finds them by itself, so that all begin alike whatever their share of the scenarios. What training
        left behind is not used: a policy from a file must give the same results as one from memory.
        """
        nothing = [Bases.none(stage.program) for stage in self.problem.stages]
        if self.problem.tree is not None:
            return nothing
        return [
            Bases(step.batch.basis_status, step.batch.basis_cuts)
            for step in self.walk(range(1), nothing, Keep(basis=True))
        ]

    def _solve(
        self,
        stage: int,
        scenarios: Sequence[int],
        state: Floats,
        noise: Realisations,
        start: Bases,
        keep: Keep,
        pool_number: int | None = None,
    ) -> Batch:
        chains = Chains.single(state, start, np.full(len(scenarios), 0 if len(start.status) else -1, np.int32))
        cuts = self.pool.rows(stage if pool_number is None else pool_number, everything=True)
        try:
            return self.solver.solve(stage, cuts, chains, noise, keep)
        except SolveFailedError as error:
            raise self._explained(stage, scenarios, error, chains, noise) from error

    def _explained(
        self, stage: int, scenarios: Sequence[int], error: SolveFailedError, chains: Chains, noise: Realisations
    ) -> StageFailedError:
        """Say what failed in words, and leave the LP for a closer look."""
        scenario = scenarios[error.chain]
        lp = self.problem.stages[stage]
        failed = FailedSolve.of(lp, f"simulated scenario {scenario}", error, chains, noise)
        message, saved = failed.explain(self.problem.names), None
        if self.failure_folder is not None:
            saved = failed.save(self.solver, stage, self.failure_folder, f"scenario{scenario}-stage{stage}")
            message += f" The LP was saved as {saved}."
        return StageFailedError(message, lp.plan.data.stage.id, error.status, saved)
