"""A case that is ready to be trained or simulated."""

from functools import cached_property

from cobre.core.case import Case
from cobre.records import dataclass
from cobre.sddp.problem.digest import problem_digest
from cobre.sddp.problem.problem import Problem
from cobre.solver.batches import CutRows
from cobre.stochastic.model import NoiseModel


@dataclass(frozen=True)  # without slots: the digest is kept in the instance
class PreparedStudy:
    """A case with its noise and its LPs.

    boundary: cuts of a boundary policy after the last stage. notes: warnings for the user.
    """

    case: Case
    noise: NoiseModel
    problem: Problem
    boundary: CutRows | None = None
    notes: tuple[str, ...] = ()

    @cached_property
    def digest(self) -> str:
        """Digest of the problem, which cuts and bounds belong to. Computed once: 0.1 s at production size."""
        return problem_digest(self.problem, [stage.id for stage in self.case.horizon.stages], self.boundary)
