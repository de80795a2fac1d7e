"""Wrong communicators that the cases must reject: the test of the tests.

Each mutant names the cases that must see through it. The control is no mutant at all: a communicator that passes
everything on must pass every case.
"""

from cobre.comm.backends.base import Backend
from cobre.comm.testing.mutants.catalogue import CONTROL, MUTANTS, Mutant

__all__ = ["CONTROL", "MUTANTS", "Mutant", "disguise"]


def disguise(comm: Backend, name: str) -> Backend:
    """Put the mutant of that name in front of a communicator."""
    return {**MUTANTS, CONTROL.name: CONTROL}[name].kind(comm)
