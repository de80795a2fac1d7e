"""Shared regions: one memory per node, or private copies that behave alike."""

from collections.abc import Callable, Sequence

import numpy as np

from cobre.comm.backends.base import Backend
from cobre.comm.errors import CommError
from cobre.comm.testing import inputs, oracle
from cobre.comm.testing.case import Depth, Params, Value, case, needs_two_ranks
from cobre.comm.testing.cases.collectives import no_rank_left_early, step_case, timed_waits
from cobre.comm.testing.inputs import DTYPES, FEW, KIB, MIB, around, combinations, fingerprint
from cobre.comm.testing.steps import FillRegion, Gather, GatherIntoRegion


@step_case("regions/leader_fills", (8,), FillRegion)
def leader_fills(_size: int, depth: Depth) -> Sequence[Params]:
    """Let the leader write everything; after a fence every rank reads it."""
    small = combinations(dtype=tuple(DTYPES), elements=FEW if depth is Depth.FULL else (67,))
    return small + combinations(dtype=("float64",), elements=(0, 1, 512, 513, MIB))


@step_case("regions/gather_into", (7, 8), GatherIntoRegion)
def gather_into(_size: int, depth: Depth) -> Sequence[Params]:
    """Gather into a region in every layout, also when some ranks receive elsewhere."""
    patterns = ("equal", "ragged", "gaps", "permuted", "scattered", "all_empty")
    dtypes = tuple(DTYPES) if depth is Depth.FULL else ("float64", "padded")
    small = combinations(dtype=dtypes, pattern=patterns, elements=(67,), heap_ranks=(0, 1, 3))
    elements = tuple(around("int8", depth)) if depth is Depth.FULL else (64 * KIB - 1, MIB + 1)
    limits = combinations(dtype=("int8",), pattern=("ragged", "scattered"), elements=elements, heap_ranks=(0, 2))
    in_place = combinations(dtype=("float32",), pattern=patterns, elements=(67, 70_000), in_place=(True,))
    return small + limits + in_place


@case(
    "regions/gather_into_slices",
    (8,),
    expect=lambda params, size: [fingerprint(_sliced_gather(params).predict(size))] * size,
    grid=lambda _size, _depth: combinations(elements=(5, 5000, 80_000), own=(False, True)),
)
def gather_into_slices(comm: Backend, params: Params) -> Value:
    """Gather into a part of a region: one part for all ranks, or one for each."""
    gather = _sliced_gather(params)
    layout = oracle.layout(gather.pattern, gather.elements, comm.size)
    start = 3 + (layout.room * comm.rank if params["own"] else 0)
    with comm.create_shared_region(3 + layout.room * comm.size, DTYPES[gather.dtype]) as region:
        recv = region.as_mut_array(start, start + layout.room)
        inputs.raw(recv)[:] = inputs.SENTINEL
        region.fence()
        comm.allgatherv(gather.contribution(comm.rank, comm.size), recv, layout.counts, layout.displs)
        return fingerprint(recv)


def _sliced_gather(params: Params) -> Gather:
    return Gather("regions", "int16", "scattered", params["elements"])


def _judge_distributed(params: Params, values: Sequence[Value]) -> str:
    """Check that every rank sees the slices of all ranks on its node, and zeros elsewhere."""
    problems = []
    for rank, value in enumerate(values):
        expected = np.zeros(params["elements"] * len(values), np.int64)
        for member in value["node"]:
            expected[_slice_of(member, params["elements"])] = _own_numbers(member, params["elements"])
        if rank not in value["node"] or value["seen"] != fingerprint(expected):
            problems.append(
                f"rank {rank} on node {value['node']}: expected {fingerprint(expected)}, got {value['seen']}"
            )
    return "\n".join(problems)


def _slice_of(rank: int, elements: int) -> slice:
    return slice(rank * elements, (rank + 1) * elements)


