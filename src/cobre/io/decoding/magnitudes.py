"""Limits on the size of numbers in a case."""

MAX_NUMBER = 1e20
"""Largest absolute value of a number; HiGHS takes larger ones as infinite."""
