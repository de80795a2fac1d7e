"""Runs of a trace directory: files that belong together, calls matched across ranks, and a common clock."""

import math
from bisect import bisect
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from operator import itemgetter
from pathlib import Path

from cobre.comm.flight_recorder import RecordedCall
from cobre.comm.trace.recording import Header, NotATraceError, Recording, read_recording
from cobre.comm.types import Operation
from cobre.errors import CobreError


class TraceError(CobreError):
    """The directory contains nothing that can be merged."""


@dataclass(frozen=True, slots=True)
class TracedCommunicator:
    """The recordings of one communicator, by rank."""

    backend: str
    size: int
    number: int
    members: Mapping[int, Recording]

    @property
    def missing_ranks(self) -> list[int]:
        """The ranks that wrote no file."""
        return [rank for rank in range(self.size) if rank not in self.members]

    @property
    def lagging(self) -> list[Recording]:
        """The ranks whose last call comes before that of others: where to look if a run hung."""
        last = max((recording.last_sequence for recording in self.members.values()), default=0)
        return [member for _, member in sorted(self.members.items()) if member.last_sequence < last]

    def __str__(self) -> str:
        return f"communicator {self.number} ({self.backend}, {self.size} ranks)"


@dataclass(slots=True)
class Run:
    """All worlds of one run, and notes about what is missing or incomplete."""

    worlds: list[TracedCommunicator]
    notes: list[str] = field(default_factory=list)

    @property
    def recordings(self) -> list[Recording]:
        """All files, in the order of worlds and ranks."""
        return [world.members[rank] for world in self.worlds for rank in sorted(world.members)]


def read_run(folder: Path) -> Run:
    """Read the newest run of a directory; raises `TraceError` if there is none."""
    if not folder.is_dir():
        raise TraceError(f"{folder} is not a directory; expected the value of COBRE_COMM_TRACE during the run")
    all_recordings, notes = _read_all(sorted(folder.glob("*.jsonl")))
    if not all_recordings:
        raise TraceError("\n".join([f"{folder} contains no traces; run with COBRE_COMM_TRACE={folder} first", *notes]))
    recordings, older = newest_run(all_recordings)
    if older:
        names = ", ".join(recording.path.name for recording in older)
        notes.append(f"ignored, from an earlier run: {names}")
    worlds = group_worlds(recordings)
    notes += [note for recording in recordings for note in recording.notes]
    notes += [f"{world}: no file of rank {rank}" for world in worlds for rank in world.missing_ranks]
    notes += [_lagging_note(world, recording) for world in worlds for recording in world.lagging]
    return Run(worlds, notes)


def _lagging_note(world: TracedCommunicator, recording: Recording) -> str:
    furthest = max(member.last_sequence for member in world.members.values())
    where = f"its last call is {recording.last_call}" if recording.last_call else "it made no call"
    return f"{world}: rank {recording.header.rank} is behind: {where}; others reached #{furthest}"


def _read_all(paths: Iterable[Path]) -> tuple[list[Recording], list[str]]:
    recordings, notes = [], []
    for path in paths:
        try:
            recordings.append(read_recording(path))
        except (NotATraceError, OSError) as error:
            notes.append(f"ignored: {path.name} {error}")
    return recordings, notes


def newest_run(recordings: Sequence[Recording]) -> tuple[list[Recording], list[Recording]]:
    """Return the recordings of the newest run, and the older ones.

    All ranks of a run exist when it starts, so its files overlap in time. As clocks of different machines may disagree,
    times are compared only if there are two files of the same rank.
    """
    if not _duplicates(recordings):
        return list(recordings), []
    runs: list[list[Recording]] = []
    end_ns = 0
    for recording in sorted(recordings, key=lambda recording: recording.wall_span_ns):
        begin_ns, last_ns = recording.wall_span_ns
        if not runs or begin_ns > end_ns:
            runs.append([])
        runs[-1].append(recording)
        end_ns = max(end_ns, last_ns)
    return runs[-1], [recording for run in runs[:-1] for recording in run]


def group_worlds(recordings: Sequence[Recording]) -> list[TracedCommunicator]:
    """Return one world for each communicator that ranks created together; the largest first."""
    groups: dict[tuple[Hashable, ...], list[Recording]] = defaultdict(list)
    duplicated = _duplicates(recordings)
    for recording in recordings:
        key = _communicator_key(recording)
        # Communicators of nodes: there is one for each node, with the same ranks.
        groups[(*key, recording.header.host) if key in duplicated else key].append(recording)
    worlds = [_world(group) for group in groups.values()]
    return sorted(worlds, key=lambda world: (-world.size, world.number, min(world.members)))


