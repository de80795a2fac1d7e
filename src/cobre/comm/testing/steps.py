"""Steps: one call with its data, as an action and as an expectation.

`perform` makes the call on a communicator; `predict` computes the result for a world of a given size without one. Cases
and random programs consist of steps.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cobre.comm.backends.base import Backend
from cobre.comm.communicator import Communicator
from cobre.comm.testing import inputs, oracle
from cobre.comm.types import Array, ReduceOp


class Step(Protocol):
    """A call that all ranks make together, and that leaves the same data on all of them."""

    def perform(self, comm: Backend) -> Array:
        """Make the call; returns what this rank then holds."""
        ...

    def predict(self, size: int) -> Array:
        """Return the expected content of every rank's memory in a world of that size."""
        ...


@dataclass(frozen=True, slots=True)
class Gather:
    """`allgatherv` into a buffer full of sentinels. `in_place`: every rank sends from its place in that buffer."""

    seed: str
    dtype: str
    pattern: str
    elements: int
    form: str = "plain"
    in_place: bool = False

    def perform(self, comm: Communicator) -> Array:
        """Gather, and return the whole receive buffer, gaps included."""
        layout = oracle.layout(self.pattern, self.elements, comm.size)
        recv = inputs.present(inputs.sentinel(self.dtype, layout.room), self.form)
        send = self.contribution(comm.rank, comm.size)
        if self.in_place:
            send = place_in(inputs.contents(recv), layout, comm.rank, send)
        else:
            send.flags.writeable = False
            send = inputs.present(send, self.form)
        comm.allgatherv(send, recv, layout.counts, layout.displs)
        return inputs.contents(recv)

    def predict(self, size: int) -> Array:
        """Return the receive buffer with every rank's data in its place."""
        layout = oracle.layout(self.pattern, self.elements, size)
        return oracle.gathered(self.dtype, layout, [self.contribution(rank, size) for rank in range(size)])

    def contribution(self, rank: int, size: int) -> Array:
        """Return the data that a rank sends."""
        count = oracle.layout(self.pattern, self.elements, size).counts[rank]
        return inputs.payload(self.dtype, count, self.seed, rank)


@dataclass(frozen=True, slots=True)
class GatherIntoRegion:
    """`allgatherv` into a shared region; `heap_ranks` of every four pass a private array instead."""

    seed: str
    dtype: str
    pattern: str
    elements: int
    heap_ranks: int = 0
    in_place: bool = False

    def perform(self, comm: Backend) -> Array:
        """Gather, and return what this rank received, in a region or an array."""
        layout = oracle.layout(self.pattern, self.elements, comm.size)
        with comm.create_shared_region(layout.room, inputs.DTYPES[self.dtype]) as region:
            if comm.is_leader:
                inputs.raw(region.as_mut_array())[:] = inputs.SENTINEL
            region.fence()
            send = self._gather().contribution(comm.rank, comm.size)
            if comm.rank % 4 < self.heap_ranks:
                recv = inputs.sentinel(self.dtype, layout.room)
                comm.allgatherv(send, recv, layout.counts, layout.displs)
                return recv
            if self.in_place:
                send = place_in(region.as_mut_array(0, layout.room), layout, comm.rank, send)
            comm.allgatherv(send, region, layout.counts, layout.displs)
            return inputs.copied(region.as_array())

    def predict(self, size: int) -> Array:
        """Return the result of a gather into private memory: a region changes nothing."""
        return self._gather().predict(size)

    def _gather(self) -> Gather:
        return Gather(self.seed, self.dtype, self.pattern, self.elements)


@dataclass(frozen=True, slots=True)
class Reduce:
    """`allreduce` into a buffer full of sentinels, or in place. `special`: NaNs, zeros and infinities as input."""

    seed: str
    dtype: str
    op: str
    elements: int
    in_place: bool = False
    special: bool = False

    def perform(self, comm: Communicator) -> Array:
        """Reduce, and return the result."""
        send = self.contribution(comm.rank, comm.size)
        recv = send if self.in_place else inputs.sentinel(self.dtype, send.size)
        comm.allreduce(send, recv, ReduceOp[self.op])
        return recv

    def predict(self, size: int) -> Array:
        """Return the left fold in rank order."""
        return oracle.fold([self.contribution(rank, size) for rank in range(size)], ReduceOp[self.op])

    def contribution(self, rank: int, size: int) -> Array:
        """Return the data that a rank sends."""
        if self.special:
            return inputs.special_values(self.dtype, rank, size)
        return inputs.numbers(self.dtype, self.elements, self.seed, rank)


