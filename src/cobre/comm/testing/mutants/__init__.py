"""Mutation testing of the kit: wrong communicators that the cases must reject.

Each mutant names the cases that must detect it. The control is a communicator that only delegates, and must pass every
case.
"""

from cobre.comm.backends.base import Backend
from cobre.comm.testing.mutants.catalogue import CONTROL, MUTANTS, Mutant

__all__ = ["CONTROL", "MUTANTS", "Mutant", "with_mutant"]


def with_mutant(comm: Backend, name: str) -> Backend:
    """Return a communicator that behaves like the named mutant, and delegates to `comm`."""
    return {**MUTANTS, CONTROL.name: CONTROL}[name].kind(comm)
