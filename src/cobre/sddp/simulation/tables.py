"""What a simulation writes: tables of plain numbers.

Rows are ordered by scenario, stage, entity and block. Ids are int32 (null: ABSENT_ID), numbers float64.
"""

from collections.abc import Mapping

import numpy as np

from cobre.core.arrays import Ints
from cobre.records import dataclass


@dataclass(frozen=True, slots=True)
class EntityIds:
    """The ids of every kind of entity, in canonical order."""

    hydros: tuple[int, ...]
    thermals: tuple[int, ...]
    buses: tuple[int, ...]
    lines: tuple[int, ...]
    non_controllables: tuple[int, ...]
    contracts: tuple[int, ...]
    pumping_stations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ResultTable:
    """A table's name, the columns that name its entity, and its numbers."""

    name: str
    ids: tuple[str, ...]
    numbers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StageRows:
    """One stage's rows of a table, the same in every scenario: ids by column, block_id included."""

    format: ResultTable
    ids: Mapping[str, Ints]

    @property
    def count(self) -> int:
        """How many rows the stage has in one scenario."""
        return len(self.ids["block_id"])

    @property
    def width(self) -> int:
        """How many numbers (float64) the stage has in one scenario: rows x number columns."""
        return self.count * len(self.format.numbers)


def rows_by_block(format: ResultTable, entity_ids: tuple[Ints, ...], num_blocks: int) -> StageRows:  # noqa: A002
    """Rows for every entity in every block of a stage."""
    count = len(entity_ids[0])
    ids = {name: np.repeat(column, num_blocks) for name, column in zip(format.ids, entity_ids, strict=True)}
    return StageRows(format, {"block_id": np.tile(np.arange(num_blocks, dtype=np.int32), count), **ids})
