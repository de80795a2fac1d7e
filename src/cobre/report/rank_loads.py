"""How evenly work was spread over ranks."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.core.arrays import Floats
from cobre.io.event_file import Event
from cobre.runs.event_history import EventHistory

STRAGGLES_ABOVE = 0.10


@dataclass(frozen=True, slots=True)
class RankLoads:
    """How long each rank was busy and waited, over all iterations since the last start."""

    busy_s: Floats
    waiting_s: Floats
    times_slowest: NDArray[np.int64]
    hosts: list[str]

    def __len__(self) -> int:
        return len(self.busy_s)

    @property
    def waiting_share(self) -> Floats:
        """By rank, the share of its time that it waited for others, 0 to 1."""
        both = self.busy_s + self.waiting_s
        return np.divide(self.waiting_s, both, out=np.zeros(len(both)), where=both > 0)

    def stragglers(self) -> dict[int, float]:
        """Ranks that hold the others up, with how much busier than the median they are."""
        median = float(np.median(self.busy_s))
        if len(self) < 2 or median <= 0:
            return {}
        excess = self.busy_s / median - 1.0
        return {rank: float(excess[rank]) for rank in range(len(self)) if excess[rank] > STRAGGLES_ABOVE}


def loads_of(log: EventHistory) -> RankLoads | None:
    """None when no event has loads. An earlier start with another number of ranks is left out."""
    loads = [load for event in log.of("iteration") if (load := _load(event)) is not None]
    loads = [load for load in loads if load.shape == loads[-1].shape]
    if not loads:
        return None
    by_iteration = np.stack(loads)  # iterations x ranks x (busy, waiting)
    busy, waiting = by_iteration.sum(axis=0).T
    ranks = by_iteration.shape[1]
    slowest = np.bincount(by_iteration[:, :, 0].argmax(axis=1), minlength=ranks)
    return RankLoads(busy, waiting, slowest.astype(np.int64), _hosts(log, ranks))


def _load(event: Event) -> Floats | None:
    """Busy and waiting seconds of an iteration, ranks x 2; None where the event has none."""
    try:
        load = np.array(event.get("load"), np.float64)
    except (TypeError, ValueError):
        return None
    is_sound = load.ndim == 2 and load.shape[0] > 0 and load.shape[1] == 2 and bool(np.isfinite(load).all())
    return load if is_sound else None


def _hosts(log: EventHistory, ranks: int) -> list[str]:
    """Where ranks were: known when training is over."""
    workers = (log.last("training_finished") or {}).get("workers")
    workers = workers if isinstance(workers, list) else []
    known = {str(entry.get("rank")): str(entry.get("host", "")) for entry in workers if isinstance(entry, dict)}
    return [known.get(str(rank), "") for rank in range(ranks)]
