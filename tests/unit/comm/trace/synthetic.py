"""Trace files as ranks on several machines would write them, from a plan in true time."""

import json

HEADER = {"cobre_trace": 1, "backend": "tcp", "size": 2, "communicator": 1, "pid": 100}


def header(rank, *, clock_offset_ns=0, wall_error_ns=0, host=None, **changes):
    """Return a rank's first line; `clock_offset_ns`: what its clock shows at true time 0."""
    host = host or f"host{rank}"
    times = {"monotonic_ns": clock_offset_ns, "time_ns": 1_700_000_000_000_000_000 + wall_error_ns}
    return {**HEADER, "rank": rank, "host": host, "clock": f"boot of {host}", **times, **changes}


def call(sequence, begin_ns, end_ns, operation="barrier", nbytes=0, label=""):
    return {
        "sequence": sequence,
        "operation": operation,
        "nbytes": nbytes,
        "label": label,
        "begin_ns": begin_ns,
        "end_ns": end_ns,
    }


def shifted(entry, offset_ns):
    """Return a call as a clock records it that is ahead of true time."""
    end_ns = entry["end_ns"] and entry["end_ns"] + offset_ns
    return {**entry, "begin_ns": entry["begin_ns"] + offset_ns, "end_ns": end_ns}


def write(folder, head, entries, *, closed=True, name=None):
    lines = [head, *entries, *([{"closed": True, "monotonic_ns": 0, "time_ns": 0}] if closed else [])]
    path = folder / (name or f"rank-{head['rank']}-{head['pid']}.jsonl")
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def barriers(arrivals_ns, latency_ns=10_000):
    """Return the barrier calls of each rank in true time: all leave one latency after the last has entered."""
    ends = [max(arrivals) + latency_ns for arrivals in arrivals_ns]
    ranks = range(len(arrivals_ns[0]))
    return [
        [call(number + 1, arrivals[rank], ends[number]) for number, arrivals in enumerate(arrivals_ns)]
        for rank in ranks
    ]
