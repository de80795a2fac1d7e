"""Ranks that an MPI launcher started, through mpi4py.

What MPI itself decides, and no code here can change: a rank that dies ends the whole job (the launcher kills the others
and its exit code is not 0), calls that do not match are undefined unless `COBRE_MPI_CHECKED=1`, and a rank
that waits does not know whom it waits for.
"""