def _world(group: Sequence[Recording]) -> TracedCommunicator:
    members: dict[int, Recording] = {}
    for recording in group:
        other = members.setdefault(recording.header.rank, recording)
        if other is not recording:
            raise TraceError(
                f"{other.path.name} and {recording.path.name} are both rank {recording.header.rank}: "
                "two runs wrote here at the same time; use a directory for each run"
            )
    header = group[0].header
    return TracedCommunicator(header.backend, header.size, header.communicator, members)


def _communicator_key(recording: Recording) -> tuple[str, int, int]:
    return recording.header.backend, recording.header.size, recording.header.communicator


def _duplicates(recordings: Iterable[Recording]) -> set[tuple[str, int, int]]:
    """Return the communicators of which some rank has more than one file."""
    seen: set[tuple[tuple[str, int, int], int]] = set()
    duplicated = set()
    for recording in recordings:
        key = _communicator_key(recording)
        if (key, recording.header.rank) in seen:
            duplicated.add(key)
        seen.add((key, recording.header.rank))
    return duplicated


# Matches the same call on all ranks, to align clocks and to find out which ranks waited for which.


# In these no rank can end before all have begun. A rank may leave a broadcast before the others arrive, a gather before
# ranks that send nothing, and a fence if every rank has a private region.
ANCHORS = frozenset({Operation.BARRIER.title, Operation.ALLREDUCE.title})
NOT_WAITING = frozenset({Operation.BROADCAST.title})


@dataclass(frozen=True, slots=True)
class MatchedCall:
    """One collective as all ranks of its world recorded it, each by its own clock."""

    operation: str
    sequence: int
    calls: Mapping[int, RecordedCall]

    @property
    def is_anchor(self) -> bool:
        """Whether no rank can have ended it before all had begun it."""
        has_data = self.operation == Operation.BARRIER.title or all(call.nbytes for call in self.calls.values())
        return self.operation in ANCHORS and has_data and len(self.calls) > 1


@dataclass(frozen=True, slots=True)
class Waiting:
    """The last rank to arrive at a call, and for how long each rank waited for it, in nanoseconds."""

    last_rank: int
    waited_ns: Mapping[int, int]


def matched_calls(world: TracedCommunicator) -> Iterator[MatchedCall]:
    """Yield the calls that all ranks have completed and recorded, in order."""
    if world.missing_ranks:
        return
    members = [world.members[rank] for rank in range(world.size)]
    failed = {recording.failed_sequence for recording in members}
    for sequence, first in members[0].calls.items():
        calls = {rank: call for rank, member in enumerate(members) if (call := member.calls.get(sequence))}
        is_whole = len(calls) == world.size and sequence not in failed
        if is_whole and all(call.operation == first.operation and not call.is_in_progress for call in calls.values()):
            yield MatchedCall(first.operation, sequence, calls)


def waiting(matched: MatchedCall, begins_ns: Mapping[int, int]) -> Waiting | None:
    """Return each rank's wait for the last one; None for calls in which ranks need not wait for each other.

    begins_ns: when each rank began the call, in common time.
    """
    if matched.operation in NOT_WAITING or len(matched.calls) < 2:
        return None
    last_rank = max(begins_ns, key=begins_ns.__getitem__)
    waits = {
        rank: min(begins_ns[last_rank] - begins_ns[rank], call.end_ns - call.begin_ns)
        for rank, call in matched.calls.items()
    }
    return Waiting(last_rank, waits)


# Aligns the clocks of all ranks.
#
# Processes of one machine read the same clock. For different machines the time of day gives a first estimate, and the
# calls themselves a better one: no rank leaves a barrier before the last one has entered it. Each such call bounds
# the offset between two clocks in both directions; all calls together leave a small interval, whose middle is used.
# NTP does the same with its messages. If clocks drift so far that no offset satisfies all calls, the run is split
# into pieces with an offset for each.

Bounds = list[list[float]]
"""`bounds[i][j]`: the most by which the offset of clock j can exceed that of clock i, in nanoseconds."""


