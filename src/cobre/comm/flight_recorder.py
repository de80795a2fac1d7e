"""The flight recorder: the last calls of a rank, and the report that shows them.

The native guard always records every call, in a ring buffer. Here the records are given names, and turned into text for
a hang or a failure. Times are those of `time.monotonic_ns`.
"""

import os
import socket
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cobre.comm.types import Operation

CALLS_IN_REPORT = 10
CALLS_IN_LOG_LINE = 5

Record = tuple[int, int, int, str, int, int]
"""Sequence, operation, bytes, label, begin and end, as the guard keeps them."""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One call of this rank. nbytes: of its payload. begin_ns, end_ns: `time.monotonic_ns`; end_ns is 0 during it."""

    sequence: int
    operation: str
    nbytes: int
    label: str
    begin_ns: int
    end_ns: int

    @property
    def is_under_way(self) -> bool:
        """Whether the call has not ended yet."""
        return self.end_ns == 0

    def __str__(self) -> str:
        label = f" {self.label!r}" if self.label else ""
        payload = f", {format_bytes(self.nbytes)}" if self.nbytes else ""
        return f"#{self.sequence} {self.operation}{label}{payload}"


def named_calls(records: Iterable[Record]) -> list[RecordedCall]:
    """The guard's records as `RecordedCall`s, with operations by name."""
    return [
        RecordedCall(
            sequence, Operation(operation).title, nbytes, str(label), begin_ns, end_ns and max(begin_ns, end_ns)
        )
        for sequence, operation, nbytes, label, begin_ns, end_ns in records
    ]


def describe_calls(calls: Sequence[RecordedCall]) -> str:
    """The last CALLS_IN_LOG_LINE calls in one line, for a log."""
    now_ns = time.monotonic_ns()
    return "; ".join(f"{call} {_duration(call, now_ns)}" for call in calls[-CALLS_IN_LOG_LINE:]) or "none"


def report(who: str, state: str, calls: Sequence[RecordedCall], failure: BaseException | None) -> str:
    """A text of several lines: rank and state, the call under way, the calls before it, and the first failure."""
    now_ns = time.monotonic_ns()
    count = calls[-1].sequence if calls else 0
    lines = [f"{who}, host {socket.gethostname()}, pid {os.getpid()}: {state}, {count} calls made"]
    lines += [f"  now in {call}, {_duration(call, now_ns)}" for call in calls[-1:] if call.is_under_way]
    lines += _history([call for call in calls[-CALLS_IN_REPORT:] if not call.is_under_way], now_ns)
    if failure is not None:
        lines.append(f"  first failure: {type(failure).__name__}: {failure}")
    return "\n".join(lines) + "\n"


def _history(calls: Sequence[RecordedCall], now_ns: int) -> list[str]:
    if not calls:
        return []
    width = max(len(str(call)) for call in calls)
    ends = [f"{_duration(call, now_ns)}, ended {_since(call.end_ns, now_ns)} ago" for call in calls]
    return ["  last calls:", *(f"    {call!s:{width}}  {end}" for call, end in zip(calls, ends, strict=True))]


def format_bytes(nbytes: float) -> str:
    """A number of bytes for people, in decimal units: "3.2 MB"."""
    for unit in ("B", "KB", "MB"):
        if nbytes < 1000:
            return f"{nbytes:.3g} {unit}"
        nbytes /= 1000
    return f"{nbytes:.1f} GB"


def format_ns(duration_ns: float) -> str:
    """A duration for people: "1.5 ms"."""
    if duration_ns < 1e6:
        return f"{duration_ns / 1e3:.1f} us"
    if duration_ns < 1e9:
        return f"{duration_ns / 1e6:.1f} ms"
    return f"{duration_ns / 1e9:.1f} s"


def _duration(call: RecordedCall, now_ns: int) -> str:
    if call.is_under_way:
        return f"under way for {_since(call.begin_ns, now_ns)}"
    return f"took {format_ns(call.end_ns - call.begin_ns)}"


def _since(then_ns: int, now_ns: int) -> str:
    return format_ns(max(0, now_ns - then_ns))
