"""Memory that was freed goes back to the system."""

import ctypes
import os
import sys

ARROW_ALLOCATOR = "ARROW_DEFAULT_MEMORY_POOL"


def give_back_memory() -> None:
    """Return free pages of the allocators of the C library and of Arrow.

    Both keep what was freed for later. After a phase that needed much, and between the chunks of a long simulation,
    that is memory of this process which nobody else can use.
    """
    if (arrow := sys.modules.get("pyarrow")) is not None:
        arrow.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc alone
    if trim is not None:
        trim(0)


def prefer_system_allocator() -> None:
    """Let Arrow use the allocator of the C library, here and in processes started from here; before Arrow is loaded.

    Its own allocator keeps some 30 MB more for tables of our kind, and writes them no faster.
    """
    os.environ.setdefault(ARROW_ALLOCATOR, "system")