OffsetSample = tuple[int, int]
"""A time of a clock, and the offset to add there to get the common time; both in nanoseconds."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """Offsets of all clocks.

    samples: of each clock, by time; offsets in between are interpolated. uncertainty_ns: the largest of all clocks.
    calls, pieces: what the offsets were computed from.
    """

    samples: Mapping[str, Sequence[OffsetSample]]
    uncertainty_ns: float
    calls: int
    pieces: int

    def common_ns(self, header: Header, own_ns: int) -> int:
        """Convert a time of this process's monotonic clock to the common time."""
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
        """Return whether calls of this piece relate the clock to others."""
        return any(clock in anchor.last_begin for anchor in self.anchors)

    def sample(self, clock: int) -> OffsetSample:
        """Return the clock's offset, in the middle of the piece."""
        times = [anchor.last_begin[clock] for anchor in self.anchors if clock in anchor.last_begin] or [0]
        return (times[0] + times[-1]) // 2, self.offsets_ns[clock]


def align_clocks(run: Run) -> Alignment:
    """Return offsets for all clocks of the run; the first recording's clock is the common one."""
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
    """Return the offset at a time of the clock: linear interpolation between the two nearest samples."""
    if len(samples) == 1:
        return samples[0][1]
    after = min(max(bisect(samples, own_ns, key=itemgetter(0)), 1), len(samples) - 1)
    (begin_ns, first), (end_ns, second) = samples[after - 1], samples[after]
    return first + round((second - first) * (own_ns - begin_ns) / max(end_ns - begin_ns, 1))


def _pieces(anchors: Sequence[_Anchor], guesses_ns: Sequence[int]) -> list[_Piece]:
    """Split the run into as few pieces as are needed; pieces are halved until their bounds can be satisfied."""
    bounds = _bounds(anchors, len(guesses_ns))
    offsets, uncertainty, is_possible = solve(guesses_ns, bounds)
    if is_possible or len(anchors) < 2:
        return [_Piece(anchors, offsets, uncertainty)]
    half = len(anchors) // 2
    return _pieces(anchors[:half], guesses_ns) + _pieces(anchors[half:], guesses_ns)


def solve(guesses_ns: Sequence[int], bounds: Bounds) -> tuple[list[int], list[float], bool]:
    """Return offsets that satisfy the bounds, the uncertainty of each, and whether the bounds can be satisfied at all.

    The largest and the smallest possible offsets both satisfy all bounds, and so does their mean.
    """
    tight = _tightened(bounds)
    is_possible = all(tight[clock][clock] >= 0 for clock in range(len(tight)))
    usable = tight if is_possible else bounds
    offsets: list[int] = []
    uncertainty: list[float] = []
    for clock, guess in enumerate(guesses_ns):
        # The first clock that calls relate to this one; if there is none, only the time of day is known.
        root = next((other for other in range(clock) if math.isfinite(usable[other][clock])), clock)
        above, below = usable[root][clock], usable[clock][root]
        middle = 0 if root == clock else round((above - below) / 2)
        offsets.append((offsets[root] if root != clock else guess) + middle)
        uncertainty.append(0.0 if clock == 0 else math.inf if root == clock else abs(above + below) / 2)
    return offsets, uncertainty, is_possible


def _anchors(run: Run, clocks: Sequence[str]) -> list[_Anchor]:
    """Return the calls that relate clocks, in the order in which they happened."""
    number_of = {clock: number for number, clock in enumerate(clocks)}
    anchors: list[tuple[int, _Anchor]] = []
    for world in run.worlds:
        clock_of = [number_of[member.header.clock_key] for _, member in sorted(world.members.items())]
        if len(set(clock_of)) > 1:
            wall_offset_ns = world.members[min(world.members)].header.wall_offset_ns
            anchor_calls = [matched for matched in matched_calls(world) if matched.is_anchor]
            anchors += [
                (matched.calls[0].begin_ns + wall_offset_ns, _anchor(matched, clock_of)) for matched in anchor_calls
            ]
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
    """Return bounds on the offsets: in common time, no rank ends a call before all ranks have begun it."""
    bounds = [[0.0 if i == j else math.inf for j in range(clocks)] for i in range(clocks)]
    for anchor in anchors:
        for (i, end_ns), (j, begin_ns) in product(anchor.first_end.items(), anchor.last_begin.items()):
            if i != j:
                bounds[i][j] = min(bounds[i][j], end_ns - begin_ns)
    return bounds


def _tightened(bounds: Bounds) -> Bounds:
    """Return the bounds, tightened by those through other clocks (Floyd-Warshall)."""
    tight = [list(row) for row in bounds]
    for k, i, j in product(range(len(tight)), repeat=3):
        tight[i][j] = min(tight[i][j], tight[i][k] + tight[k][j])
    return tight
