"""Limits on the size of numbers in a case."""

MAX_NUMBER = 1e20
"""What the LP library takes for infinite; larger ones overflow on the way to it."""
