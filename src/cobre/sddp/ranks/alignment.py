"""How arrays lie side by side in a shared region."""

ALIGNMENT = 64
"""Bytes of a cache line: what one rank writes shares none with what others read, and every dtype is aligned."""


def aligned(nbytes: int) -> int:
    """A size rounded up to whole cache lines."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT
