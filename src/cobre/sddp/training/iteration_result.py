"""The results of one iteration, before they become a record of the history."""

from cobre.core.arrays import Floats
from cobre.records import dataclass
from cobre.sddp.records.iteration_record import TrialPoints
from cobre.sddp.records.policy_cost import CostSample
from cobre.sddp.training.clock import Clock


@dataclass(frozen=True, slots=True)
class IterationResult:
    """Bounds and costs of an iteration; costs are those of all ranks' paths."""

    iteration: int
    lower_bound: float
    costs: Floats
    clock: Clock
    exact: float | None = None  # what the policy costs in $, where all paths took part
    trial_points: TrialPoints | None = None
    cost_sample: CostSample | None = None  # of the policy that the forward pass followed
