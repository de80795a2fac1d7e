"""The load of each rank."""

import numpy as np
from numpy.typing import NDArray

from cobre.core.arrays import Floats
from cobre.records import dataclass
from cobre.runs.view import RunView

STRAGGLES_ABOVE = 0.10


@dataclass(frozen=True, slots=True)
class RankLoads:
    """Seconds that each rank was busy and waited, over all iterations since the last start."""

    busy_s: Floats
    waiting_s: Floats
    times_slowest: NDArray[np.int64]
    hosts: list[str]

    def __len__(self) -> int:
        return len(self.busy_s)

    @property
    def waiting_share(self) -> Floats:
        """By rank, the share of its time spent waiting for others, 0 to 1."""
        both = self.busy_s + self.waiting_s
        return np.divide(self.waiting_s, both, out=np.zeros(len(both)), where=both > 0)

    def stragglers(self) -> dict[int, float]:
        """Ranks that are busier than the median by more than `STRAGGLES_ABOVE`, with the relative excess."""
        median = float(np.median(self.busy_s))
        if len(self) < 2 or median <= 0:
            return {}
        excess = self.busy_s / median - 1.0
        return {rank: float(excess[rank]) for rank in range(len(self)) if excess[rank] > STRAGGLES_ABOVE}


def loads_of(log: RunView) -> RankLoads | None:
    """The loads from a run's events; None if no iteration has them."""
    if not log.loads:
        return None
    busy, waiting = np.array([(total.busy_s, total.waiting_s) for total in log.loads], np.float64).T
    slowest = np.array([total.times_slowest for total in log.loads], np.int64)
    return RankLoads(busy, waiting, slowest, _hosts(log))


def _hosts(log: RunView) -> list[str]:
    """The host of each rank; empty before training has ended."""
    workers = (log.trained or {}).get("workers")
    workers = workers if isinstance(workers, list) else []
    known = {str(entry.get("rank")): str(entry.get("host", "")) for entry in workers if isinstance(entry, dict)}
    return [known.get(str(rank), "") for rank in range(len(log.loads))]
