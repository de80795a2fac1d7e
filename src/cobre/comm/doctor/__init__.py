"""Diagnoses which backends work on this machine, and says what to do about the rest: `python -m cobre.comm.doctor`.

`machine`, `network` and `mpi_library` inspect; `trial` starts a world of two ranks; `backend_checks` decides whether
each backend is usable; `diagnosis` puts it all together; `formatting` prints it.
"""
