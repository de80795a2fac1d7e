"""One time for all ranks.

Processes of one machine read the same clock. For different machines the time of day gives a first guess, and the calls
themselves a better answer: no rank ends a barrier before the last one has begun it. Each such call says by how much two
clocks can differ at most, in both directions; all calls together leave a small interval, and its middle is taken. This
is what NTP does with its messages. Where clocks drift so far that no answer suits all calls, the run is cut into
pieces, with an answer for each.
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
"""`bounds[i][j]`: by how much the offset of clock j can exceed that of clock i at most."""

Knot = tuple[int, int]
"""At this time of a clock, so much is added to get the common time."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """For each clock its knots in order; how sure they are at worst; how many calls and pieces they rest on."""

    knots: Mapping[str, Sequence[Knot]]
    uncertainty_ns: float
    calls: int
    pieces: int

    def common_ns(self, header: Header, own_ns: int) -> int:
        """A moment of this process's monotonic time in the time that all share."""
        return own_ns + _offset_at(self.knots[header.clock_key], own_ns)

    def __str__(self) -> str:
        count = len(self.knots)
        if count == 1:
            return "one clock for all ranks"
        if math.isinf(self.uncertainty_ns):
            return f"{count} clocks, some aligned by the time of day only: no call that all ranks made ties them"
        drift = f", in {self.pieces} pieces because they drift" if self.pieces > 1 else ""
        return f"{count} clocks, aligned by {self.calls} calls to within {self.uncertainty_ns / 1e3:.0f} us{drift}"


@dataclass(frozen=True, slots=True)
class _Anchor:
    """A call that ties clocks: for each of its clocks the first end and the last begin, in that clock's time."""

    first_end: Mapping[int, int]
    last_begin: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class _Piece:
    """A stretch of the run during which one offset for each clock suits all calls."""

    anchors: Sequence[_Anchor]
    offsets_ns: Sequence[int]
    uncertainty_ns: Sequence[float]

    def ties(self, clock: int) -> bool:
        """Whether calls of this piece tell something about the clock."""
        return any(clock in anchor.last_begin for anchor in self.anchors)

    def knot(self, clock: int) -> Knot:
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
    tied = [[piece for piece in pieces if piece.ties(number)] or pieces[:1] for number in range(len(clocks))]
    knots = {clock: [piece.knot(number) for piece in tied[number]] for number, clock in enumerate(clocks)}
    uncertainty = max(piece.uncertainty_ns[number] for number in range(len(clocks)) for piece in tied[number])
    return Alignment(knots, uncertainty, len(anchors), len(pieces))


def _offset_at(knots: Sequence[Knot], own_ns: int) -> int:
    """On the straight line through the two nearest knots."""
    if len(knots) == 1:
        return knots[0][1]
    after = min(max(bisect(knots, own_ns, key=itemgetter(0)), 1), len(knots) - 1)
    (begin_ns, first), (end_ns, second) = knots[after - 1], knots[after]
    return first + round((second - first) * (own_ns - begin_ns) / max(end_ns - begin_ns, 1))


def _pieces(anchors: Sequence[_Anchor], guesses_ns: Sequence[int]) -> list[_Piece]:
    """As few as will do, each half of a larger one."""
    bounds = _bounds(anchors, len(guesses_ns))
    offsets, uncertainty, is_possible = solve(guesses_ns, bounds)
    if is_possible or len(anchors) < 2:
        return [_Piece(anchors, offsets, uncertainty)]
    half = len(anchors) // 2
    return _pieces(anchors[:half], guesses_ns) + _pieces(anchors[half:], guesses_ns)


def solve(guesses_ns: Sequence[int], bounds: Bounds) -> tuple[list[int], list[float], bool]:
    """Offsets that keep to the bounds, how far each may be off, and whether the bounds can be kept at all.

    Two extreme answers keep to all bounds: each offset as large as it can be, and as small. So does their middle.
    """
    tight = _tightened(bounds)
    is_possible = all(tight[clock][clock] >= 0 for clock in range(len(tight)))
    known = tight if is_possible else bounds
    offsets: list[int] = []
    uncertainty: list[float] = []
    for clock, guess in enumerate(guesses_ns):
        # The first clock that calls tie to this one; where there is none, the time of day is all we have.
        root = next((other for other in range(clock) if math.isfinite(known[other][clock])), clock)
        above, below = known[root][clock], known[clock][root]
        middle = 0 if root == clock else round((above - below) / 2)
        offsets.append((offsets[root] if root != clock else guess) + middle)
        uncertainty.append(0.0 if clock == 0 else math.inf if root == clock else abs(above + below) / 2)
    return offsets, uncertainty, is_possible


def _anchors(run: Run, clocks: Sequence[str]) -> list[_Anchor]:
    """The calls that tie clocks, in the order in which they happened."""
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
    """No rank's end, in common time, is before any rank's begin."""
    bounds = [[0.0 if i == j else math.inf for j in range(clocks)] for i in range(clocks)]
    for anchor in anchors:
        for (i, end_ns), (j, begin_ns) in product(anchor.first_end.items(), anchor.last_begin.items()):
            if i != j:
                bounds[i][j] = min(bounds[i][j], end_ns - begin_ns)
    return bounds


def _tightened(bounds: Bounds) -> Bounds:
    """What bounds over other clocks imply (all shortest paths)."""
    tight = [list(row) for row in bounds]
    for k, i, j in product(range(len(tight)), repeat=3):
        tight[i][j] = min(tight[i][j], tight[i][k] + tight[k][j])
    return tight
