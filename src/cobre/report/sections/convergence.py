"""The section on convergence: bounds by iteration and the verdict."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from cobre.core.arrays import Floats
from cobre.io.storage.stored_json import Event
from cobre.report.bounds import Bounds
from cobre.report.charts import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, Chart, StackLayer, bounds_chart, numbers_chart
from cobre.report.run_folder import RunFolder
from cobre.report.section import Cell, DataTable, Section, TableColumn
from cobre.report.solver_work import RankLoads, loads_of, solver_tables
from cobre.runs.view import RunView

MIN_ITERATIONS_TO_ZOOM = 8

INTRO = (
    "The lower bound is proven. The upper bound is a statistical estimate: the mean cost of the paths sampled in one "
    "iteration. It can be above or below the true cost of the policy, and even below the lower bound."
)

EXACT = "Both bounds are proven: the upper bound is the cost of the policy over all paths of the tree."

RISK_AVERSE = (
    "The lower bound is proven, for the risk-adjusted cost that training minimises. The other line is the mean cost of "
    "the paths sampled in each iteration, which is not an upper bound of the risk-adjusted cost."
)

NOT_A_BOUND = (
    "Inflows that are corrected at zero depend on their past, so that the cost-to-go is not convex: what is called "
    "the lower bound estimates the cost, and may lie above it."
)


HOW_TO_READ = "Training has converged when the lower bound no longer rises and lies inside the band."

HOW_TO_READ_EXACT = "Training has converged when the two bounds meet."

HOW_TO_READ_RISK_AVERSE = (
    "Training has converged when the lower bound no longer rises, inside the band or not. "
    "`cobre bound` computes an upper bound."
)

WHY_AGAIN = "The second half in detail, without the wide range of the first iterations."


def convergence(run: RunFolder) -> Section | None:
    """Bounds of all iterations, and again of the later half, since the first ones often take most of the height."""
    bounds = run.bounds
    if not len(bounds):
        return None
    parts: list[Chart] = [bounds_chart(bounds, "bounds", "Bounds by iteration").explained(_how_to_read(bounds))]
    if len(bounds) >= MIN_ITERATIONS_TO_ZOOM:
        later = _later_half(bounds)
        title = f"Bounds from iteration {later.iteration[0]} on"
        parts.append(bounds_chart(later, "bounds-later", title).explained(WHY_AGAIN))
    return Section("convergence", "Convergence", parts, _intro(run))


def _how_to_read(bounds: Bounds) -> str:
    if bounds.is_exact:
        return HOW_TO_READ_EXACT
    return HOW_TO_READ_RISK_AVERSE if bounds.is_risk_averse else HOW_TO_READ


def _intro(run: RunFolder) -> str:
    """The verdict, and an explanation of the upper bound."""
    judged = run.bounds.verdict(is_interrupted=bool(run.summary.get("is_interrupted")))
    verdict = "" if judged is None else f"{judged.sentence[:1].upper()}{judged.sentence[1:]}. "
    if run.bounds.is_exact:
        return verdict + EXACT
    told = RISK_AVERSE if run.bounds.is_risk_averse else INTRO
    if run.bounds.overstated is not None:
        why = "" if "not a bound" in verdict else f"{NOT_A_BOUND} "
        told = why + told.partition(". ")[2]
    return verdict + told


def _later_half(bounds: Bounds) -> Bounds:
    half = slice(len(bounds) // 2, None)
    return replace(
        bounds,
        iteration=bounds.iteration[half],
        lower=bounds.lower[half],
        upper=bounds.upper[half],
        half_width=bounds.half_width[half],
    )


# The section on time: phases of the run and of training, and loads of ranks.


PHASES: Mapping[str, tuple[str, str]] = {
    "forward_s": ("forward passes", BLUE),
    "backward_s": ("backward passes", ORANGE),
    "bound_s": ("lower bound", GREEN),
    "exchange_s": ("exchange between ranks", PURPLE),
}

OTHER = "everything else"

PHASE_EXPLANATION = "Time of each iteration by phase. Iterations take longer as cuts accumulate."

RANK_EXPLANATION = "Ranks wait for the slowest one, so an even load wastes the least time."


def timing(run: RunFolder) -> Section | None:
    """Where the time went, by iteration, phase and rank, from the events of the run; None if it has none."""
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
    """Seconds of each phase by iteration; the rest of an iteration is a layer of its own."""
    layers = [
        StackLayer(title, colour, np.array([_seconds(event, name) for event in iterations]))
        for name, (title, colour) in PHASES.items()
    ]
    known = sum((layer.values for layer in layers), np.zeros(len(iterations)))
    return [*layers, StackLayer(OTHER, GREY, np.maximum(_lengths(iterations) - known, 0.0))]


def _lengths(iterations: Sequence[Event]) -> Floats:
    """Seconds of each iteration: `elapsed_s` counts from the start of training, and restarts when a run is resumed."""
    elapsed = [0.0, *(_seconds(event, "elapsed_s") for event in iterations)]
    return np.array([later - earlier if later >= earlier else 0.0 for earlier, later in pairwise(elapsed)])


def _seconds(event: Event, name: str) -> float:
    value = event.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def _phase_chart(layers: Sequence[StackLayer], iterations: Sequence[Event]) -> Chart:
    numbers = np.array([event["iteration"] for event in iterations], np.float64)
    return numbers_chart(layers, numbers, "iteration", "phases", "Phases of each iteration", "s").explained(
        PHASE_EXPLANATION
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
    return numbers_chart(layers, ranks, "rank", "ranks", "Load of each rank", "s").explained(RANK_EXPLANATION)


def _rank_table(loads: RankLoads) -> DataTable:
    late = loads.stragglers()
    rows: list[tuple[Cell, ...]] = [
        (
            rank,
            loads.hosts[rank],
            float(loads.busy_s[rank]),
            float(loads.waiting_s[rank]),
            float(loads.waiting_share[rank]),
            int(loads.times_slowest[rank]),
            *([f"straggler, {late[rank]:.0%} more" if rank in late else ""] if late else []),
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
        *([TableColumn("remark")] if late else []),
    ]
    note = (
        "The last column counts the iterations in which a rank was the slowest. A straggler is over 10 % busier than "
        "the median rank."
    )
    return DataTable("rank-times", "Ranks", columns, rows, note, frozenset(late))


def _steps(log: RunView) -> list[tuple[str, float]]:
    """Seconds of each announced phase; the last one ends with the last event."""
    marks = [(str(event.get("name", "")), _seconds(event, "time")) for event in log.phases]
    if not marks:
        return []
    ends = [began for _, began in marks[1:]] + [log.last_time]
    return [(name, max(0.0, end - began)) for (name, began), end in zip(marks, ends, strict=True)]
