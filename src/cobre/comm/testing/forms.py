"""The forms in which users pass buffers; all of them hold the same data."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cobre.comm.testing import inputs
from cobre.comm.types import Array


def present(array: Array, form: str) -> Any:
    """The array's data in the named form, in memory that nothing else uses."""
    return FORMS[form](array)


def contents(buffer: Any) -> Array:
    """The present contents of a buffer, flattened."""
    return np.asarray(buffer).reshape(-1)


def _plain(array: Array) -> Any:
    return array


def _matrix(array: Array) -> Any:
    return array.reshape(1, -1, 1)


def _unaligned(array: Array) -> Any:
    memory = np.empty(array.nbytes + 1, np.uint8)
    shifted = memory[1:].view(array.dtype)
    inputs.raw(shifted)[:] = inputs.raw(array)
    return shifted


def _memoryview(array: Array) -> Any:
    return array.data


def _subclass(array: Array) -> Any:
    return array.view(np.recarray) if array.dtype.names else array.view(np.memmap)


FORMS: Mapping[str, Callable[[Array], Any]] = {
    "plain": _plain,
    "matrix": _matrix,
    "unaligned": _unaligned,
    "memoryview": _memoryview,
    "subclass": _subclass,
}
