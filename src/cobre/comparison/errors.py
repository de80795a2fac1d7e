"""What can go wrong when two studies are compared."""

from cobre.errors import CobreError


class NotComparableError(CobreError, ValueError):
    """Two studies that have nothing in common to compare, and why."""
