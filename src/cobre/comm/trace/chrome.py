"""The merged trace in the format of Perfetto (https://ui.perfetto.dev) and chrome://tracing.

One process per rank, one thread per communicator, one slice per call. Inside a call, a slice shows how long the rank
waited for the last one to arrive, and which one that was.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from cobre.comm.flight_recorder import RecordedCall
from cobre.comm.trace.clocks import Alignment
from cobre.comm.trace.matching import Waiting, matched_calls, waiting
from cobre.comm.trace.recording import Recording
from cobre.comm.trace.runs import Run, TracedCommunicator

Event = dict[str, Any]


def chrome_trace(run: Run, alignment: Alignment) -> dict[str, Any]:
    """The whole trace as one JSON object; times are in microseconds since the first call."""
    begin_ns = start_of(run, alignment)
    events = [*_process_names(run)]
    ranks = process_ranks(run)
    for thread, world in enumerate(run.worlds, 1):
        events += _world_events(world, thread, ranks, alignment, begin_ns)
    notes = {"clocks": str(alignment), "notes": run.notes}
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": notes}


def start_of(run: Run, alignment: Alignment) -> int:
    """The time of the first call, in nanoseconds of the common time."""
    firsts = [(recording, next(iter(recording.calls.values()), None)) for recording in run.recordings]
    begins = [alignment.common_ns(recording.header, call.begin_ns) for recording, call in firsts if call]
    return min(begins, default=0)


def process_ranks(run: Run) -> dict[tuple[str, int], int]:
    """The rank that each process is shown as: its rank in its largest world."""
    ranks: dict[tuple[str, int], int] = {}
    for recording in run.recordings:
        ranks.setdefault(recording.header.process, recording.header.rank)
    return ranks


def waits_in(world: TracedCommunicator, alignment: Alignment) -> Iterator[tuple[int, Waiting]]:
    """For each call in which ranks wait for each other: its number, and how long each rank waited for the last one."""
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
                yield _wait_event(wait, rank, start_ns) | track


def _call_event(recording: Recording, call: RecordedCall, start_ns: int) -> Event:
    args: Event = {"operation": call.operation, "sequence": call.sequence, "bytes": call.nbytes, "label": call.label}
    end_ns = call.end_ns or max(recording.last_ns, call.begin_ns)
    if call.is_under_way:
        args["state"] = "still running when the trace ended"
    if call.sequence == recording.failed_sequence:
        args["state"] = f"failed: {recording.failure}"
    return _slice(call.label or call.operation, call.operation, start_ns, end_ns - call.begin_ns) | {"args": args}


def _wait_event(wait: Waiting, rank: int, start_ns: int) -> Event:
    return _slice(f"waiting for rank {wait.last_rank}", "waiting", start_ns, wait.waited_ns[rank])


def _slice(name: str, category: str, start_ns: int, duration_ns: int) -> Event:
    return {"ph": "X", "name": name, "cat": category, "ts": start_ns / 1e3, "dur": duration_ns / 1e3}
