"""Aligns the clocks of all ranks.

Processes of one machine read the same clock. For different machines the time of day gives a first estimate, and the
calls themselves a better one: no rank leaves a barrier before the last one has entered it. Each such call bounds the
offset between two clocks in both directions; all calls together leave a small interval, whose middle is used. NTP does
the same with its messages. If clocks drift so far that no offset satisfies all calls, the run is split into pieces with
an offset for each.
"""

import math
from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from operator import itemgetter

from cobre.comm.trace.matching import MatchedCall, matched_calls
from cobre.comm.trace.recording import Header
from cobre.comm.trace.runs import Run

Bounds = list[list[float]]
"""`bounds[i][j]`: the most by which the offset of clock j can exceed that of clock i, in nanoseconds."""

OffsetSample = tuple[int, int]
"""A time of a clock, and the offset to add there to get the common time; both in nanoseconds."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """Offsets of all clocks.

    samples: by clock, in the order of time; offsets in between are interpolated. uncertainty_ns: the largest of all
    clocks. calls, pieces: what the offsets were computed from.
    """

    samples: Mapping[str, Sequence[OffsetSample]]
    uncertainty_ns: float
    calls: int
    pieces: int

    def common_ns(self, header: Header, own_ns: int) -> int:
        """A time of this process's monotonic clock, converted to the common time."""
        return own_ns + _offset_at(self.samples[header.clock_key], own_ns)

    def __str__(self) -> str:
        count = len(self.samples)
        if count == 1:
            return "one clock for all ranks"
        if math.isinf(self.uncertainty_ns):
            return f"{count} clocks, some aligned by the time of day only, for lack of calls that all ranks made"
        drift = f", in {self.pieces} pieces because of drift" if self.pieces > 1 else ""
        return f"{count} clocks, aligned by {self.calls} calls to within {self.uncertainty_ns / 1e3:.0f} us{drift}"


@dataclass(frozen=True, slots=True)
class _Anchor:
    """A call that relates clocks: for each of them the first end and the last begin, in that clock's time."""

    first_end: Mapping[int, int]
    last_begin: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of the run in which one offset for each clock satisfies all calls."""

    anchors: Sequence[_Anchor]
    offsets_ns: Sequence[int]
    uncertainty_ns: Sequence[float]

    def relates(self, clock: int) -> bool:
        """Whether calls of this piece relate the clock to others."""
        return any(clock in anchor.last_begin for anchor in self.anchors)

    def sample(self, clock: int) -> OffsetSample:
        """The clock's offset, in the middle of the piece."""
        times = [anchor.last_begin[clock] for anchor in self.anchors if clock in anchor.last_begin] or [0]
        return (times[0] + times[-1]) // 2, self.offsets_ns[clock]


def align_clocks(run: Run) -> Alignment:
    """Offsets for all clocks of the run; the first recording's clock is the common one."""
    headers = [recording.header for recording in run.recordings]
    clocks = list(dict.fromkeys(header.clock_key for header in headers))
    guesses = {header.clock_key: header.wall_offset_ns - headers[0].wall_offset_ns for header in reversed(headers)}
    anchors = _anchors(run, clocks) if len(clocks) > 1 else []
    pieces = _pieces(anchors, [guesses[clock] for clock in clocks])
    related = [[piece for piece in pieces if piece.relates(number)] or pieces[:1] for number in range(len(clocks))]
    samples = {clock: [piece.sample(number) for piece in related[number]] for number, clock in enumerate(clocks)}
    uncertainty = max(piece.uncertainty_ns[number] for number in range(len(clocks)) for piece in related[number])
    return Alignment(samples, uncertainty, len(anchors), len(pieces))


def _offset_at(samples: Sequence[OffsetSample], own_ns: int) -> int:
    """The offset at a time of the clock: linear interpolation between the two nearest samples."""
    if len(samples) == 1:
        return samples[0][1]
    after = min(max(bisect(samples, own_ns, key=itemgetter(0)), 1), len(samples) - 1)
    (begin_ns, first), (end_ns, second) = samples[after - 1], samples[after]
    return first + round((second - first) * (own_ns - begin_ns) / max(end_ns - begin_ns, 1))


