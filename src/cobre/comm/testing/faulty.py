"""A communicator that fails at a chosen call, for tests of programs that use one."""

from collections.abc import Callable, Mapping
from typing import cast

from cobre.comm.backends.base import Backend
from cobre.comm.testing.delegate import DelegatingCommunicator


class FaultyCommunicator(DelegatingCommunicator):
    """A fault-injecting test double around a real communicator: raises, exits or waits at chosen calls.

    faults: by sequence number of a call on this object (from 1), a function that is called right before the call is
    passed on; each is called once. All numbered calls count: the collectives, `create_shared_region`, `split_local` and
    the fences of regions that were created by it.

        comm = FaultyCommunicator(create_communicator(), {3: lambda: os._exit(9)})    # dies before its third call

    What a fault raises is treated as a failure of the backend: the call raises, the communicator is broken, and the
    other ranks are informed (clauses 4 and 5). A fault that returns only delays the call. The communicator that
    `split_local` returns has no faults of its own.
    """

    def __init__(self, inner: Backend, faults: Mapping[int, Callable[[], object]]) -> None:
        super().__init__(inner)
        self._faults = dict(faults)

    def _before_call(self) -> None:
        self._faults.pop(self.sequence, lambda: None)()

    def _split_local(self) -> Backend:
        self._before_call()
        return DelegatingCommunicator(cast("Backend", self._inner.split_local()))
