"""Input data that every process can reproduce from a key.

All generators are seeded by a key (case, parameters, rank), so that the oracle knows what each rank sends.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from cobre.comm.testing.case import Depth
from cobre.comm.types import Array, Dtype

SENTINEL = 0xA5  # fills receive buffers, so that writes outside the expected bytes show


_PLAIN = (
    "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 longdouble "
    "complex64 complex128 clongdouble bool"
)


DTYPES: Mapping[str, Dtype] = {
    **{name: np.dtype(name) for name in _PLAIN.split()},
    "datetime64": np.dtype("datetime64[ns]"),
    "timedelta64": np.dtype("timedelta64[s]"),
    "bytes7": np.dtype("S7"),
    "text3": np.dtype("U3"),
    "raw5": np.dtype("V5"),
    "record": np.dtype([("id", "u1"), ("weight", "f8"), ("at", "i2", (3,))]),
    "padded": np.dtype([("id", "u1"), ("weight", "f8"), ("step", "i2")], align=True),
}

NUMERIC = tuple(name for name, dtype in DTYPES.items() if dtype.kind in "iufc")
FLOATING = tuple(name for name, dtype in DTYPES.items() if dtype.kind == "f")
ORDERED = tuple(name for name, dtype in DTYPES.items() if dtype.kind in "iuf")
_X87_MANTISSA_BITS = 63
_X87_BYTES = 10


def generator(*key: object) -> np.random.Generator:
    """Return a random generator that is seeded by a key."""
    digest = hashlib.sha256(repr(key).encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "little")))


def raw(array: Array) -> Array:
    """Return the bytes of a contiguous array, sharing its memory."""
    return array.reshape(-1).view(np.uint8)


def copied(array: Array) -> Array:
    """Copy all bytes; NumPy's own copy leaves the padding of structures out."""
    result = np.empty(array.shape, array.dtype)
    raw(result)[:] = raw(array)
    return result


def sentinel(dtype: str, count: int) -> Array:
    """Return a receive buffer in which every byte is the sentinel."""
    array = np.empty(count, DTYPES[dtype])
    raw(array)[:] = SENTINEL
    return array


def payload(dtype: str, count: int, *key: object) -> Array:
    """Return arbitrary bit patterns of the dtype, for calls that only move data."""
    array = np.empty(count, DTYPES[dtype])
    data = raw(array)
    data[:] = generator("payload", dtype, count, *key).integers(0, 256, data.size, dtype=np.uint8)
    if array.dtype.kind == "b":
        data &= 1
    return array


def numbers(dtype: str, count: int, *key: object) -> Array:
    """Return numbers whose sum depends on the order and the precision; integers of every size, so that sums wrap."""
    kind = DTYPES[dtype].kind
    if kind in "iu":
        return payload(dtype, count, *key)
    if kind == "c":
        return _complex_components(dtype, count, *key).view(DTYPES[dtype])
    return _spread(DTYPES[dtype], count, *key)


def special_values(dtype: str, rank: int, size: int) -> Array:
    """Return NaNs, infinities, signed zeros and extremes: every combination of them over the first three ranks."""
    values = _special_floats(DTYPES[dtype])
    if size <= 3:
        combinations = list(product(range(len(values)), repeat=size))
        return values.take([combination[rank] for combination in combinations])
    return values.take(generator("special", dtype, rank).integers(0, len(values), 4096))


def fingerprint(array: Array) -> str:
    """Summarise an array in a short string: its bytes if it is small, else their digest."""
    data = significant_bytes(array)
    if data.size <= 32:
        return f"{array.size} x {array.dtype} hex:{data.tobytes().hex()}"
    return f"{array.size} x {array.dtype} sha256:{hashlib.sha256(data.data).hexdigest()}"


