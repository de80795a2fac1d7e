"""Matches the same call on all ranks, to align clocks and to find out who waited for whom."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cobre.comm.flight_recorder import RecordedCall
from cobre.comm.trace.runs import TracedCommunicator
from cobre.comm.types import Operation

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
    """The calls that all ranks have completed and recorded, in order."""
    if world.missing_ranks:
        return
    members = [world.members[rank] for rank in range(world.size)]
    failed = {recording.failed_sequence for recording in members}
    for sequence, first in members[0].calls.items():
        calls = {rank: call for rank, member in enumerate(members) if (call := member.calls.get(sequence))}
        is_whole = len(calls) == world.size and sequence not in failed
        if is_whole and all(call.operation == first.operation and not call.is_under_way for call in calls.values()):
            yield MatchedCall(first.operation, sequence, calls)


def waiting(matched: MatchedCall, begins_ns: Mapping[int, int]) -> Waiting | None:
    """For how long each rank waited for the last one; None for calls in which ranks need not wait for each other.

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
