"""Small arrays from entities: one number per entity, the same in every block, or zero when out of service."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from cobre.core.arrays import Flags, Floats, Indices
from cobre.core.entities import WithService

Item = TypeVar("Item")


def numbers(items: Iterable[Item], number: Callable[[Item], float]) -> Floats:
    """An array with one number for each item."""
    return np.array([number(item) for item in items], dtype=np.float64)


def indices(items: Iterable[Item], index: Callable[[Item], int]) -> Indices:
    """An array with one index for each item."""
    return np.array([index(item) for item in items], dtype=np.int64)


def positions_by_id(ids: Iterable[int]) -> Mapping[int, int]:
    """The position of each id."""
    return {entity_id: position for position, entity_id in enumerate(ids)}


def per_block(values: Floats, num_blocks: int) -> Floats:
    """The same number in every block: [entities] to [entities, blocks]."""
    return np.repeat(values[:, np.newaxis], num_blocks, axis=1)


class ServiceTimes:
    """Entries and exits of entities, read once for all stages."""

    def __init__(self, entities: Sequence[WithService]) -> None:
        limits = np.iinfo(np.int64)
        self._entry = indices(entities, lambda entity: _or(entity.entry_stage_id, limits.min))
        self._exit = indices(entities, lambda entity: _or(entity.exit_stage_id, limits.max))

    def at(self, stage_id: int) -> Flags:
        """Which entities have entered and not left, as `is_in_service` says it of one."""
        serving: Flags = (self._entry <= stage_id) & (stage_id < self._exit)
        return serving


def _or(stage_id: int | None, otherwise: int) -> int:
    return otherwise if stage_id is None else stage_id


def zero_unless(is_active: Flags, values: Floats) -> Floats:
    """Zero where an entity is out of service."""
    if is_active.all():
        return values
    shape = (-1,) + (1,) * (values.ndim - 1)
    return np.where(is_active.reshape(shape), values, 0.0)
