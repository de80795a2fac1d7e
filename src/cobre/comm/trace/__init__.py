"""Traces of all ranks' calls: `COBRE_COMM_TRACE=DIR` records them, `python -m cobre.comm.trace DIR` merges them.

`writer` runs inside the ranks. The rest reads their files: `recording` (one file), `runs` (which files belong
together), `matching` (the same call on all ranks), `clocks` (a common time), `chrome` and `summary` (the output).
"""
