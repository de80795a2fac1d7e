"""Limits on the size of numbers in a case and on a command line."""

MAX_NUMBER = 1e20
"""What the LP library takes for infinite; larger ones overflow on the way to it."""

MAX_THREADS = 1024
"""Of a worker."""

MAX_COUNT = 10_000_000
"""Of forward passes or scenarios: more is a slip."""
