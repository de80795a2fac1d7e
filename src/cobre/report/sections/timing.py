"""The section on time: phases of the run and of training, and loads of ranks."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from cobre.core.arrays import Floats
from cobre.io.storage.event_file import Event
from cobre.report.bar_charts import StackLayer, numbers_chart
from cobre.report.chart import Chart
from cobre.report.data_table import Cell, DataTable, TableColumn
from cobre.report.palette import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY
from cobre.report.rank_loads import RankLoads, loads_of
from cobre.report.run_folder import RunFolder
from cobre.report.section import Section
from cobre.report.solver_work import solver_tables
from cobre.runs.view import RunView

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
