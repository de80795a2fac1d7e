"""Sections on convergence (bounds by iteration, verdict) and on time (phases, LP solver, loads of ranks)."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.core.arrays import Floats
from cobre.records import dataclass
from cobre.report.bounds import Bounds
from cobre.report.charts import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, Chart, StackLayer, bounds_chart, numbers_chart
from cobre.report.run_folder import RunFolder
from cobre.report.section import Cell, DataTable, Section, TableColumn
from cobre.runs.events import Event
from cobre.runs.view import RunView

# Work of the LP solver in each phase, from the events.

SOLVER_PHASES: Mapping[str, str] = {
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
    """Return a list of one table; empty if no event has numbers of the solver."""
    rows = [_row(title, parts) for phase, title in SOLVER_PHASES.items() if (parts := list(_parts(log, phase)))]
    return [DataTable("solver-work", "Work of the LP solver", COLUMNS, rows, NOTE, is_wide=True)] if rows else []


def _parts(log: RunView, phase: str) -> Iterator[Mapping[str, Any]]:
    """Yield the solver's numbers of a phase: one entry per iteration, and one for the simulation after training."""
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
    """Sum a number over parts; `weight` names the count by which a mean is weighted."""
    return sum(_number(part, name) * (1.0 if weight is None else _number(part, weight)) for part in parts)


def _number(part: Mapping[str, Any], name: str) -> float:
    value = part.get(name)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else 0.0


def _ratio(total: float, count: int) -> float | None:
    return total / count if count else None


STRAGGLER_SHARE = 0.10


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
        """Return ranks that are busier than the median by more than `STRAGGLER_SHARE`, with the relative excess."""
        median = float(np.median(self.busy_s))
        if len(self) < 2 or median <= 0:
            return {}
        excess = self.busy_s / median - 1.0
        return {rank: float(excess[rank]) for rank in range(len(self)) if excess[rank] > STRAGGLER_SHARE}


def loads_of(log: RunView) -> RankLoads | None:
    """Return the loads from a run's events; None if no iteration has them."""
    if not log.loads:
        return None
    busy, waiting = np.array([(total.busy_s, total.waiting_s) for total in log.loads], np.float64).T
    slowest = np.array([total.times_slowest for total in log.loads], np.int64)
    return RankLoads(busy, waiting, slowest, _hosts(log))


def _hosts(log: RunView) -> list[str]:
    """Return the host of each rank; empty before training has ended."""
    workers = (log.trained or {}).get("workers")
    workers = workers if isinstance(workers, list) else []
    known = {str(entry.get("rank")): str(entry.get("host", "")) for entry in workers if isinstance(entry, dict)}
    return [known.get(str(rank), "") for rank in range(len(log.loads))]


MIN_ITERATIONS_TO_ZOOM = 8

INTRO = (
    "The lower bound is proven. The upper bound is a statistical estimate: the mean cost of the paths sampled in one "
    "iteration. It can be above or below the true cost of the policy, and even below the lower bound."
)

EXACT = "Both bounds are proven: the upper bound is the cost of the policy over all paths of the tree."

WITH_COST = (
    "The lower bound is proven. The cost of the policy is estimated in every iteration from the LPs that it solves "
    "anyway, with far less chance in it than in the mean cost of the sampled paths, which is shown next to it."
)

RISK_AVERSE = (
    "The lower bound is proven, for the risk-adjusted cost that training minimises. The other line is the mean cost of "
    "the paths sampled in each iteration, which is not an upper bound of the risk-adjusted cost."
)

RISK_AVERSE_WITH_COST = (
    "The lower bound is proven, for the risk-adjusted cost that training minimises. The cost of the policy is "
    "estimated from below, along paths that are drawn by the weights of the risk measure. The mean of the sampled "
    "paths is their plain cost, not the risk-adjusted one."
)

WHY_IT_IS_AN_ESTIMATE = (
    "Inflows that are corrected at zero depend on their past, so that the cost-to-go is not convex: what is called "
    "the lower bound estimates the cost, and may be above it."
)

