"""What works on this machine, and what to do about the rest: `python -m cobre.comm.doctor`.

`machine`, `network` and `mpi_library` look; `trial` really starts a world of two; `verdicts` says of each backend
whether it is usable; `page` is what people read.
"""
