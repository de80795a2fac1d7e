"""From the rows of a simulation's table to arrays by scenario, stage and entity."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Columns = Mapping[str, NDArray[Any]]


class EntityRows:
    """A table whose rows are ordered by scenario, stage, entity and block. `entity` None: one row for each stage."""

    def __init__(self, columns: Columns, entity: str | None) -> None:
        self._columns = columns
        self.scenarios, scenario = _coded(columns["scenario_id"])
        self.stages, stage = _coded_in_order(columns["stage_id"])
        ids = columns[entity] if entity else np.zeros(len(scenario), np.int32)
        self.entities, of_entity = _coded(ids)
        self._shape = (len(self.scenarios), len(self.stages), len(self.entities))
        self._cell = np.ravel_multi_index((scenario, stage, of_entity), self._shape) if len(scenario) else scenario

    def total(self, number: str) -> Floats:
        """S x T x E: added over blocks; 0 where an entity is not there."""
        return self._added(np.asarray(self._columns[number], np.float64))

    def last(self, number: str) -> Floats:
        """S x T x E: of the last block; NaN where an entity is not there."""
        values = np.full(int(np.prod(self._shape)), np.nan)
        values[self._cell] = self._columns[number]  # of equal cells, the last row's number stays
        return values.reshape(self._shape)

    def average(self, number: str, weight_by_row: Floats) -> Floats:
        """S x T x E: over blocks, by weight; NaN where an entity is not there."""
        weights = self._added(weight_by_row)
        weighted = self._added(self._columns[number] * weight_by_row)
        means: Floats = np.divide(weighted, weights, out=np.full(self._shape, np.nan), where=weights > 0)
        return means

    def by_scenario(self, by_row: Floats) -> Floats:
        """S: numbers of rows, added over stages in their order."""
        added: Floats = self._added(by_row).sum(axis=(1, 2))
        return added

    def _added(self, by_row: Floats) -> Floats:
        size = int(np.prod(self._shape))
        added: Floats = np.bincount(self._cell, by_row, size).astype(np.float64).reshape(self._shape)
        return added


def block_hours(columns: Columns) -> Floats:
    """Hours of each row's block, from power and energy anywhere in the same stage and block; 1 where nothing flows."""
    stage, block = (_coded(columns[name])[1] for name in ("stage_id", "block_id"))
    power, energy = columns["load_mw"], columns["load_mwh"]
    hours = np.divide(energy, power, out=np.zeros(len(power)), where=power > 0)
    longest = np.zeros((stage.max(initial=-1) + 1, block.max(initial=-1) + 1))
    np.maximum.at(longest, (stage, block), hours)
    found: Floats = longest[stage, block]
    return np.where(found > 0, found, 1.0)


def _coded(ids: NDArray[Any]) -> tuple[tuple[int, ...], NDArray[np.intp]]:
    known = np.unique(ids)
    return tuple(known.tolist()), np.searchsorted(known, ids)


def _coded_in_order(ids: NDArray[Any]) -> tuple[tuple[int, ...], NDArray[np.intp]]:
    """Stages in the order in which they come: their ids need not grow."""
    known, first = np.unique(ids, return_index=True)
    order = np.argsort(first)
    rank = np.empty(len(known), np.intp)
    rank[order] = np.arange(len(known))
    return tuple(known[order].tolist()), rank[np.searchsorted(known, ids)]