HOW_TO_READ_COST = "Training has converged when the upper end of the band is close to the lower bound."

HOW_TO_READ_ESTIMATE = (
    "The policy is good when the upper end of the band is close to the lower bound. The estimate is from below: "
    "`cobre bound` computes an upper bound."
)

HOW_TO_READ = "Training has converged when the lower bound no longer rises and is inside the band."
HOW_TO_READ_EXACT = "Training has converged when the two bounds meet."

HOW_TO_READ_RISK_AVERSE = (
    "Training has converged when the lower bound no longer rises, inside the band or not. "
    "`cobre bound` computes an upper bound."
)


def convergence(run: RunFolder) -> Section | None:
    """Draw the bounds of all iterations, and of the second half only, as the first ones take most of the height."""
    bounds = run.bounds
    if not len(bounds):
        return None
    parts: list[Chart] = [bounds_chart(bounds, "bounds", "Bounds by iteration").explained(_how_to_read(bounds))]
    if len(bounds) >= MIN_ITERATIONS_TO_ZOOM:
        later = bounds.since(len(bounds) // 2)
        title = f"Bounds from iteration {later.iteration[0]} on"
        parts.append(
            bounds_chart(later, "bounds-later", title, with_paths=False).explained(
                "The second half in detail, without the wide range of the first iterations."
            )
        )
    return Section("convergence", "Convergence", parts, _intro(run))


def _how_to_read(bounds: Bounds) -> str:
    if bounds.is_exact:
        return HOW_TO_READ_EXACT
    if bounds.policy_costs is not None:
        return HOW_TO_READ_ESTIMATE if bounds.is_risk_averse else HOW_TO_READ_COST
    return HOW_TO_READ_RISK_AVERSE if bounds.is_risk_averse else HOW_TO_READ


def _intro(run: RunFolder) -> str:
    """Return the verdict, and an explanation of the upper bound."""
    judged = run.bounds.verdict(is_interrupted=bool(run.summary.get("is_interrupted")))
    verdict = "" if judged is None else f"{judged.sentence[:1].upper()}{judged.sentence[1:]}. "
    if run.bounds.is_exact:
        return verdict + EXACT
    if run.bounds.policy_costs is None:
        text = RISK_AVERSE if run.bounds.is_risk_averse else INTRO
    else:
        text = RISK_AVERSE_WITH_COST if run.bounds.is_risk_averse else WITH_COST
    if run.bounds.overstated is not None:
        why = "" if "not a bound" in verdict else f"{WHY_IT_IS_AN_ESTIMATE} "
        text = why + text.partition(". ")[2]
    return verdict + text


# The section on time: phases of the run and of training, and loads of ranks.

PHASES: Mapping[str, tuple[str, str]] = {
    "forward_s": ("forward passes", BLUE),
    "backward_s": ("backward passes", ORANGE),
    "bound_s": ("lower bound", GREEN),
    "exchange_s": ("exchange between ranks", PURPLE),
}

OTHER = "everything else"


def timing(run: RunFolder) -> Section | None:
    """Show the time by iteration, phase and rank, from the events of the run; None if it has none."""
    iterations = run.log.iterations
    parts: list[Chart | DataTable] = []
    if iterations:
        layers = phase_layers(iterations)
        parts += [_phase_chart(layers, iterations), _phase_table(layers, iterations)]
    parts += solver_tables(run.log)
    loads = loads_of(run.log)
    if loads is not None:
        parts += [_rank_chart(loads), _rank_table(loads)]
    steps = _steps(run.log)
    if steps:
        parts.append(
            DataTable("steps", "Steps of the run", (TableColumn("step"), TableColumn("time", "seconds")), steps)
        )
    return Section("timing", "Time", parts, "Wall-clock seconds; phases are those of rank 0.") if parts else None


def phase_layers(iterations: Sequence[Event]) -> list[StackLayer]:
    """Return seconds of each phase by iteration; the rest of an iteration is a layer of its own."""
    layers = [
        StackLayer(title, colour, np.array([_seconds(event, name) for event in iterations]))
        for name, (title, colour) in PHASES.items()
    ]
    known = sum((layer.values for layer in layers), np.zeros(len(iterations)))
    return [*layers, StackLayer(OTHER, GREY, np.maximum(_lengths(iterations) - known, 0.0))]


def _lengths(iterations: Sequence[Event]) -> Floats:
    """Return seconds of each iteration.

    `elapsed_s` counts from the start of training, and restarts when a run is resumed.
    """
    elapsed = [0.0, *(_seconds(event, "elapsed_s") for event in iterations)]
    return np.array([later - earlier if later >= earlier else 0.0 for earlier, later in pairwise(elapsed)])


def _seconds(event: Event, name: str) -> float:
    value = event.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def _phase_chart(layers: Sequence[StackLayer], iterations: Sequence[Event]) -> Chart:
    numbers = np.array([event["iteration"] for event in iterations], np.float64)
    return numbers_chart(layers, numbers, "iteration", "phases", "Phases of each iteration", "s").explained(
        "Time of each iteration by phase. Iterations take longer as cuts accumulate."
    )


def _phase_table(layers: Sequence[StackLayer], iterations: Sequence[Event]) -> DataTable:
    total = sum(float(layer.values.sum()) for layer in layers)
    rows = [
        (layer.name, float(layer.values.sum()), float(layer.values.sum()) / total if total else None)
        for layer in layers
    ]
    solver = sum(_seconds(event, "solver_s") for event in iterations)
    solves = sum(int(_seconds(event, "solves")) for event in iterations)
    note = f"The LP solver worked {solver:,.2f} s, added over rank 0's threads; all ranks solved {solves:,} LPs."
    columns = (TableColumn("phase"), TableColumn("time", "seconds"), TableColumn("share", "percent"))
    return DataTable("phase-times", "Phases of training", columns, rows, note)


def _rank_chart(loads: RankLoads) -> Chart:
    layers = [StackLayer("busy", SKY, loads.busy_s), StackLayer("waiting for others", ORANGE, loads.waiting_s)]
    ranks = np.arange(len(loads), dtype=float)
    return numbers_chart(layers, ranks, "rank", "ranks", "Load of each rank", "s").explained(
        "Ranks wait for the slowest one, so an even load wastes the least time."
    )


def _rank_table(loads: RankLoads) -> DataTable:
    stragglers = loads.stragglers()
    rows: list[tuple[Cell, ...]] = [
        (
            rank,
            loads.hosts[rank],
            float(loads.busy_s[rank]),
            float(loads.waiting_s[rank]),
            float(loads.waiting_share[rank]),
            int(loads.times_slowest[rank]),
            *([f"straggler, {stragglers[rank]:.0%} more" if rank in stragglers else ""] if stragglers else []),
        )
        for rank in range(len(loads))
    ]
    columns = [
        TableColumn("rank", "integer"),
        TableColumn("host"),
        TableColumn("busy", "seconds"),
        TableColumn("waiting", "seconds"),
        TableColumn("waiting, share", "percent"),
        TableColumn("times slowest", "integer"),
        *([TableColumn("remark")] if stragglers else []),
    ]
    note = (
        "The last column counts the iterations in which a rank was the slowest. A straggler is over 10 % busier than "
        "the median rank."
    )
    return DataTable("rank-times", "Ranks", columns, rows, note, frozenset(stragglers))


def _steps(log: RunView) -> list[tuple[str, float]]:
    """Return seconds of each announced phase; the last one ends with the last event."""
    marks = [(str(event.get("name", "")), _seconds(event, "time")) for event in log.phases]
    if not marks:
        return []
    ends = [began for _, began in marks[1:]] + [log.last_time]
    return [(name, max(0.0, end - began)) for (name, began), end in zip(marks, ends, strict=True)]
