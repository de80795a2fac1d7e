"""Random programs: the same bits on every backend (clauses 1 and 8)."""

from collections.abc import Sequence

from cobre.comm.backends.base import Backend
from cobre.comm.testing.case import Depth, Params, Value, case
from cobre.comm.testing.inputs import combinations
from cobre.comm.testing.programs import LENGTH, expected_digest, run_program


def _grid(_size: int, depth: Depth) -> Sequence[Params]:
    seeds = (1,) if depth is Depth.QUICK else tuple(range(1, 11))
    return combinations(seed=seeds, length=(LENGTH,))


def _expect(params: Params, size: int) -> Sequence[Value]:
    return [expected_digest(size, **params)] * size


@case("programs/random", (1, 8), expect=_expect, grid=_grid)
def random_program(comm: Backend, params: Params) -> Value:
    """Two hundred collectives of all kinds, dtypes, layouts and sizes."""
    return run_program(comm, **params)