def significant_bytes(array: Array) -> Array:
    """Return the bytes that all backends have in common: all of them except the padding of extended floats.

    Structures are moved as they are, with whatever is in their padding.
    """
    array = np.ascontiguousarray(array).reshape(-1)
    if array.dtype.kind == "c":
        array = array.view(array.real.dtype)
    if array.dtype == np.longdouble and np.finfo(np.longdouble).nmant == _X87_MANTISSA_BITS:
        return np.ascontiguousarray(raw(array).reshape(-1, array.itemsize)[:, :_X87_BYTES]).reshape(-1)
    return raw(array)


def _complex_components(dtype: str, count: int, *key: object) -> Array:
    return _spread(np.empty(0, DTYPES[dtype]).real.dtype, 2 * count, *key)


def _spread(dtype: Dtype, count: int, *key: object) -> Array:
    rng = generator("numbers", dtype.str, count, *key)
    exponents = rng.integers(-6, 7, count)  # far enough apart for the order to matter, near enough for half precision
    return (rng.standard_normal(count) * 2.0**exponents).astype(dtype)


def _special_floats(dtype: Dtype) -> Array:
    info = np.finfo(dtype)
    tiny, largest = info.smallest_subnormal, info.max
    values = [0.0, 1.0, np.inf, tiny, largest, np.nan]
    plain = np.array(values, dtype)
    return np.concatenate([plain, -plain, _odd_nans(dtype)])


def _odd_nans(dtype: Dtype) -> Array:
    """Return a NaN with a payload and a signalling one, if the format is IEEE 754's."""
    if dtype == np.longdouble:
        return np.array([np.nan], dtype)
    word = np.dtype(f"u{dtype.itemsize}")
    quiet = int(np.array(np.nan, dtype).view(word))
    fraction_bits = np.finfo(dtype).nmant
    signalling = quiet - (1 << (fraction_bits - 1)) + 1
    return np.array([quiet + 5, signalling], word).view(dtype)


# The forms in which users pass buffers; all of them hold the same data.


def present(array: Array, form: str) -> Any:
    """Return the array's data in the named form, in memory that nothing else uses."""
    return FORMS[form](array)


def contents(buffer: Any) -> Array:
    """Return the present contents of a buffer, flattened."""
    return np.asarray(buffer).reshape(-1)


def _plain(array: Array) -> Any:
    return array


def _unaligned(array: Array) -> Any:
    memory = np.empty(array.nbytes + 1, np.uint8)
    shifted = memory[1:].view(array.dtype)
    raw(shifted)[:] = raw(array)
    return shifted


def _subclass(array: Array) -> Any:
    return array.view(np.recarray) if array.dtype.names else array.view(np.memmap)


FORMS: Mapping[str, Callable[[Array], Any]] = {
    "plain": _plain,
    "matrix": lambda array: array.reshape(1, -1, 1),
    "unaligned": _unaligned,
    "memoryview": lambda array: array.data,
    "subclass": _subclass,
}


# Payload sizes: around every limit at which a backend may switch algorithms.

KIB = 1024
MIB = 1024 * KIB


# Inline slots, frames and chunks of the backends are at powers of two between these.
LIMITS_BYTES: Mapping[Depth, Sequence[int]] = {
    Depth.QUICK: (4 * KIB, 64 * KIB, 256 * KIB, MIB),
    Depth.FULL: (
        256,
        KIB,
        4 * KIB,
        8 * KIB,
        16 * KIB,
        *(limit * KIB for limit in (32, 64, 128, 256, 512)),
        MIB,
        2 * MIB,
        4 * MIB,
    ),
}

FEW = (0, 1, 3, 67)


def around(dtype: str, depth: Depth) -> Iterator[int]:
    """Yield numbers of elements one below, at and one above each limit."""
    for limit in LIMITS_BYTES[depth]:
        elements = limit // DTYPES[dtype].itemsize
        yield from (elements - 1, elements, elements + 1)


def combinations(**axes: Sequence[Any]) -> list[dict[str, Any]]:
    """Return every combination of the values on the axes."""
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
