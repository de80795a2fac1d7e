"""Limits on the size of numbers in a case and on a command line."""

MAX_NUMBER = 1e20
"""What the LP library takes for infinite; larger ones overflow on the way to it."""

MAX_THREADS = 1024
"""Most threads of one worker."""

MAX_COUNT = 10_000_000
"""Most forward passes or scenarios; a larger number is taken for a typing error."""
