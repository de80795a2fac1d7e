"""The bytes behind arrays, shared and not copied.

The conformance kit has a function of its own for this (`testing.inputs.raw`): it must not share mistakes with what it
checks.
"""

import numpy as np

from cobre.comm.types import Array

_OCTET = np.dtype(np.uint8)


def as_octets(array: Array) -> Array:
    """The memory of a C-contiguous array as a one-dimensional array of uint8, whatever its dtype."""
    return array.reshape(-1).view(_OCTET)


def copy_into(data: Array, recv: Array, start: int) -> None:
    """Copy elements into the receive buffer from element `start` on, unless they are there already.

    All bytes, as every backend moves them: NumPy would copy structures field by field, and leave what was in their
    padding.
    """
    if data.size == 0 or np.may_share_memory(data, recv):
        return
    if recv.dtype.kind == "V":
        unit = recv.itemsize
        as_octets(recv)[start * unit : start * unit + data.nbytes] = as_octets(data)
    else:
        recv.reshape(-1)[start : start + data.size] = data.reshape(-1)


def as_bytes(array: Array) -> memoryview:
    """The memory of a C-contiguous array as a memoryview of bytes, whatever its dtype."""
    return view_of(as_octets(array))


def view_of(octets: Array) -> memoryview:
    """The memory of an array of uint8 as a memoryview."""
    return memoryview(octets)  # type: ignore[arg-type]  # NumPy's stubs hide the buffer before Python 3.12
