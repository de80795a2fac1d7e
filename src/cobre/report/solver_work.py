"""Work of the LP solver in each phase, from the events."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cobre.report.data_table import Cell, DataTable, TableColumn
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