def _own_numbers(rank: int, elements: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.arange(elements) + 1000 * (rank + 1)


@case(
    "regions/distributed",
    (8,),
    judge=_judge_distributed,
    grid=lambda _size, _depth: combinations(elements=(1, 100, 10_000)),
)
def distributed(comm: Backend, params: Params) -> Value:
    """Write on every rank the slice that it names; after a fence all slices of the node are there."""
    elements = params["elements"]
    with comm.create_shared_region(elements * comm.size, np.int64) as region:
        own_slice = _slice_of(comm.rank, elements)
        region.as_mut_array(own_slice.start, own_slice.stop)[:] = _own_numbers(comm.rank, elements)
        region.fence()
        return {"node": ranks_of_node(comm), "seen": fingerprint(region.as_array())}


def ranks_of_node(comm: Backend) -> list[int]:
    """Return the ranks that share this rank's memory."""
    with comm.split_local() as node:
        members = np.empty(node.size, np.int64)
        node.allgatherv(np.array([comm.rank]), members, [1] * node.size)
        return [int(member) for member in members]


@case("regions/zero_at_first", (8,))
def zero_at_first(comm: Backend, _params: Params) -> Value:
    """Check that a new region is zero, even if it reuses the memory of an old one."""
    for elements in (1, 1000, 100_000):
        with comm.create_shared_region(elements, np.uint8) as region:
            if region.as_array().any():
                return False
            comm.barrier()
            if comm.is_leader:
                region.as_mut_array()[:] = 7
            region.fence()
    return True


@case("regions/read_only", (8,))
def read_only(comm: Backend, _params: Params) -> Value:
    """Check that `as_array` cannot be written, and cannot be made writable."""
    with comm.create_shared_region(3, np.float64) as region:
        array = region.as_array()
        refused = [_raises(ValueError, array.setflags, write=True), _raises(ValueError, array.__setitem__, 0, 1.0)]
        return refused == [True, True] and not region.as_array().any()


def _raises(kind: type[Exception], function: Callable[..., object], *arguments: object, **options: object) -> bool:
    try:
        function(*arguments, **options)
    except kind:
        return True
    return False


def _judge_leaders(_params: Params, values: Sequence[Value]) -> str:
    for rank, value in enumerate(values):
        expected = "" if value["leader"] else "NotLeaderError"
        if value["whole"] != expected or set(value["slices"]) != {"InvalidBufferSizeError"}:
            return f"rank {rank}: {value}"
    return "" if any(value["leader"] for value in values) else "no rank is a leader"


@case("regions/leader_only", (3,), judge=_judge_leaders)
def leader_only(comm: Backend, _params: Params) -> Value:
    """Check that only the leader may write everything, and that a slice must be inside the region."""
    with comm.create_shared_region(4, np.int8) as region:
        wrong = ((-1, 2), (3, 2), (0, 5), ("a", 2), (1.0, 2))
        return {
            "leader": comm.is_leader,
            "whole": _refusal(region.as_mut_array),
            "slices": [_refusal(region.as_mut_array, start, stop) for start, stop in wrong],
        }


def _refusal(function: Callable[..., object], *arguments: object) -> str:
    try:
        function(*arguments)
    except CommError as error:
        return type(error).__name__
    return ""


@case("regions/several", (8,))
def several_alive(comm: Backend, _params: Params) -> Value:
    """Use several regions, which are independent of each other, in whatever order they are closed."""
    regions = [comm.create_shared_region(10 * number, np.int32) for number in range(1, 6)]
    regions.pop(2).close()
    regions.append(comm.create_shared_region(7, np.int32))
    for number, region in enumerate(regions):
        if comm.is_leader:
            region.as_mut_array()[:] = number + 1
        region.fence()
    is_correct = [bool((region.as_array() == number + 1).all()) for number, region in enumerate(regions)]
    for region in reversed(regions):
        region.close()
    return all(is_correct)


@case("regions/after_close", (3, 4))
def after_close(comm: Backend, _params: Params) -> Value:
    """Close a region: its arrays outlive it, it raises, can be closed again, and the next call works."""
    region = comm.create_shared_region(5, np.int64)
    if comm.is_leader:
        region.as_mut_array()[:] = 42
    region.fence()
    array = region.as_array()
    region.close()
    region.close()
    refusals = {_refusal(region.as_array), _refusal(region.as_mut_array, 0, 1), _refusal(region.fence)}
    with comm.create_shared_region(5, np.int64):
        comm.barrier()
    return refusals == {"RegionClosedError"} and array.tolist() == [42] * 5


@case("regions/fence_waits", (1,), judge=no_rank_left_early, grid=needs_two_ranks)
def fence_waits(comm: Backend, _params: Params) -> Value:
    """Check that no rank leaves a fence before all ranks of the node have entered it."""
    with comm.create_shared_region(1, np.int8) as region:
        if len(ranks_of_node(comm)) < comm.size:
            return timed_waits(comm, comm.barrier)  # private memory: a fence has no rank to wait for
        return timed_waits(comm, region.fence)


@case("regions/fence_shows", (8,))
def fence_shows(comm: Backend, _params: Params) -> Value:
    """Read after a fence what was written before it, round after round."""
    with comm.create_shared_region(64, np.int64) as region:
        is_correct = True
        for number in range(200):
            if comm.is_leader:
                region.as_mut_array()[:] = number
            region.fence()
            is_correct = is_correct and bool((region.as_array() == number).all())
            region.fence()
        return is_correct


@case("regions/send_from", (8,), expect=lambda _params, size: [list(range(size))] * size)
def send_from(comm: Backend, _params: Params) -> Value:
    """Send from a read-only view of a region."""
    with comm.create_shared_region(comm.size, np.int64) as region:
        if comm.is_leader:
            region.as_mut_array()[:] = np.arange(comm.size)
        region.fence()
        recv = np.empty(comm.size, np.int64)
        comm.allgatherv(region.as_array()[comm.rank : comm.rank + 1], recv, [1] * comm.size)
        return recv.tolist()
