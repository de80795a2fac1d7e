"""The conformance kit: checks that a backend keeps the contract of `cobre.comm`, or shows where it does not.

    python -m cobre.comm.testing --backend shm --ranks 1,2,4

- `cases`: what every rank does, one function per case; `oracle` and `steps` compute the expected results, also of
  seeded random programs that must give the same bits on every backend.
- `harness`: starts worlds as users do, runs the cases in them, and compares.
- `FaultyCommunicator`: a communicator that fails at a chosen call, for tests of programs that use one.

Nothing here needs pytest. To check another backend, write a `Profile` for it (see `profiles`).
"""

from cobre.comm.testing.faulty import FaultyCommunicator

__all__ = ["FaultyCommunicator"]
