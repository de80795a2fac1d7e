"""The cases, one module per subject. Importing this package registers all of them."""

from cobre.comm.testing.cases import (
    barrier,
    broadcast,
    callers,
    failures,
    gather,
    huge,
    lifecycle,
    mismatch,
    programs,
    reduce,
    refusals,
    regions,
    sequences,
)

__all__ = [
    "barrier",
    "broadcast",
    "callers",
    "failures",
    "gather",
    "huge",
    "lifecycle",
    "mismatch",
    "programs",
    "reduce",
    "refusals",
    "regions",
    "sequences",
]
