"""Descriptors 0, 1 and 2 of a process that was started with a closed standard stream."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

LAST_STANDARD = 2


@contextmanager
def standard_descriptors_taken() -> Iterator[None]:
    """While the block runs no file that is opened gets the number of a standard stream.

    Files keep their numbers when ranks inherit them, and a rank's own streams have these numbers: a task file that got
    the number of a closed stdin would be lost to it. Costs one descriptor for each closed stream.
    """
    with ExitStack() as stack:
        while (descriptor := os.open(os.devnull, os.O_RDWR)) <= LAST_STANDARD:
            stack.callback(os.close, descriptor)
        os.close(descriptor)  # the first that lies beyond
        yield
