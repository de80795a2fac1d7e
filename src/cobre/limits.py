"""Largest numbers that options and settings accept. The command line needs them before it imports NumPy."""

MAX_THREADS = 1024
"""Most threads of one worker."""

MAX_COUNT = 10_000_000
"""Most iterations, forward passes or scenarios; a larger number is taken for a typing error."""

MAX_NUMBER = 1e20
"""Largest absolute value of a number in a file, a coefficient or a bound; HiGHS takes larger ones as infinite."""
