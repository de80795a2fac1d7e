"""Local checks of all arguments, before a byte is sent (clause 3).

These functions define what is accepted. The native guard accepts only the common form, for speed; other arguments come
here, to be converted to the common form, or rejected with a message.
"""

import operator
import sys
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from cobre.comm.errors import (
    InvalidBufferSizeError,
    InvalidRootError,
    UnsupportedBufferError,
    UnsupportedReductionError,
)
from cobre.comm.types import Array, Dtype, ReduceOp

REDUCIBLE_KINDS = "iufc"


def packed_displacements(counts: Sequence[int]) -> tuple[int, ...]:
    """Return displacements without gaps: rank r's data follows rank r - 1's."""
    return (0, *accumulate(map(int, counts[:-1])))


def check_allgatherv(
    send: Any, recv: Any, counts: Any, displs: Any, rank: int, size: int
) -> tuple[Array, Array, tuple[int, ...], tuple[int, ...]]:
    """Check the arguments of `allgatherv`, and return buffers, counts and displacements in the common form."""
    name = "allgatherv"
    send_array = check_buffer(name, "send", send, writable=False)
    recv_array = check_buffer(name, "recv", recv, writable=True)
    _check_same_dtype(name, send_array, recv_array)
    parts = check_counts_and_displs(name, counts, displs, size)
    elements, starts = zip(*parts, strict=True)
    if send_array.size != elements[rank]:
        raise InvalidBufferSizeError(name, f"{elements[rank]} elements to send (counts[{rank}])", send_array.size)
    required = max((start + count for count, start in parts if count), default=0)
    if recv_array.size < required:
        raise InvalidBufferSizeError(name, f"a receive buffer of at least {required} elements", recv_array.size)
    in_place = _address(send_array) == _address(recv_array) + starts[rank] * recv_array.itemsize
    if not in_place and _overlap(send_array, recv_array):
        raise InvalidBufferSizeError(
            name,
            "a send buffer that does not overlap the receive buffer, or is exactly this rank's part of it",
            "buffers that overlap otherwise",
        )
    return send_array, recv_array, elements, starts


def check_allreduce(send: Any, recv: Any, op: Any) -> tuple[Array, Array]:
    """Check the arguments of `allreduce`, and return the buffers in the common form."""
    name = "allreduce"
    if not isinstance(op, ReduceOp):
        raise UnsupportedReductionError(name, "a ReduceOp (SUM, MIN or MAX)", repr(op))
    send_array = check_buffer(name, "send", send, writable=False)
    recv_array = check_buffer(name, "recv", recv, writable=True)
    _check_same_dtype(name, send_array, recv_array)
    check_reducible(name, send_array.dtype, op)
    for side, array in (("send", send_array), ("recv", recv_array)):
        if not array.flags.aligned:
            raise UnsupportedBufferError(
                name, f"an aligned {side} buffer (np.require(a, None, 'A'))", "an unaligned one"
            )
    if send_array.size != recv_array.size:
        raise InvalidBufferSizeError(name, f"a receive buffer of {send_array.size} elements", recv_array.size)
    if _address(send_array) != _address(recv_array) and _overlap(send_array, recv_array):
        raise InvalidBufferSizeError(
            name, "send and receive buffers that are identical or do not overlap", "buffers that overlap partly"
        )
    return send_array, recv_array


def check_broadcast(buffer: Any, root: Any, size: int) -> Array:
    """Return the buffer of `broadcast` in the common form; raises for bad arguments."""
    rank = _as_index(root)
    if rank is None or not 0 <= rank < size:
        raise InvalidRootError(root, size)
    return check_buffer("broadcast", "broadcast", buffer, writable=True)


def check_buffer(operation: str, side: str, buffer: Any, *, writable: bool) -> Array:
    """Return the buffer as a C-contiguous array of a fixed-size native dtype, sharing its memory, or raise."""
    array = _as_array(operation, side, buffer)
    check_dtype(operation, array.dtype)
    if not array.flags.c_contiguous:
        raise UnsupportedBufferError(
            operation,
            f"a C-contiguous {side} buffer (np.ascontiguousarray makes one)",
            f"strides {array.strides}",
        )
    if writable and not array.flags.writeable:
        raise UnsupportedBufferError(operation, f"a writable {side} buffer", "a read-only one")
    return array


def check_dtype(operation: str, dtype: Dtype) -> None:
    """Reject dtypes without a fixed size, and those that mean something else on another rank."""
    if dtype.hasobject:
        raise UnsupportedBufferError(operation, "a fixed-size dtype", f"{dtype}, which holds Python objects")
    if not dtype.isnative:
        raise UnsupportedBufferError(
            operation, "native byte order (a.astype(a.dtype.newbyteorder('=')))", f"{dtype.str}"
        )
    if dtype.itemsize == 0:
        raise UnsupportedBufferError(operation, "a dtype with a size", f"{dtype!r} of 0 bytes")


def check_reducible(operation: str, dtype: Dtype, op: ReduceOp) -> None:
    """Reject reductions that are not defined for the dtype."""
    if dtype.kind not in REDUCIBLE_KINDS:
        raise UnsupportedReductionError(operation, "an integer, floating or complex dtype", str(dtype))
    if dtype.kind == "c" and op is not ReduceOp.SUM:
        raise UnsupportedReductionError(operation, f"an ordered dtype for {op.name}", str(dtype))


