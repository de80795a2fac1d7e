"""A case that is ready to be trained or simulated."""

from dataclasses import dataclass
from functools import cached_property

from cobre.core.case import Case
from cobre.sddp.problem import Problem
from cobre.sddp.problem_digest import problem_digest
from cobre.solver.batches import CutRows
from cobre.stochastic.model import NoiseModel


@dataclass(frozen=True)  # without slots: the digest is kept in the instance
class PreparedStudy:
    """A case with its noise and its LPs.

    end: cuts of another study after the last stage. notes: what its user should know.
    """

    case: Case
    noise: NoiseModel
    problem: Problem
    end: CutRows | None = None
    notes: tuple[str, ...] = ()

    @cached_property
    def digest(self) -> str:
        """Of the problem: what cuts and bounds belong to. Computed once, in a tenth of a second at production size."""
        return problem_digest(self.problem, [stage.id for stage in self.case.horizon.stages], self.end)
