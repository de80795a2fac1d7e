"""What training and simulation give back to a script."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cobre.sddp.events import IterationRecord
from cobre.study.policy import Policy

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """A rank of a run: who it was, and how it spent its time.

    waiting_s: in exchanges with other ranks, of which imbalance_s because others had more work.
    """

    rank: int
    host: str
    pid: int
    backend: str
    wall_s: float
    busy_s: float
    waiting_s: float
    imbalance_s: float


@dataclass(frozen=True, slots=True)
class ProgressEvent:
    """An iteration as one worker lived it; each worker's events come in the order of the iterations. Money is $."""

    worker: int
    iteration: int
    lower_bound: float
    upper_bound: float
    half_width: float
    gap: float
    cuts: int
    elapsed_s: float
    busy_s: float
    waiting_s: float


@dataclass(frozen=True)
class TrainingResult:
    """A trained policy and how it came about; money is $.

    workers: the ranks that took part. shared_bytes: what they hold in common; saved_bytes: what that saves.
    """

    policy: Policy
    history: tuple[IterationRecord, ...]
    stop_reason: str
    digest: str
    training_seconds: float
    warnings: tuple[str, ...] = ()
    workers: tuple[WorkerReport, ...] = ()
    shared_bytes: int = 0
    saved_bytes: int = 0

    @property
    def iterations(self) -> int:
        """How many were run."""
        return len(self.history)

    @property
    def lower_bound(self) -> float:
        """The last one."""
        return self.history[-1].lower_bound

    @property
    def upper_bound(self) -> float:
        """The mean cost of the last iteration's sampled paths: a statistical estimate, not a proof."""
        return self.history[-1].upper_bound

    @property
    def gap(self) -> float:
        """(upper - lower) / max(1, |lower|) of the last iteration."""
        return self.history[-1].gap

    @property
    def bounds(self) -> "pa.Table":
        """One row for each iteration."""
        from cobre.study.convergence import convergence_table

        return convergence_table(self.history)

    def __repr__(self) -> str:
        last = self.history[-1]
        return (
            f"<TrainingResult: {self.iterations} iterations, lower bound {last.lower_bound:.10g}, "
            f"upper bound {last.upper_bound:.6g} +- {last.half_width:.3g} (sampled), {self.stop_reason}>"
        )


@dataclass(frozen=True)
class SimulationResult:
    """A policy in many scenarios; `tables` are Arrow tables by name."""

    tables: Mapping[str, "pa.Table"]
    scenario_costs: tuple[float, ...]
    mean_cost: float
    std_cost: float
    digest: str
    seconds: float
    warnings: tuple[str, ...] = field(default=())

    @property
    def half_width(self) -> float:
        """Of the 95 % confidence interval of the mean."""
        return float(1.96 * self.std_cost / max(1, len(self.scenario_costs)) ** 0.5)

    def __repr__(self) -> str:
        return (
            f"<SimulationResult: {len(self.scenario_costs)} scenarios, mean cost {self.mean_cost:.10g} "
            f"+- {self.half_width:.3g}, tables {', '.join(self.tables)}>"
        )
