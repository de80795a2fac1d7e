"""What ranks of one node hold together: the numbers of a problem, once for all of them.

Every rank builds the problem; the leader copies its arrays into one shared region, those with the same content once,
and all ranks go on with views of it, read-only. Where no memory is shared the region is each rank's own; the code is
the same.
"""

import copy
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cobre.comm import SharedMemoryProvider, SharedRegion
from cobre.sddp.cuts.visibility import ranks_that_see
from cobre.sddp.problem import Problem

T = TypeVar("T")
Array = NDArray[Any]
Content = tuple[str, tuple[int, ...], bytes]

SMALLEST_BYTES = 512  # less than that is not worth a place of its own
ALIGNMENT = 64
PLAIN = frozenset({str, int, float, bool, bytes, type(None)})  # most parts, which need no second look


@dataclass(frozen=True, slots=True)
class SharedProblem:
    """A problem whose arrays lie in a region. shared_bytes: its size; saved_bytes: what this node does without."""

    problem: Problem
    shared_bytes: int
    saved_bytes: int
    region: SharedRegion

    def close(self) -> None:
        """Let go of the region; its memory goes with the last array that looks at it."""
        self.region.close()


def share_problem(memory: SharedMemoryProvider, problem: Problem) -> SharedProblem:
    """The same problem with its arrays in one region; every rank must ask. Drop the old one, or nothing is saved."""
    found: dict[Content, Array] = {}
    _rebuilt(problem, lambda array: found.setdefault(_content(array), array), {})
    starts, size = _places(list(found.values()))
    region = memory.create_shared_region(max(1, size), np.uint8, label="problem")
    if memory.is_leader:
        _fill(region.as_mut_array(), zip(found.values(), starts, strict=True))
    region.fence(label="problem")
    place = dict(zip(found, starts, strict=True))
    whole = region.as_array()
    shared = _rebuilt(problem, lambda array: _view(whole, place[_content(array)], array), {})
    return SharedProblem(shared, size, (ranks_that_see(memory) - 1) * size, region)


def _content(array: Array) -> Content:
    """What makes two arrays one: stages that are alike in something hold it once."""
    return array.dtype.str, array.shape, hashlib.blake2b(array.data, digest_size=16).digest()


def _places(arrays: list[Array]) -> tuple[list[int], int]:
    """Where each array begins, and the end."""
    starts, end = [], 0
    for array in arrays:
        starts.append(end)
        end += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
    return starts, end


def _fill(region: Array, content: "zip[tuple[Array, int]]") -> None:
    for array, start in content:
        region[start : start + array.nbytes] = array.reshape(-1).view(np.uint8)


def _view(region: Array, start: int, like: Array) -> Array:
    view: Array = region[start : start + like.nbytes].view(like.dtype).reshape(like.shape)
    return view


def _is_shareable(array: Array) -> bool:
    """Plain numbers that lie in one piece."""
    return array.nbytes >= SMALLEST_BYTES and array.dtype.kind in "biuf" and array.flags.c_contiguous


def _rebuilt(value: T, take: Callable[[Array], Array], known: dict[int, tuple[Any, Any]]) -> T:
    """The same value with other arrays in it. What occurs twice stays one; parts without arrays stay what they are."""
    if type(value) in PLAIN:
        return value
    if id(value) not in known:
        known[id(value)] = value, _with_parts(value, take, known)  # the value itself, so that its id stays its own
    return known[id(value)][1]  # type: ignore[no-any-return]


def _with_parts(value: Any, take: Callable[[Array], Array], known: dict[int, tuple[Any, Any]]) -> Any:
    if isinstance(value, np.ndarray):
        return take(value) if _is_shareable(value) else value
    if type(value) in (tuple, list):
        parts = [_rebuilt(part, take, known) for part in value]
        return type(value)(parts) if any(new is not old for new, old in zip(parts, value, strict=True)) else value
    if type(value) is dict:
        return {key: _rebuilt(part, take, known) for key, part in value.items()}
    names = _attributes(value)
    changed = {name: _rebuilt(getattr(value, name), take, known) for name in names}
    changed = {name: part for name, part in changed.items() if part is not getattr(value, name)}
    if not changed:
        return value
    other = copy.copy(value)
    for name, part in changed.items():
        object.__setattr__(other, name, part)  # of frozen classes, too: nobody has seen the copy yet
    return other


def _attributes(value: Any) -> list[str]:
    """Of our own objects; others are left alone."""
    if isinstance(value, type | Enum) or not type(value).__module__.startswith("cobre."):
        return []
    if is_dataclass(value):
        return [field.name for field in fields(value)]
    return list(getattr(value, "__dict__", ()))