def check_counts_and_displs(operation: str, counts: Any, displs: Any, size: int) -> tuple[tuple[int, int], ...]:
    """Return the count and displacement of every rank; raise if parts overlap."""
    elements = _check_integers(operation, "counts", counts, size)
    starts = packed_displacements(elements) if displs is None else _check_integers(operation, "displs", displs, size)
    filled = sorted(
        (start, count, rank) for rank, (count, start) in enumerate(zip(elements, starts, strict=True)) if count
    )
    for (start, count, rank), (other_start, _, other_rank) in pairwise(filled):
        if start + count > other_start:
            raise InvalidBufferSizeError(
                operation,
                "parts that do not overlap",
                f"rank {rank} from {start} to {start + count} and rank {other_rank} from {other_start}",
            )
    return tuple(zip(elements, starts, strict=True))


def check_region(count: Any, dtype: DTypeLike) -> tuple[int, Dtype]:
    """Return number of elements and dtype for `create_shared_region`; raises for bad arguments."""
    name = "create_shared_region"
    elements = _as_index(count)
    if elements is None or elements < 0:
        raise InvalidBufferSizeError(name, "a number of elements, 0 or more", repr(count))
    try:
        element = np.dtype(dtype)
    except (TypeError, ValueError, SyntaxError) as error:
        raise UnsupportedBufferError(name, "a NumPy dtype", repr(dtype)) from error
    if dtype is None or element.subdtype is not None:
        raise UnsupportedBufferError(name, "the dtype of one element", repr(dtype))
    check_dtype(name, element)
    if elements * element.itemsize > sys.maxsize:
        raise InvalidBufferSizeError(name, f"at most {sys.maxsize} bytes", elements * element.itemsize)
    return elements, element


def check_slice(start: Any, stop: Any, count: int) -> tuple[int, int]:
    """Return the bounds of a slice of a region with `count` elements; raises if it is not inside the region."""
    low = 0 if start is None else _as_index(start)
    high = count if stop is None else _as_index(stop)
    if low is None or high is None or not 0 <= low <= high <= count:
        raise InvalidBufferSizeError("as_mut_array", f"a slice inside 0 to {count}", f"{start} to {stop}")
    return low, high


def region_memory(buffer: Any) -> Array | None:
    """Return the whole array of a shared region that was passed as a buffer; None for anything else."""
    if not hasattr(buffer, "as_mut_array"):
        return None
    memory: Array = buffer.as_mut_array(0, buffer.count)
    return memory


def _as_array(operation: str, side: str, buffer: Any) -> Array:
    if isinstance(buffer, np.ma.MaskedArray):
        raise UnsupportedBufferError(operation, f"a plain {side} buffer (a.filled(value))", "a masked array")
    if isinstance(buffer, np.ndarray):
        return buffer.view(np.ndarray)
    if (memory := region_memory(buffer)) is not None:
        return memory
    try:
        return np.asarray(memoryview(buffer))
    except (TypeError, ValueError, BufferError) as error:
        raise UnsupportedBufferError(
            operation, f"a NumPy array or a buffer as {side} buffer", type(buffer).__name__
        ) from error


def _check_same_dtype(operation: str, send: Array, recv: Array) -> None:
    if send.dtype != recv.dtype:
        raise UnsupportedBufferError(operation, f"a receive buffer of dtype {send.dtype}", str(recv.dtype))


def _check_integers(operation: str, name: str, values: Any, size: int) -> tuple[int, ...]:
    try:
        integers = tuple(operator.index(value) for value in values)
    except TypeError as error:
        raise InvalidBufferSizeError(operation, f"{name} as {size} integers", repr(values)) from error
    if len(integers) != size:
        raise InvalidBufferSizeError(operation, f"{size} {name}, one per rank", f"{len(integers)}")
    if min(integers) < 0 or max(integers) > sys.maxsize:
        raise InvalidBufferSizeError(operation, f"{name} from 0 to {sys.maxsize}", f"{list(integers)}")
    return integers


def _as_index(value: Any) -> int | None:
    try:
        return operator.index(value)
    except TypeError:
        return None


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _overlap(first: Array, second: Array) -> bool:
    first_begin, second_begin = _address(first), _address(second)
    return first_begin < second_begin + second.nbytes and second_begin < first_begin + first.nbytes


# The bytes behind arrays, shared and not copied.
#
# The conformance kit has a separate function for this (`testing.inputs.raw`): it must not share mistakes with what
# it checks.

_OCTET = np.dtype(np.uint8)


def as_octets(array: Array) -> Array:
    """Return the memory of a C-contiguous array as a one-dimensional array of uint8, whatever its dtype."""
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
    """Return the memory of a C-contiguous array as a memoryview of bytes, whatever its dtype."""
    return view_of(as_octets(array))


def view_of(octets: Array) -> memoryview:
    """Return the memory of an array of uint8 as a memoryview."""
    return memoryview(octets)  # type: ignore[arg-type]  # NumPy's stubs hide the buffer before Python 3.12
