"""How a run ended. Light to import, as `requests` is."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from cobre.core.verdict import VerdictKind
from cobre.records import dataclass
from cobre.sddp.records.stop import StopKind


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

    def as_dict(self) -> dict[str, Any]:
        """As in summary.json."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True, slots=True)
class RunSummary:
    """How a run ended; the simulation's numbers are None when there was none, stop_kind when nothing was trained.

    traffic_bytes: bytes exchanged between ranks while this run trained, by purpose; traffic_least_bytes: of that, what
    the method needs however the work is shared.
    is_risk_averse: upper_bound, unless it is exact, is a mean of sampled paths that bounds nothing, and so is the gap.
    bound: what the stopping rule `upper_bound` found for the policy, as in bound.json.
    policy_cost: $, of the policy, from paths whose chance is taken out, with half of its 95 % confidence interval and
    the number of paths; 0 paths: all of them, exact. None where the paths do not tell. gap: from the lower bound to
    the policy's cost, or to the mean of the paths where that is not known. gap_at_most: to the upper end of its 95 %
    confidence interval, as terminals and reports print it; None where the cost is exact or has no interval.
    simulated_controlled_mean_cost: the mean, controlled for the openings that scenarios drew, with the half width of
    its 95 % confidence interval; None where they are not drawn from the openings.
    simulation_note: where simulated scenarios disagree with it by more than chance explains, and why.
    lower_bound_is_valid: False where inflows truncated at zero depend on their past, so that the cost-to-go is not
    convex. overstated: $, by how much its cuts then lay above it along the paths of the last iteration.
    verdict: on the bounds, in words; verdict_kind: for programs. cost_note: when penalties are most of the cost.
    solver: what all ranks' solvers did, by phase (see `cobre.sddp.records.phases`).
    """

    lower_bound: float | None
    upper_bound: float | None
    upper_bound_half_width: float | None
    gap: float | None
    iterations: int
    stop_reason: str
    stop_kind: StopKind | None
    is_interrupted: bool
    digest: str
    training_seconds: float
    output: str
    workers: tuple[WorkerReport, ...] = ()
    shared_bytes: int = 0
    saved_bytes: int = 0
    traffic_bytes: Mapping[str, int] = field(default_factory=dict)
    traffic_least_bytes: int = 0
    simulated_scenarios: int | None = None
    simulated_mean_cost: float | None = None
    simulated_std_cost: float | None = None
    simulated_half_width: float | None = None
    simulated_controlled_mean_cost: float | None = None
    simulated_controlled_half_width: float | None = None
    simulation_digest: str | None = None
    solver: Mapping[str, Any] = field(default_factory=dict)
    upper_bound_is_exact: bool = False
    is_risk_averse: bool = False
    verdict: str | None = None
    verdict_kind: VerdictKind | None = None
    cost_note: str | None = None
    bound: Mapping[str, Any] | None = None
    policy_cost: float | None = None
    policy_cost_half_width: float | None = None
    policy_cost_paths: int | None = None
    gap_at_most: float | None = None
    simulation_note: str | None = None
    lower_bound_is_valid: bool = True
    overstated: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """As in summary.json."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        workers = [report.as_dict() for report in self.workers]
        return plain | {"workers": workers, "traffic_bytes": dict(self.traffic_bytes)}
