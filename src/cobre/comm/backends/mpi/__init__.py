"""The MPI backend, for ranks that an MPI launcher started; uses mpi4py.

Some things are MPI's to decide, and no code here can change them: a rank that dies ends the whole job (the launcher
kills the others, and its exit code is not 0), the outcome of mismatched calls is undefined unless
`COBRE_MPI_CHECKED=1`, and a rank that waits does not know for which other rank.

Read `communicator` first, then `job` (how a failure ends all ranks) and `windows` (shared memory).
"""
