"""Random programs: some hundred collectives in a row, whose digest must be the same on every backend."""

import hashlib
from collections.abc import Iterable, Iterator

import numpy as np

from cobre.comm.backends.base import Backend
from cobre.comm.testing import inputs, oracle
from cobre.comm.testing.steps import Barrier, Broadcast, FillRegion, Gather, GatherIntoRegion, Reduce, Step

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
    """Mostly few, sometimes many: sizes are spread evenly over the powers of two."""
    return int(rng.integers(0, 1 << int(rng.integers(1, 17))))


def _pick(rng: np.random.Generator, names: Iterable[str]) -> str:
    choices = list(names)
    return choices[int(rng.integers(len(choices)))]
