"""Memory allocators of this process: return freed pages to the system, and let Arrow use that of the C library.

Apart from `arrow_columns`, because it is used before, or without, loading Arrow.
"""

import ctypes
import os
import sys

ARROW_ALLOCATOR = "ARROW_DEFAULT_MEMORY_POOL"


def trim_heap() -> None:
    """Return free pages of the allocators of the C library and of Arrow.

    Both keep freed pages for later allocations. After a phase that needed much memory, and between the chunks of a
    long simulation, other processes could not use them.
    """
    if (arrow := sys.modules.get("pyarrow")) is not None:
        arrow.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc only
    if trim is not None:
        trim(0)


def prefer_system_allocator() -> None:
    """Let Arrow use the allocator of the C library, here and in processes started from here; before Arrow is loaded.

    Arrow's own allocator keeps some 30 MB more for tables such as those of a simulation, and writes them no faster.
    """
    os.environ.setdefault(ARROW_ALLOCATOR, "system")
