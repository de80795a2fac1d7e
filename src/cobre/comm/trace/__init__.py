"""Traces of all ranks' calls: `COBRE_COMM_TRACE=DIR` records them, `python -m cobre.comm.trace DIR` merges them.

`writer` runs inside the ranks. The rest reads their files: `recording` (one file), `reading` (which files belong
together, the same call on all ranks, a common time) and `summary` (the output, also for Chrome's trace viewer).
"""
