"""What every rank did when: `COBRE_COMM_TRACE=DIR` records it, `python -m cobre.comm.trace DIR` merges it.

`writer` runs inside the ranks. The rest reads what they wrote: `recording` (one file), `runs` (which files belong
together), `matching` (the same call on all ranks), `clocks` (one time for all), `chrome` and `summary` (what people
see).
"""
