"""From the solutions of a stage to rows of all tables, side by side in one array that ranks can exchange."""

from collections.abc import Iterator

import numpy as np

from cobre.core.arrays import Floats, Ints
from cobre.core.case import ABSENT_ID
from cobre.sddp.lp.build import StageLp
from cobre.sddp.simulation.commitment_tables import (
    ANTICIPATED_THERMALS,
    lane_rows,
    read_anticipated_thermals,
    read_lanes,
)
from cobre.sddp.simulation.cost_table import CostReader
from cobre.sddp.simulation.generic_table import read_violations, violation_rows
from cobre.sddp.simulation.hydro_tables import HYDRO_BUS_GENERATION, HYDROS, read_hydro_bus_generation, read_hydros
from cobre.sddp.simulation.network_tables import (
    BUSES,
    CONTRACTS,
    EXCHANGES,
    NON_CONTROLLABLES,
    PUMPING_STATIONS,
    THERMALS,
    Reader,
    read_buses,
    read_contracts,
    read_exchanges,
    read_non_controllables,
    read_pumping_stations,
    read_thermals,
)
from cobre.sddp.simulation.outcome import StageOutcome
from cobre.sddp.simulation.tables import EntityIds, ResultTable, StageRows, rows_by_block
from cobre.sddp.simulation.transit_tables import read_seed, read_transit, seed_rows, transit_rows


class StageExtractor:
    """All tables of one stage. Tables of entities that a study has none of are left out."""

    def __init__(self, lp: StageLp, ids: EntityIds, discount_factor: float) -> None:
        self.stage_id = lp.plan.data.stage.id
        costs = CostReader(lp, discount_factor)
        rows = StageRows(costs.format, {"block_id": np.array([ABSENT_ID], np.int32)})
        self._parts: list[tuple[StageRows, Reader]] = [(rows, costs.read)]
        for table, entities, reader in _by_entity(lp, ids):
            if len(entities[0]):
                self._parts.append((rows_by_block(table, entities, lp.plan.num_blocks), reader))
        if lp.plan.data.generic_rows:
            self._parts.append((violation_rows(lp), read_violations))
        lanes = lane_rows(lp, _int32(ids.thermals))
        hydros = _int32(ids.hydros)
        for rows, read in (
            (lanes, read_lanes),
            (transit_rows(lp, hydros), read_transit),
            (seed_rows(lp, hydros), read_seed),
        ):
            if rows.count:
                self._parts.append((rows, read))

    @property
    def rows(self) -> tuple[StageRows, ...]:
        """The rows of one scenario, table by table."""
        return tuple(rows for rows, _ in self._parts)

    @property
    def width(self) -> int:
        """Numbers of one scenario in all tables."""
        return sum(rows.width for rows in self.rows)

    def read(self, outcome: StageOutcome) -> Floats:
        """S x width: the tables side by side, each column after column."""
        numbers, at = np.empty((outcome.scenarios, self.width)), 0
        for rows, reader in self._parts:
            for column in reader(outcome):
                numbers[:, at : at + rows.count] = column.reshape(outcome.scenarios, rows.count)
                at += rows.count
        return numbers

    def split(self, numbers: Floats) -> Iterator[tuple[StageRows, Floats]]:
        """Every table with its numbers, S x columns x rows, from what `read` gave."""
        at = 0
        for rows in self.rows:
            part = numbers[:, at : at + rows.width]
            yield rows, part.reshape(len(numbers), len(rows.format.numbers), rows.count)
            at += rows.width


def _by_entity(lp: StageLp, ids: EntityIds) -> Iterator[tuple[ResultTable, tuple[Ints, ...], Reader]]:
    plan = lp.plan
    hydros, buses = _int32(ids.hydros), _int32(ids.buses)
    yield HYDROS, (hydros,), read_hydros
    yield HYDRO_BUS_GENERATION, (hydros[plan.pair_hydro], buses[plan.pair_bus]), read_hydro_bus_generation
    if plan.has_commitments:
        yield ANTICIPATED_THERMALS, (_int32(ids.thermals),), read_anticipated_thermals
    else:
        yield THERMALS, (_int32(ids.thermals),), read_thermals
    yield BUSES, (buses,), read_buses
    yield EXCHANGES, (_int32(ids.lines),), read_exchanges
    yield NON_CONTROLLABLES, (_int32(ids.non_controllables),), read_non_controllables
    yield CONTRACTS, (_int32(ids.contracts),), read_contracts
    yield PUMPING_STATIONS, (_int32(ids.pumping_stations),), read_pumping_stations


def _int32(ids: tuple[int, ...]) -> Ints:
    return np.array(ids, np.int32)
