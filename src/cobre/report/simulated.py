"""Results of a simulation by scenario, stage and entity."""

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from cobre.core.arrays import Floats
from cobre.core.indicators import MIN_COST
from cobre.records import dataclass
from cobre.report.entity_rows import Columns, EntityRows, added, average, block_hours, last
from cobre.report.quantities import QUANTITIES, Quantity, columns_of
from cobre.report.scenario_statistics import percentiles
from cobre.report.study_facts import StudyFacts
from cobre.runs.column_labels import COST_COMPONENTS

# Columns that every table of `cobre run` has; others may be missing.
NEEDED_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "costs": ("scenario_id", "stage_id", "immediate_cost", "discount_factor"),
    **{table: columns_of(table)[:4] for table in dict.fromkeys(found.table for found in QUANTITIES.values())},
}


@dataclass(frozen=True, slots=True)
class Cube:
    """A quantity as an array S x T x E (scenarios, stages, entities), with labels of stages and ids of entities."""

    quantity: Quantity
    values: Floats
    labels: list[str]
    entities: tuple[int, ...]

    def of(self, entity: int) -> Floats:
        """S x T: the values of one entity."""
        chosen: Floats = self.values[:, :, self.entities.index(entity)]
        return chosen

    def total(self) -> Floats:
        """S x T: the sum over entities; missing ones count as 0."""
        added: Floats = np.nansum(self.values, axis=2)
        return added


@dataclass(frozen=True, slots=True)
class Fan:
    """Percentiles over scenarios, and the mean, by stage."""

    labels: list[str]
    percentiles: Floats
    mean: Floats

    @classmethod
    def over_scenarios(cls, values: Floats, labels: list[str]) -> "Fan":
        """The fan of S x T numbers."""
        return cls(labels, percentiles(values), values.mean(axis=0))


class Simulated:
    """The tables of a simulation, by name, as columns."""

    def __init__(self, tables: Mapping[str, Columns], study: StudyFacts) -> None:
        self._tables = tables
        self._study = study
        self._rows: dict[str, EntityRows] = {}

    def has(self, quantity: str) -> bool:
        """Whether the tables have this quantity for any entity."""
        found = QUANTITIES[quantity]
        table = self._tables.get(found.table)
        return table is not None and found.number in table and bool(self.rows(found.table, found.entity).entities)

    def cube(self, name: str) -> Cube:
        """A quantity by scenario, stage and entity."""
        quantity = QUANTITIES[name]
        rows = self.rows(quantity.table, quantity.entity)
        values = rows.reduce_blocks(quantity.number, lambda grid: self._values(rows, quantity, grid))
        return Cube(quantity, values, self._study.stage_labels(rows.stages), rows.entities)

    def cube_and_block_means(self, name: str) -> tuple[Cube, Floats]:
        """A quantity, and its means over scenarios by stage, entity and block, in one reading."""
        quantity = QUANTITIES[name]
        rows = self.rows(quantity.table, quantity.entity)
        sums = np.zeros(rows.shape[1:])

        def reduced(grid: Floats) -> Floats:
            np.add(sums, self._by_block(rows, quantity, grid).sum(axis=0), out=sums)
            return self._values(rows, quantity, grid)

        values = rows.reduce_blocks(quantity.number, reduced)
        return Cube(quantity, values, self._study.stage_labels(rows.stages), rows.entities), sums / len(rows.scenarios)

    def blocks(self, name: str) -> Floats:
        """S x T x E x B: values by block, energy as mean power. As large as the column of the table."""
        quantity = QUANTITIES[name]
        rows = self.rows(quantity.table, quantity.entity)
        return self._by_block(rows, quantity, rows.grid(quantity.number))

    def _by_block(self, rows: EntityRows, quantity: Quantity, grid: Floats) -> Floats:
        if quantity.aggregation != "power":
            return grid
        hours = self.hours(rows)
        return grid / np.where(hours > 0, hours, np.nan)[:, None, :]

    def _values(self, rows: EntityRows, quantity: Quantity, grid: Floats) -> Floats:
        match quantity.aggregation:
            case "last":
                return last(grid)
            case "average":
                return average(grid, self.hours(rows))
            case "total":
                return added(grid)
        hours = self._study.hours(rows.stages) or self.hours(rows).sum(axis=1)
        power: Floats = added(grid) / np.asarray(hours)[:, None]
        return power

    def rows(self, table: str, entity: str | None) -> EntityRows:
        """The rows of a table, indexed by scenario, stage and entity."""
        if table not in self._rows:
            self._rows[table] = EntityRows(self._tables[table], entity)
        return self._rows[table]

    def hours(self, rows: EntityRows) -> Floats:
        """T x B: hours of each block, for the stages of a table."""
        known = self._study.block_hours(rows.stages, len(rows.blocks))
        return self._hours_of_buses if known is None else known

    @cached_property
    def _hours_of_buses(self) -> Floats:
        return block_hours(self.rows("buses", "bus_id"))

    def scenario_costs(self) -> Floats:
        """The cost of each scenario in $, discounted to the first stage."""
        costs, rows = self._tables["costs"], self.rows("costs", None)
        return np.asarray(rows.by_scenario(costs["immediate_cost"] * costs["discount_factor"]))

    def component_costs(self) -> dict[str, float]:
        """The mean over scenarios of each component of at least `MIN_COST`, in $ discounted to the first stage."""
        costs, rows = self._tables["costs"], self.rows("costs", None)
        means = {
            title: float(rows.by_scenario(costs[name] * costs["discount_factor"]).mean())
            for name, title in COST_COMPONENTS.items()
            if name in costs
        }
        return {title: mean for title, mean in means.items() if abs(mean) >= MIN_COST}
