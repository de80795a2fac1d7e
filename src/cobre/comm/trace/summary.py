"""Statistics of the merged trace: how long operations took, and which ranks made others wait."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

from cobre.comm.flight_recorder import format_bytes, format_ns
from cobre.comm.trace.chrome import process_ranks, waits_in
from cobre.comm.trace.clocks import Alignment
from cobre.comm.trace.runs import Run

MAX_OPERATIONS = 20


@dataclass(slots=True)
class OperationFigures:
    """Statistics of the calls of one operation and label, of all ranks together."""

    nbytes: int = 0
    durations_ns: list[int] = field(default_factory=list)


@dataclass(slots=True)
class RankFigures:
    """Statistics of one process. All times are in nanoseconds.

    inside_ns: time inside calls. waited_ns: of which waiting for the last rank. synchronised: calls in which ranks
    waited for each other; came_last: of which it was the last to arrive. caused_ns: time that others waited for it.
    """

    calls: int = 0
    inside_ns: int = 0
    waited_ns: int = 0
    synchronised: int = 0
    came_last: int = 0
    caused_ns: int = 0
    first_ns: int = 0
    last_ns: int = 0

    @property
    def span_ns(self) -> int:
        """The time from its first call to the end of its last one."""
        return self.last_ns - self.first_ns


def operation_figures(run: Run) -> dict[tuple[str, str], OperationFigures]:
    """Statistics by operation and label, longest total time first; calls that did not end are left out."""
    figures: dict[tuple[str, str], OperationFigures] = defaultdict(OperationFigures)
    for recording in run.recordings:
        for call in recording.calls.values():
            if not call.is_under_way:
                entry = figures[call.operation, call.label]
                entry.nbytes += call.nbytes
                entry.durations_ns.append(call.end_ns - call.begin_ns)
    return dict(sorted(figures.items(), key=lambda item: -sum(item[1].durations_ns)))


def rank_figures(run: Run, alignment: Alignment) -> dict[int, RankFigures]:
    """Statistics by rank; calls of a process in its smaller worlds are included."""
    ranks = process_ranks(run)
    figures = {rank: RankFigures() for rank in sorted(ranks.values())}
    _add_calls(run, alignment, figures)
    for world in run.worlds:
        shown = {rank: figures[ranks[member.header.process]] for rank, member in world.members.items()}
        for _, wait in waits_in(world, alignment):
            shown[wait.last_rank].came_last += 1
            shown[wait.last_rank].caused_ns += sum(wait.waited_ns.values())
            for rank, waited_ns in wait.waited_ns.items():
                shown[rank].synchronised += 1
                shown[rank].waited_ns += waited_ns
    return figures


def _add_calls(run: Run, alignment: Alignment, figures: dict[int, RankFigures]) -> None:
    ranks = process_ranks(run)
    for recording in run.recordings:
        entry = figures[ranks[recording.header.process]]
        ended = [call for call in recording.calls.values() if not call.is_under_way]
        entry.inside_ns += sum(call.end_ns - call.begin_ns for call in ended)
        if ended:
            first_ns = alignment.common_ns(recording.header, ended[0].begin_ns)
            last_ns = alignment.common_ns(recording.header, ended[-1].end_ns)
            entry.first_ns = min(entry.first_ns, first_ns) if entry.calls else first_ns
            entry.last_ns = max(entry.last_ns, last_ns)
        entry.calls += len(ended)


def summary(run: Run, alignment: Alignment) -> str:
    """The summary that the command prints: notes, operations, ranks."""
    worlds = ", ".join(map(str, run.worlds))
    parts = [f"{worlds}; {alignment}", *map("note: {}".format, run.notes)]
    return "\n".join([*parts, "", *_operation_table(run), "", *_rank_table(run, alignment)])


def _operation_table(run: Run) -> Iterator[str]:
    figures = operation_figures(run)
    rows = []
    for (operation, label), entry in list(figures.items())[:MAX_OPERATIONS]:
        times = entry.durations_ns
        total, middle, longest = (format_ns(value) for value in (sum(times), median(times), max(times)))
        rows.append([operation, label, str(len(times)), format_bytes(entry.nbytes), total, middle, longest])
    yield from table(["operation", "label", "calls", "bytes", "total", "median", "longest"], rows, text_columns=2)
    if len(figures) > MAX_OPERATIONS:
        yield f"and {len(figures) - MAX_OPERATIONS} more operations that took less time"


def _rank_table(run: Run, alignment: Alignment) -> Iterator[str]:
    rows = [
        [
            f"rank {rank}",
            str(entry.calls),
            format_ns(entry.inside_ns),
            format_ns(entry.waited_ns),
            _share(entry.waited_ns, entry.span_ns),
            _share(entry.came_last, entry.synchronised),
            format_ns(entry.caused_ns),
        ]
        for rank, entry in rank_figures(run, alignment).items()
    ]
    yield from table(["", "calls", "in calls", "waited", "share of span", "came last", "others waited"], rows)


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def table(titles: Sequence[str], rows: Sequence[Sequence[str]], text_columns: int = 1) -> Iterator[str]:
    """The lines of a table with aligned columns: the first `text_columns` to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    for row in (titles, *rows):
        cells = [
            cell.ljust(width) if number < text_columns else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
