"""Peak memory of a call."""

import tracemalloc


def peak_bytes(work):
    """Return the peak number of bytes allocated by Python and NumPy during a call."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
