"""Finds the trace files that belong together: the newest run of a directory, and its worlds."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cobre.comm.trace.recording import NotATraceError, Recording, read_recording
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
    def behind(self) -> list[Recording]:
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
    found, notes = _read_all(sorted(folder.glob("*.jsonl")))
    if not found:
        raise TraceError("\n".join([f"{folder} contains no traces; run with COBRE_COMM_TRACE={folder} first", *notes]))
    recordings, older = newest_run(found)
    if older:
        names = ", ".join(recording.path.name for recording in older)
        notes.append(f"ignored, from an earlier run: {names}")
    worlds = group_worlds(recordings)
    notes += [note for recording in recordings for note in recording.notes]
    notes += [f"{world}: no file of rank {rank}" for world in worlds for rank in world.missing_ranks]
    notes += [_behind_note(world, recording) for world in worlds for recording in world.behind]
    return Run(worlds, notes)


def _behind_note(world: TracedCommunicator, recording: Recording) -> str:
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
    """The recordings of the newest run, and the older ones.

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
    """One world for each communicator that ranks created together; the largest first."""
    groups: dict[tuple[Hashable, ...], list[Recording]] = defaultdict(list)
    twice = _duplicates(recordings)
    for recording in recordings:
        kind = _kind(recording)
        # Communicators of nodes: there is one for each node, with the same ranks.
        groups[(*kind, recording.header.host) if kind in twice else kind].append(recording)
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


def _kind(recording: Recording) -> tuple[str, int, int]:
    return recording.header.backend, recording.header.size, recording.header.communicator


def _duplicates(recordings: Iterable[Recording]) -> set[tuple[str, int, int]]:
    """The communicators of which some rank has more than one file."""
    seen: set[tuple[tuple[str, int, int], int]] = set()
    twice = set()
    for recording in recordings:
        kind = _kind(recording)
        if (kind, recording.header.rank) in seen:
            twice.add(kind)
        seen.add((kind, recording.header.rank))
    return twice
