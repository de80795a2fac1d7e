"""A solver that counts what it does, for callers that keep no count of their own."""

from collections.abc import Sequence
from pathlib import Path

from cobre.core.arrays import Floats
from cobre.solver.batches import (
    Batch,
    Chains,
    CommonBatch,
    CommonWalk,
    CutRows,
    Keep,
    LpSolver,
    Realisations,
    Step,
    Walk,
)
from cobre.solver.program import StageProgram
from cobre.solver.statistics import SolveStatistics


class CountingSolver(LpSolver):
    """Another solver, and the sum of its work in `statistics`."""

    def __init__(self, inner: LpSolver) -> None:
        self._inner = inner
        self.statistics = SolveStatistics()

    def load(self, stage: int, program: StageProgram) -> None:
        """Take over a stage's program under a number."""
        self._inner.load(stage, program)

    def solve(
        self,
        stage: int,
        cuts: CutRows,
        chains: Chains,
        realisations: Realisations,
        keep: Keep,
        common: CommonBatch | None = None,
    ) -> Batch:
        """Solve all chains of a stage with the inner solver, and count its work."""
        batch = self._inner.solve(stage, cuts, chains, realisations, keep, common)
        self.statistics += SolveStatistics.of(batch)
        return batch

    def walk(self, steps: Sequence[Step], states: Floats, common: CommonWalk | None = None) -> Walk:
        """Take every path through all steps."""
        walk = self._inner.walk(steps, states, common)
        self.statistics += SolveStatistics.of(walk)
        return walk

    def save_failed(self, stage: int, path: Path) -> None:
        """Write the LP that the last `solve` failed on."""
        self._inner.save_failed(stage, path)

    @property
    def version(self) -> str:
        """Name and version of the library that the inner solver uses."""
        return self._inner.version