def _pieces(anchors: Sequence[_Anchor], guesses_ns: Sequence[int]) -> list[_Piece]:
    """The run in as few pieces as are needed; pieces are halved until their bounds can be satisfied."""
    bounds = _bounds(anchors, len(guesses_ns))
    offsets, uncertainty, is_possible = solve(guesses_ns, bounds)
    if is_possible or len(anchors) < 2:
        return [_Piece(anchors, offsets, uncertainty)]
    half = len(anchors) // 2
    return _pieces(anchors[:half], guesses_ns) + _pieces(anchors[half:], guesses_ns)


def solve(guesses_ns: Sequence[int], bounds: Bounds) -> tuple[list[int], list[float], bool]:
    """Offsets that satisfy the bounds, the uncertainty of each, and whether the bounds can be satisfied at all.

    The largest and the smallest possible offsets both satisfy all bounds, and so does their mean.
    """
    tight = _tightened(bounds)
    is_possible = all(tight[clock][clock] >= 0 for clock in range(len(tight)))
    known = tight if is_possible else bounds
    offsets: list[int] = []
    uncertainty: list[float] = []
    for clock, guess in enumerate(guesses_ns):
        # The first clock that calls relate to this one; if there is none, only the time of day is known.
        root = next((other for other in range(clock) if math.isfinite(known[other][clock])), clock)
        above, below = known[root][clock], known[clock][root]
        middle = 0 if root == clock else round((above - below) / 2)
        offsets.append((offsets[root] if root != clock else guess) + middle)
        uncertainty.append(0.0 if clock == 0 else math.inf if root == clock else abs(above + below) / 2)
    return offsets, uncertainty, is_possible


def _anchors(run: Run, clocks: Sequence[str]) -> list[_Anchor]:
    """The calls that relate clocks, in the order in which they happened."""
    number_of = {clock: number for number, clock in enumerate(clocks)}
    anchors: list[tuple[int, _Anchor]] = []
    for world in run.worlds:
        clock_of = [number_of[member.header.clock_key] for _, member in sorted(world.members.items())]
        if len(set(clock_of)) > 1:
            wall_ns = world.members[min(world.members)].header.wall_offset_ns
            found = [matched for matched in matched_calls(world) if matched.is_anchor]
            anchors += [(matched.calls[0].begin_ns + wall_ns, _anchor(matched, clock_of)) for matched in found]
    return [anchor for _, anchor in sorted(anchors, key=lambda timed: timed[0])]


def _anchor(matched: MatchedCall, clock_of: Sequence[int]) -> _Anchor:
    first_end: dict[int, int] = {}
    last_begin: dict[int, int] = {}
    for rank, call in matched.calls.items():
        clock = clock_of[rank]
        first_end[clock] = min(first_end.get(clock, call.end_ns), call.end_ns)
        last_begin[clock] = max(last_begin.get(clock, call.begin_ns), call.begin_ns)
    return _Anchor(first_end, last_begin)


def _bounds(anchors: Sequence[_Anchor], clocks: int) -> Bounds:
    """Bounds on the offsets: in common time, no rank ends a call before all ranks have begun it."""
    bounds = [[0.0 if i == j else math.inf for j in range(clocks)] for i in range(clocks)]
    for anchor in anchors:
        for (i, end_ns), (j, begin_ns) in product(anchor.first_end.items(), anchor.last_begin.items()):
            if i != j:
                bounds[i][j] = min(bounds[i][j], end_ns - begin_ns)
    return bounds


def _tightened(bounds: Bounds) -> Bounds:
    """The bounds, tightened by those through other clocks (Floyd-Warshall)."""
    tight = [list(row) for row in bounds]
    for k, i, j in product(range(len(tight)), repeat=3):
        tight[i][j] = min(tight[i][j], tight[i][k] + tight[k][j])
    return tight
