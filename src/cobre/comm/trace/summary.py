"""Outputs of a merged trace: a file for trace viewers, and tables of times and of ranks that others wait for."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from cobre.comm.flight_recorder import RecordedCall, format_bytes, format_ns
from cobre.comm.trace.reading import Alignment, Run, TracedCommunicator, Waiting, matched_calls, waiting
from cobre.comm.trace.recording import Recording

# The merged trace in the format of Perfetto (https://ui.perfetto.dev) and chrome://tracing.
#
# One process per rank, one thread per communicator, one slice per call. Inside a call, a slice shows how long the
# rank waited for the last one to arrive, and which one that was.

Event = dict[str, Any]


def chrome_trace(run: Run, alignment: Alignment) -> dict[str, Any]:
    """Return the whole trace as one JSON object; times are in microseconds since the first call."""
    begin_ns = start_of(run, alignment)
    events = [*_process_names(run)]
    ranks = process_ranks(run)
    for thread, world in enumerate(run.worlds, 1):
        events += _world_events(world, thread, ranks, alignment, begin_ns)
    notes = {"clocks": str(alignment), "notes": run.notes}
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": notes}


def start_of(run: Run, alignment: Alignment) -> int:
    """Return the time of the first call, in nanoseconds of the common time."""
    firsts = [(recording, next(iter(recording.calls.values()), None)) for recording in run.recordings]
    begins = [alignment.common_ns(recording.header, call.begin_ns) for recording, call in firsts if call]
    return min(begins, default=0)


def process_ranks(run: Run) -> dict[tuple[str, int], int]:
    """Return the rank that each process is shown as: its rank in its largest world."""
    ranks: dict[tuple[str, int], int] = {}
    for recording in run.recordings:
        ranks.setdefault(recording.header.process, recording.header.rank)
    return ranks


def waits_in(world: TracedCommunicator, alignment: Alignment) -> Iterator[tuple[int, Waiting]]:
    """Yield number and waiting times, by rank, of each call in which ranks wait for the last one."""
    headers = {rank: recording.header for rank, recording in world.members.items()}
    for matched in matched_calls(world):
        begins = {rank: alignment.common_ns(headers[rank], call.begin_ns) for rank, call in matched.calls.items()}
        wait = waiting(matched, begins)
        if wait is not None:
            yield matched.sequence, wait


def _process_names(run: Run) -> Iterator[Event]:
    for (host, pid), rank in process_ranks(run).items():
        yield _metadata("process_name", rank, 0, name=f"rank {rank} ({host}, pid {pid})")
        yield _metadata("process_sort_index", rank, 0, sort_index=rank)


def _metadata(kind: str, pid: int, tid: int, **args: object) -> Event:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": args}


def _world_events(
    world: TracedCommunicator, thread: int, ranks: Mapping[tuple[str, int], int], alignment: Alignment, begin_ns: int
) -> Iterator[Event]:
    waits = dict(waits_in(world, alignment))
    for rank, recording in sorted(world.members.items()):
        track = {"pid": ranks[recording.header.process], "tid": thread}
        yield _metadata("thread_name", **track, name=str(world))
        for call in recording.calls.values():
            start_ns = alignment.common_ns(recording.header, call.begin_ns) - begin_ns
            yield _call_event(recording, call, start_ns) | track
            wait = waits.get(call.sequence)
            if wait is not None and wait.waited_ns[rank] > 0:
                yield _slice(f"waiting for rank {wait.last_rank}", "waiting", start_ns, wait.waited_ns[rank]) | track


def _call_event(recording: Recording, call: RecordedCall, start_ns: int) -> Event:
    args: Event = {"operation": call.operation, "sequence": call.sequence, "bytes": call.nbytes, "label": call.label}
    end_ns = call.end_ns or max(recording.last_ns, call.begin_ns)
    if call.is_in_progress:
        args["state"] = "still running when the trace ended"
    if call.sequence == recording.failed_sequence:
        args["state"] = f"failed: {recording.failure}"
    return _slice(call.label or call.operation, call.operation, start_ns, end_ns - call.begin_ns) | {"args": args}


def _slice(name: str, category: str, start_ns: int, duration_ns: int) -> Event:
    return {"ph": "X", "name": name, "cat": category, "ts": start_ns / 1e3, "dur": duration_ns / 1e3}


MAX_OPERATIONS = 20


@dataclass(slots=True)
class OperationStatistics:
    """Statistics of the calls of one operation and label, of all ranks together."""

    nbytes: int = 0
    durations_ns: list[int] = field(default_factory=list)


@dataclass(slots=True)
class RankStatistics:
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


def operation_statistics(run: Run) -> dict[tuple[str, str], OperationStatistics]:
    """Return statistics by operation and label, longest total time first; calls that did not end are left out."""
    statistics: dict[tuple[str, str], OperationStatistics] = defaultdict(OperationStatistics)
    for recording in run.recordings:
        for call in recording.calls.values():
            if not call.is_in_progress:
                entry = statistics[call.operation, call.label]
                entry.nbytes += call.nbytes
                entry.durations_ns.append(call.end_ns - call.begin_ns)
    return dict(sorted(statistics.items(), key=lambda item: -sum(item[1].durations_ns)))


def rank_statistics(run: Run, alignment: Alignment) -> dict[int, RankStatistics]:
    """Return statistics by rank; calls of a process in its smaller worlds are included."""
    ranks = process_ranks(run)
    statistics = {rank: RankStatistics() for rank in sorted(ranks.values())}
    _add_calls(run, alignment, statistics)
    for world in run.worlds:
        by_member = {rank: statistics[ranks[member.header.process]] for rank, member in world.members.items()}
        for _, wait in waits_in(world, alignment):
            by_member[wait.last_rank].came_last += 1
            by_member[wait.last_rank].caused_ns += sum(wait.waited_ns.values())
            for rank, waited_ns in wait.waited_ns.items():
                by_member[rank].synchronised += 1
                by_member[rank].waited_ns += waited_ns
    return statistics


def _add_calls(run: Run, alignment: Alignment, statistics: dict[int, RankStatistics]) -> None:
    ranks = process_ranks(run)
    for recording in run.recordings:
        entry = statistics[ranks[recording.header.process]]
        ended = [call for call in recording.calls.values() if not call.is_in_progress]
        entry.inside_ns += sum(call.end_ns - call.begin_ns for call in ended)
        if ended:
            first_ns = alignment.common_ns(recording.header, ended[0].begin_ns)
            last_ns = alignment.common_ns(recording.header, ended[-1].end_ns)
            entry.first_ns = min(entry.first_ns, first_ns) if entry.calls else first_ns
            entry.last_ns = max(entry.last_ns, last_ns)
        entry.calls += len(ended)


def summary(run: Run, alignment: Alignment) -> str:
    """Return the summary that the command prints: notes, operations, ranks."""
    worlds = ", ".join(map(str, run.worlds))
    parts = [f"{worlds}; {alignment}", *map("note: {}".format, run.notes)]
    return "\n".join([*parts, "", *_operation_table(run), "", *_rank_table(run, alignment)])


def _operation_table(run: Run) -> Iterator[str]:
    statistics = operation_statistics(run)
    rows = []
    for (operation, label), entry in list(statistics.items())[:MAX_OPERATIONS]:
        times = entry.durations_ns
        total, median_time, longest = (format_ns(value) for value in (sum(times), median(times), max(times)))
        rows.append([operation, label, str(len(times)), format_bytes(entry.nbytes), total, median_time, longest])
    yield from table(["operation", "label", "calls", "bytes", "total", "median", "longest"], rows, text_columns=2)
    if len(statistics) > MAX_OPERATIONS:
        yield f"and {len(statistics) - MAX_OPERATIONS} more operations that took less time"


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
        for rank, entry in rank_statistics(run, alignment).items()
    ]
    yield from table(["", "calls", "in calls", "waited", "share of span", "came last", "others waited"], rows)


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def table(titles: Sequence[str], rows: Sequence[Sequence[str]], text_columns: int = 1) -> Iterator[str]:
    """Yield the lines of a table: the first `text_columns` aligned to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    for row in (titles, *rows):
        cells = [
            cell.ljust(width) if number < text_columns else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
