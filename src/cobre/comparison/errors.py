"""Errors of comparing two studies."""

from cobre.errors import CobreError


class NotComparableError(CobreError, ValueError):
    """Two studies that have no stage or no scenario in common."""