@dataclass(frozen=True, slots=True)
class Broadcast:
    """`broadcast` from one rank; the others' buffers are full of sentinels."""

    seed: str
    dtype: str
    elements: int
    root: int
    form: str = "plain"

    def perform(self, comm: Communicator) -> Array:
        """Broadcast, and return the buffer."""
        root = self.root % comm.size
        data = self._data() if comm.rank == root else inputs.sentinel(self.dtype, self.elements)
        buffer = inputs.present(data, self.form)
        comm.broadcast(buffer, root)
        return inputs.contents(buffer)

    def predict(self, _size: int) -> Array:
        """Return the data that the root sends."""
        return self._data()

    def _data(self) -> Array:
        return inputs.payload(self.dtype, self.elements, self.seed, "root")


@dataclass(frozen=True, slots=True)
class FillRegion:
    """The leader fills a region, everybody reads it after a fence."""

    seed: str
    dtype: str
    elements: int

    def perform(self, comm: Backend) -> Array:
        """Fill and read the region, and return a copy of it."""
        with comm.create_shared_region(self.elements, inputs.DTYPES[self.dtype]) as region:
            if comm.is_leader:
                inputs.raw(region.as_mut_array())[:] = inputs.raw(self._data())
            region.fence()
            return inputs.copied(region.as_array())

    def predict(self, _size: int) -> Array:
        """Return the data that the leader writes."""
        return self._data()

    def _data(self) -> Array:
        return inputs.payload(self.dtype, self.elements, self.seed, "leader")


@dataclass(frozen=True, slots=True)
class Barrier:
    """`barrier`; no data."""

    def perform(self, comm: Communicator) -> Array:
        """Wait for all ranks; no data."""
        comm.barrier()
        return np.empty(0, np.uint8)

    def predict(self, _size: int) -> Array:
        """Return no data."""
        return np.empty(0, np.uint8)


def place_in(recv: Array, layout: oracle.Layout, rank: int, data: Array) -> Array:
    """Write a rank's data where it would land, and return that part as the send buffer."""
    start = layout.starts[rank]
    part = recv[start : start + data.size]
    inputs.raw(part)[:] = inputs.raw(data)
    return part


# Random programs: some hundred collectives in a row, whose digest must be the same on every backend.

LENGTH = 200
_KINDS = ("gather", "gather", "reduce", "reduce", "broadcast", "barrier", "fill", "gather_into")


def program(seed: int, length: int = LENGTH) -> Iterator[Step]:
    """Yield the steps of the program of this seed; the same on every rank and for every number of ranks."""
    rng = inputs.generator("program", seed)
    for number in range(length):
        yield _step(rng, f"{seed}.{number}")


def run_program(comm: Backend, seed: int, length: int = LENGTH) -> str:
    """Run a program; the digest of everything that this rank received."""
    digest = hashlib.sha256()
    for step in program(seed, length):
        digest.update(inputs.fingerprint(step.perform(comm)).encode())
    return digest.hexdigest()


def expected_digest(size: int, seed: int, length: int = LENGTH) -> str:
    """Return the digest that every rank of every backend must get."""
    digest = hashlib.sha256()
    for step in program(seed, length):
        digest.update(inputs.fingerprint(step.predict(size)).encode())
    return digest.hexdigest()


def _step(rng: np.random.Generator, seed: str) -> Step:
    kind = _pick(rng, _KINDS)
    elements = _elements(rng)
    if kind == "gather":
        in_place = bool(rng.integers(2))
        return Gather(seed, _pick(rng, inputs.DTYPES), _pick(rng, oracle.PATTERNS), elements, in_place=in_place)
    if kind == "reduce":
        op = _pick(rng, ("SUM", "MIN", "MAX"))
        return Reduce(seed, _pick(rng, inputs.NUMERIC if op == "SUM" else inputs.ORDERED), op, elements)
    if kind == "broadcast":
        return Broadcast(seed, _pick(rng, inputs.DTYPES), elements, root=int(rng.integers(64)))
    if kind == "fill":
        return FillRegion(seed, _pick(rng, inputs.DTYPES), elements)
    if kind == "gather_into":
        heap_ranks = int(rng.integers(3))
        return GatherIntoRegion(seed, _pick(rng, inputs.DTYPES), _pick(rng, oracle.PATTERNS), elements, heap_ranks)
    return Barrier()


def _elements(rng: np.random.Generator) -> int:
    """Draw a number of elements, spread evenly over the powers of two: mostly few, sometimes many."""
    return int(rng.integers(0, 1 << int(rng.integers(1, 17))))


def _pick(rng: np.random.Generator, names: Iterable[str]) -> str:
    choices = list(names)
    return choices[int(rng.integers(len(choices)))]
