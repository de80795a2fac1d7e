"""The conformance kit: proves that a backend keeps the contract of `cobre.comm`, or shows where it does not.

    python -m cobre.comm.testing --backend shm --ranks 1,2,4

- `cases`: what every rank does, a plain function per case; `oracle` and `steps` say what must come out of it.
- `harness`: starts worlds as users do, runs the cases in them, compares.
- `programs`: seeded random programs that must give the same bits on every backend.
- `faults`: dead, stopped, missing and misbehaving ranks, each with a deadline and a check for leaks.
- `mutants`: wrong communicators that the cases must reject, so that the kit itself is tested.
- `delegate.FaultyCommunicator`: a communicator that fails at a chosen call, for tests of programs that use one.

Nothing here needs pytest. A backend of your own plugs in with a `Profile` (see `profiles`).
"""
