"""The content of summary.json and of training/convergence.parquet. Cheap to import, as `study.requests` is."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from cobre.core.bounds import relative_gap
from cobre.core.policy_cost import NO_POLICY_COST
from cobre.core.stopping import StopKind
from cobre.core.verdict import BoundHistory, ComputedBound, VerdictKind
from cobre.io.storage.arrow_columns import column_of, table_of
from cobre.records import dataclass
from cobre.sddp.iteration_records import IterationRecord, Phase
from cobre.solver.batches import SolveStatistics

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """A rank of a run: host, process, and times in seconds.

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
        """Return the values as in summary.json."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The result of a run; the simulation's numbers are None if there was none, stop_kind when nothing was trained.

    traffic_bytes: bytes exchanged between ranks while this run trained, by purpose; traffic_least_bytes: of these, the
    bytes that the method needs however the work is shared.
    is_risk_averse: upper_bound, unless it is exact, is a mean of sampled paths that bounds nothing.
    bound: the bound of the stopping rule `upper_bound`, as in bound.json.
    policy_cost: $, of the policy, estimated from paths without the effect of the drawn openings, with half of its 95 %
    confidence interval and the number of paths; 0 paths: all of them, exact. None if it is not known.
    gap: from the lower bound to the bound of the rule `upper_bound`, else to the cost of the policy, else to
    upper_bound, relative to the lower bound; None under a risk measure where only upper_bound is known. gap_at_most: to
    the upper end of the confidence interval; None if there is none, and for an estimate from below.
    simulated_controlled_mean_cost: the mean, controlled for the openings that scenarios drew, with the half width of
    its 95 % confidence interval; None if they are not drawn from the openings.
    simulation_note: where simulated scenarios disagree with it by more than chance explains, and why.
    lower_bound_is_valid: False if inflows truncated at zero depend on their past, so that the cost-to-go is not
    convex. overstated: $, by how much its cuts were then above it along the paths of the last iteration.
    verdict: on the bounds, as text; verdict_kind: machine-readable. cost_note: set if penalties are most of the cost.
    solver: work of all ranks' solvers, by phase (see `cobre.sddp.iteration_records`).
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
        """Return the values as in summary.json."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        workers = [report.as_dict() for report in self.workers]
        return plain | {"workers": workers, "traffic_bytes": dict(self.traffic_bytes)}


# The bounds of a training run as a table, in the columns of training/convergence.parquet.

MEANS = ("us_per_pivot", "mean_active_rows", "mean_nucleus")
SOLVER_COLUMNS = ("solves", "pivots", *MEANS, "refactorisations", "retries", "library_solves")
TIME_SUFFIX = "_us_per_pivot"
UPPER_BOUND_KINDS = {False: "statistical", True: "exact"}  # words of cobre-python


def bound_history(
    history: Sequence[IterationRecord],
    *,
    is_risk_averse: bool,
    computed: ComputedBound | None = None,
    policy_cost: float | None = None,
) -> BoundHistory:
    """Return the bounds of iterations for `core.verdict.verdict`.

    computed, policy_cost: values of the final policy; default: those of the last iteration.
    """
    last = history[-1] if history else None
    if computed is None and last is not None and last.policy_cost is not None:
        cost = last.policy_cost
        computed = ComputedBound.of_policy(last.lower_bound, cost.as_dict(), is_risk_averse=is_risk_averse)
        policy_cost = cost.value if policy_cost is None else policy_cost
    points = None if last is None else last.trial_points
    return BoundHistory(
        [record.lower_bound for record in history],
        [record.upper_bound for record in history],
        [record.half_width for record in history],
        is_exact=bool(history) and history[-1].is_exact,
        is_risk_averse=is_risk_averse,
        computed=computed,
        overstated=None if points is None else points.overstated,
        single_path_cost=policy_cost if computed is None else None,
    )


def convergence_table(history: Sequence[IterationRecord]) -> "pa.Table":
    """Return one row for each iteration.

    The upper bound is the plain mean of the sampled paths, or exact, as its kind says.

    policy_cost: $, of the policies of the latest iterations, from their excess over the lower bound, with half of its
    95 % confidence interval and the number of paths (0: all of a tree); policy_gap_percent: of the lower bound.
    excess: $ by which values of trial points exceeded their cuts, mean and standard deviation over paths; overstated:
    by which cuts were above the values, where the cost-to-go is not convex; the worst is relative to the value.
    Solver statistics have one column per phase: `backward_pivots`, `forward_us_per_pivot` and so on.
    """
    import pyarrow as pa

    columns = {
        "iteration": column_of([record.iteration for record in history], pa.int32()),
        "lower_bound": column_of([record.lower_bound for record in history], pa.float64()),
        "upper_bound": column_of([record.upper_bound for record in history], pa.float64()),
        "upper_bound_std": column_of([record.upper_bound_std for record in history], pa.float64()),
        "upper_bound_half_width": column_of([record.half_width for record in history], pa.float64()),
        "upper_bound_kind": column_of([UPPER_BOUND_KINDS[record.is_exact] for record in history], pa.string()),
        "gap_percent": column_of(
            [100.0 * relative_gap(record.lower_bound, record.upper_bound) for record in history], pa.float64()
        ),
        "forward_passes": column_of([record.forward_passes for record in history], pa.int32()),
        "cuts": column_of([record.cuts for record in history], pa.int64()),
        "cuts_active": column_of([record.cuts_active for record in history], pa.int64()),
        "lp_solves": column_of([record.solves for record in history], pa.int64()),
        "simplex_iterations": column_of([record.simplex_iterations for record in history], pa.int64()),
    }
    points = [record.trial_points for record in history]
    for name in ("excess", "excess_std", "overstated", "overstated_worst"):
        columns[name] = column_of([None if point is None else getattr(point, name) for point in points], pa.float64())
    costs = [NO_POLICY_COST if record.policy_cost is None else record.policy_cost.as_dict() for record in history]
    for name in NO_POLICY_COST:
        kind = pa.int32() if name == "policy_cost_paths" else pa.float64()
        columns[name] = column_of([cost[name] for cost in costs], kind)
    gaps = [record.policy_gap for record in history]
    columns["policy_gap_percent"] = column_of([None if gap is None else 100.0 * gap for gap in gaps], pa.float64())
    for phase in Phase:
        statistics = [record.solver.get(phase) for record in history]
        columns |= {f"{phase}_{name}": _column(statistics, name) for name in SOLVER_COLUMNS}
    return table_of(columns)


def without_times(table: "pa.Table") -> "pa.Table":
    """Drop the columns of times: the others are equal in runs with the same bits."""
    return table.drop_columns([name for name in table.column_names if name.endswith(TIME_SUFFIX)])


def _column(statistics: Sequence[SolveStatistics | None], name: str) -> "pa.Array":
    """Return a statistic of one phase by iteration; null where it is unknown."""
    import pyarrow as pa

    values = [None if part is None else getattr(part, name) for part in statistics]
    return column_of(values, pa.float64() if name in MEANS else pa.int64())
