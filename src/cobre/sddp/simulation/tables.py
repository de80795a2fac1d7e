"""Tables of a simulation: what every table is made of.

Rows are ordered by scenario, stage, entity and block. Ids are int32 (null: ABSENT_ID), numbers float64.
"""

from collections.abc import Callable, Mapping

import numpy as np

from cobre.core.arrays import Floats, Indices, Ints
from cobre.core.case import System
from cobre.records import dataclass
from cobre.sddp.lp.build import StageLp
from cobre.sddp.scenarios import StageBatch
from cobre.solver.batches import Realisations

# Decisions and duals of one stage in some scenarios, in plain units and $.


@dataclass(frozen=True, slots=True)
class StageOutcome:
    """S scenarios. Decisions and row duals have a last column of zeros, which the index ABSENT (-1) picks."""

    lp: StageLp
    decisions: Floats  # S x (columns + 1)
    row_duals: Floats  # S x (rows + 1): $ per unit of the right-hand side
    state: Floats  # S x entries, at the beginning
    inflow: Floats  # S x N, realised
    load: Floats  # S x B, without the factors of blocks
    availability: Floats  # S x R
    total_cost: Floats  # S, $ of this stage's money, with the future
    future_cost: Floats  # S, discounted to this stage

    @classmethod
    def of(
        cls,
        lp: StageLp,
        batch: StageBatch,
        state: Floats,
        noise: Realisations,
        cost_scale: float,
        own: slice = slice(None),
    ) -> "StageOutcome":
        """Read some rows of a batch, and undo all scaling of columns, rows and money."""
        program = lp.program
        return cls(
            lp=lp,
            decisions=_with_zero(batch.primal[own] * program.column_scale),
            row_duals=_with_zero(batch.dual[own] * (program.row_scale * cost_scale)),
            state=state[own],
            inflow=batch.inflow[own],
            load=noise.load_mw[own],
            availability=noise.availability[own],
            total_cost=batch.objective[own] * cost_scale,
            future_cost=batch.future_cost[own] * (lp.plan.data.discount * cost_scale),
        )

    @property
    def storage(self) -> Floats:
        """S x N, hm3, at the beginning of the stage."""
        return self.state[:, : self.lp.plan.num_hydros]

    @property
    def scenarios(self) -> int:
        """S, the number of scenarios."""
        return len(self.total_cost)

    def values(self, columns: Indices) -> Floats:
        """Return decisions, S x the shape of the columns; 0 if a stage has no such decision."""
        return self.decisions[:, columns]

    def duals(self, rows: Indices) -> Floats:
        """Return duals, S x the shape of the rows: $ for one more unit on the right-hand side."""
        return self.row_duals[:, rows]

    def by_block(self, columns: Indices) -> Floats:
        """Return S x entities x K, from columns by entity or by entity and volume."""
        values = self.values(columns)
        if values.ndim == 2:
            values = values[:, :, None]
        return np.broadcast_to(values, (*values.shape[:2], self.lp.plan.num_blocks))


def _with_zero(table: Floats) -> Floats:
    """Append a column of zeros; negative zeros are normalised to +0."""
    return np.concatenate([table + 0.0, np.zeros((len(table), 1))], axis=1)


def running_sum(values: Floats) -> Floats:
    """Sum over the last axis, one after the other: the bits do not depend on how many scenarios there are."""
    if not values.shape[-1]:
        return np.zeros(values.shape[:-1])
    total: Floats = np.add.accumulate(values, axis=-1)[..., -1]
    return total


def sum_into(values: Floats, owner: Indices, count: int) -> Floats:
    """Sum S x F x K into S x `count` x K by the owner of each F, in order; owner -1 is left out."""
    total = np.zeros((count, values.shape[0], values.shape[2]))
    has_owner = owner >= 0
    np.add.at(total, owner[has_owner], np.moveaxis(values, 1, 0)[has_owner])
    return np.moveaxis(total, 0, 1)


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

    @classmethod
    def of(cls, system: System) -> "EntityIds":
        """Return the ids of the entities of a system."""
        return cls(
            hydros=tuple(hydro.id for hydro in system.hydros),
            thermals=tuple(thermal.id for thermal in system.thermals),
            buses=tuple(bus.id for bus in system.buses),
            lines=tuple(line.id for line in system.lines),
            non_controllables=tuple(source.id for source in system.non_controllable_sources),
            contracts=tuple(contract.id for contract in system.energy_contracts),
            pumping_stations=tuple(station.id for station in system.pumping_stations),
        )


@dataclass(frozen=True, slots=True)
class ResultTable:
    """A table's name, the columns that name its entity, and its numbers."""

    name: str
    ids: tuple[str, ...]
    numbers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StageRows:
    """One stage's rows of a table, the same in every scenario: ids by column, block_id included."""

    table: ResultTable
    ids: Mapping[str, Ints]

    @property
    def count(self) -> int:
        """Number of rows of the stage in one scenario."""
        return len(self.ids["block_id"])

    @property
    def width(self) -> int:
        """Number of float64 values of the stage in one scenario: rows x number columns."""
        return self.count * len(self.table.numbers)


def rows_by_block(table: ResultTable, entity_ids: tuple[Ints, ...], num_blocks: int) -> StageRows:
    """Return rows for every entity in every block of a stage."""
    count = len(entity_ids[0])
    ids = {name: np.repeat(column, num_blocks) for name, column in zip(table.ids, entity_ids, strict=True)}
    return StageRows(table, {"block_id": np.tile(np.arange(num_blocks, dtype=np.int32), count), **ids})


# From the outcome of a stage to arrays, S x entities x K, of some or all columns of a table.
ColumnsByName = dict[str, Floats]
Reader = Callable[[StageOutcome], ColumnsByName]
