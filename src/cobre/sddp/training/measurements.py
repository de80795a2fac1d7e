"""What one iteration measures: bounds and costs, and the time, solves and exchanged bytes that it took."""

import time
from collections.abc import Iterable, Mapping

from cobre.core.arrays import Floats
from cobre.core.policy_cost import CostSample
from cobre.records import dataclass
from cobre.sddp.iteration_records import SolveCounter, TrialPoints

# Traffic that every split of the work has: the costs of paths, the cuts, and the states that cut selection reads.
NEEDED = frozenset({"path costs", "cuts", "trial states"})


class IterationMeter:
    """Wall time, solves and exchanged bytes of the present iteration.

    solves: statistics of this rank's solver. seconds: wall seconds of this rank by phase. work: seconds of each stretch
    of work between two exchanges, in order. traffic_bytes: by purpose, what all ranks together exchanged, each byte
    counted once however many ranks read it; empty with one rank.
    """

    def __init__(self, ranks: int) -> None:
        self._ranks = ranks
        self.restart()

    def restart(self) -> None:
        """Set everything back to zero and start the clock, at the beginning of an iteration."""
        self.solves = SolveCounter()
        self.seconds = dict.fromkeys(("forward", "backward", "bound", "exchange"), 0.0)
        self.work: list[float] = []
        self.traffic_bytes: dict[str, int] = {}
        self._last = time.monotonic()

    def lap(self, phase: str) -> None:
        """Count the time since the last lap under this phase."""
        now = time.monotonic()
        elapsed, self._last = now - self._last, now
        self.seconds[phase] += elapsed
        if phase != "exchange":
            self.work.append(elapsed)

    def count_bytes(self, purpose: str, nbytes: int) -> None:
        """Count bytes that all ranks together exchanged for a purpose."""
        if self._ranks > 1:
            self.traffic_bytes[purpose] = self.traffic_bytes.get(purpose, 0) + nbytes


def total_traffic(iterations: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Add the traffic of several iterations by purpose."""
    total: dict[str, int] = {}
    for traffic in iterations:
        for purpose, nbytes in traffic.items():
            total[purpose] = total.get(purpose, 0) + nbytes
    return total


def least_traffic(exchanged: Mapping[str, int]) -> int:
    """Return the exchanged bytes that the method needs for any split of the work."""
    return sum(nbytes for purpose, nbytes in exchanged.items() if purpose in NEEDED)


@dataclass(frozen=True, slots=True)
class IterationResult:
    """Bounds and costs of an iteration, before they become a record of the history. costs: of all ranks' paths, $."""

    iteration: int
    lower_bound: float
    costs: Floats
    exact: float | None = None  # what the policy costs in $, where all paths took part
    trial_points: TrialPoints | None = None
    cost_sample: CostSample | None = None  # of the policy that the forward pass followed
    first_stage_end: tuple[float, ...] | None = None  # on rank 0, where a stopping rule reads it
