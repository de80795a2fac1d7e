"""Largest numbers that options and settings accept. Light to import: the command line needs them before NumPy."""

MAX_THREADS = 1024
"""Most threads of one worker."""

MAX_COUNT = 10_000_000
"""Most iterations, forward passes or scenarios; a larger number is taken for a typing error."""
