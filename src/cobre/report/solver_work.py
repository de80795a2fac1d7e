"""Work of the LP solver in each phase, from the events."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.core.arrays import Floats
from cobre.records import dataclass
from cobre.report.section import Cell, DataTable, TableColumn
from cobre.runs.view import RunView

PHASES: Mapping[str, str] = {
    "forward": "forward passes",
    "backward": "backward passes",
    "lower_bound": "lower bound",
    "simulation": "simulation",
}

COLUMNS = (
    TableColumn("phase"),
    TableColumn("LPs", "integer"),
    TableColumn("pivots", "integer"),
    TableColumn("pivots per LP", "number"),
    TableColumn("µs per pivot", "number"),
    TableColumn("active rows", "number"),
    TableColumn("nucleus", "number"),
    TableColumn("refactorisations", "integer"),
    TableColumn("retries", "integer"),
    TableColumn("solved by HiGHS", "integer"),
)

NOTE = (
    "All ranks and threads together. Active rows are those at a bound in an optimal basis, cuts included; the nucleus "
    "is the part of a basis that remains when singletons are removed. A retry solves an LP from scratch; HiGHS solves "
    "what our own method cannot finish."
)


def solver_tables(log: RunView) -> list[DataTable]:
    """A list of one table; empty if no event has numbers of the solver."""
    rows = [_row(title, parts) for phase, title in PHASES.items() if (parts := list(_parts(log, phase)))]
    return [DataTable("solver-work", "Work of the LP solver", COLUMNS, rows, NOTE, is_wide=True)] if rows else []


def _parts(log: RunView, phase: str) -> Iterator[Mapping[str, Any]]:
    """The solver's numbers of a phase: one entry per iteration, and one for the simulation after training."""
    for event in log.iterations:
        if isinstance(solver := event.get("solver"), dict) and isinstance(part := solver.get(phase), dict):
            yield part
    if phase == "simulation" and isinstance(part := (log.simulated or {}).get("solver"), dict):
        yield part


def _row(title: str, parts: Sequence[Mapping[str, Any]]) -> tuple[Cell, ...]:
    solves, pivots, refactorisations = (int(_sum(parts, name)) for name in ("solves", "pivots", "refactorisations"))
    return (
        title,
        solves,
        pivots,
        _ratio(pivots, solves),
        _ratio(1e6 * _sum(parts, "seconds"), pivots),
        _ratio(_sum(parts, "mean_active_rows", "solves"), solves),
        _ratio(_sum(parts, "mean_nucleus", "refactorisations"), refactorisations),
        refactorisations,
        int(_sum(parts, "retries")),
        int(_sum(parts, "library_solves")),
    )


def _sum(parts: Sequence[Mapping[str, Any]], name: str, weight: str | None = None) -> float:
    """The sum of a number over parts; `weight` names the count by which a mean is weighted."""
    return sum(_number(part, name) * (1.0 if weight is None else _number(part, weight)) for part in parts)


def _number(part: Mapping[str, Any], name: str) -> float:
    value = part.get(name)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else 0.0


def _ratio(total: float, count: int) -> float | None:
    return total / count if count else None


# The load of each rank.


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
