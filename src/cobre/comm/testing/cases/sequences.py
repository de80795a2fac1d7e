"""Calls one after another: they are numbered, and none leaks into the next (clauses 1 and 8)."""

from collections.abc import Sequence

import numpy as np

from cobre.comm.backends.base import Backend
from cobre.comm.testing import inputs
from cobre.comm.testing.case import Depth, Params, Value, case
from cobre.comm.testing.inputs import combinations
from cobre.comm.testing.steps import Barrier, Broadcast, FillRegion, Gather, Reduce, Step


def _steps(round_number: int, elements: int) -> Sequence[Step]:
    seed = f"round {round_number}"
    return (
        Gather(seed, "int32", "ragged", elements),
        Reduce(seed, "float64", "SUM", elements),
        Broadcast(seed, "int16", elements, root=round_number),
        Barrier(),
    )


def _digest(results: Sequence[str]) -> str:
    return inputs.fingerprint(np.frombuffer("\n".join(results).encode(), np.uint8))


def _expect_rounds(params: Params, size: int) -> Sequence[Value]:
    results = [
        inputs.fingerprint(step.predict(size))
        for number in range(params["rounds"])
        for step in _steps(number, params["elements"])
    ]
    return [_digest(results)] * size


def _round_grid(_size: int, depth: Depth) -> Sequence[Params]:
    rounds = 5 if depth is Depth.QUICK else 25
    return combinations(elements=(1, 100, 6_000, 70_000), rounds=(rounds,))


@case("sequences/back_to_back", (1, 8), expect=_expect_rounds, grid=_round_grid)
def back_to_back(comm: Backend, params: Params) -> Value:
    """Repeat the same shapes with other data, ranks out of step: no rank sees data of another round."""
    results = []
    for number in range(params["rounds"]):
        for step in _steps(number, params["elements"]):
            _delay_one_rank(comm, number)
            results.append(inputs.fingerprint(step.perform(comm)))
    return _digest(results)


def _delay_one_rank(comm: Backend, number: int) -> None:
    """Slow down one rank, another one in every round, so that the others run ahead as far as they can."""
    if number % comm.size == comm.rank:
        inputs.payload("uint8", 50_000, "delay")


def _expect_numbers(_params: Params, size: int) -> Sequence[Value]:
    return [[1, 1, 1, 1, 2, 0]] * size


@case("sequences/numbers", (1, 3), expect=_expect_numbers)
def numbers(comm: Backend, _params: Params) -> Value:
    """Every call is numbered once, fences included; a rejected one is not."""
    steps = (*_steps(0, 3), FillRegion("numbers", "int8", 3))
    counted = []
    for step in steps:
        before = comm.sequence
        step.perform(comm)
        counted.append(comm.sequence - before)
    return [*counted, _count_refused(comm)]


def _count_refused(comm: Backend) -> int:
    before = comm.sequence
    try:
        comm.broadcast(np.zeros(1), root=comm.size)
    except Exception:  # noqa: BLE001 - which error it is, the refusals check
        return comm.sequence - before
    return -1
