"""How much memory a piece of work takes."""

import tracemalloc


def peak_bytes(work):
    """The most bytes that Python and NumPy hold at once during a call."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
