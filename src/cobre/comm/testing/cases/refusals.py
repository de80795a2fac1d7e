"""Bad arguments: the typed error, nothing sent, and the next collective works (clause 3)."""

from collections.abc import Sequence

from cobre.comm.backends.base import Backend
from cobre.comm.testing import bad_calls
from cobre.comm.testing.case import Depth, Params, Value, case
from cobre.comm.testing.inputs import combinations, fingerprint
from cobre.comm.testing.steps import Gather

NEXT = Gather("after a refusal", "int32", "ragged", 5)


def _grid(size: int, _depth: Depth) -> Sequence[Params]:
    calls = [name for name, bad in bad_calls.BAD_CALLS.items() if size >= bad.min_size]
    return combinations(call=calls, who=("all", "one") if size > 1 else ("all",))


def _expect(params: Params, size: int) -> Sequence[Value]:
    error = bad_calls.BAD_CALLS[params["call"]].error.__name__
    after = fingerprint(NEXT.predict(size))
    return [
        {"error": error if _makes_it(params, rank, size) else "", "numbered": 0, "next": after} for rank in range(size)
    ]


def _makes_it(params: Params, rank: int, size: int) -> bool:
    return params["who"] == "all" or rank == size - 1


@case("refusals/arguments", (3,), expect=_expect, grid=_grid)
def arguments(comm: Backend, params: Params) -> Value:
    """All ranks make the bad call, or one of them alone, which the others never notice."""
    before = comm.sequence
    error = ""
    if _makes_it(params, comm.rank, comm.size):
        error = _refused(comm, params["call"])
    numbered = comm.sequence - before
    return {"error": error, "numbered": numbered, "next": fingerprint(NEXT.perform(comm))}


def _refused(comm: Backend, call: str) -> str:
    try:
        bad_calls.BAD_CALLS[call].make(comm)
    except Exception as error:  # noqa: BLE001 - another error than the contract's is a wrong answer too
        return type(error).__name__
    return "accepted"
