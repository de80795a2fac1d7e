"""From the solutions of a stage to rows of all tables, side by side in one array that ranks can exchange."""

from collections.abc import Iterator

import numpy as np

from cobre.core.arrays import Floats, Ints
from cobre.core.case import ABSENT_ID
from cobre.sddp.lp.build import StageLp
from cobre.sddp.simulation.cost_tables import CostReader, read_violations, violation_rows
from cobre.sddp.simulation.hydro_tables import (
    HYDRO_BUS_GENERATION,
    HYDROS,
    read_hydro_bus_generation,
    read_hydro_power,
    read_hydro_slacks,
    read_seed,
    read_transit,
    read_water,
    seed_rows,
    transit_rows,
)
from cobre.sddp.simulation.network_tables import (
    ANTICIPATED_THERMALS,
    BUSES,
    CONTRACTS,
    EXCHANGES,
    NON_CONTROLLABLES,
    PUMPING_STATIONS,
    THERMALS,
    lane_rows,
    read_anticipated_thermals,
    read_buses,
    read_contracts,
    read_exchanges,
    read_lanes,
    read_non_controllables,
    read_pumping_stations,
    read_thermals,
)
from cobre.sddp.simulation.tables import EntityIds, Reader, ResultTable, StageOutcome, StageRows, rows_by_block


class StageExtractor:
    """All tables of one stage. Tables of entities that a study has none of are left out."""

    def __init__(self, lp: StageLp, ids: EntityIds, discount_factor: float) -> None:
        self.stage_id = lp.plan.data.stage.id
        costs = CostReader(lp, discount_factor)
        rows = StageRows(costs.table, {"block_id": np.array([ABSENT_ID], np.int32)})
        self._tables: list[tuple[StageRows, tuple[Reader, ...]]] = [(rows, (costs.read,))]
        for table, entities, readers in _by_entity(lp, ids):
            if len(entities[0]):
                self._tables.append((rows_by_block(table, entities, lp.plan.num_blocks), readers))
        if lp.plan.data.generic_rows:
            self._tables.append((violation_rows(lp), (read_violations,)))
        hydros = _int32(ids.hydros)
        for rows, reader in (
            (lane_rows(lp, _int32(ids.thermals)), read_lanes),
            (transit_rows(lp, hydros), read_transit),
            (seed_rows(lp, hydros), read_seed),
        ):
            if rows.count:
                self._tables.append((rows, (reader,)))

    @property
    def rows(self) -> tuple[StageRows, ...]:
        """The rows of one scenario, table by table."""
        return tuple(rows for rows, _ in self._tables)

    @property
    def width(self) -> int:
        """Numbers of one scenario in all tables."""
        return sum(rows.width for rows in self.rows)

    def read(self, outcome: StageOutcome) -> Floats:
        """Return S x width: the tables side by side, each column after column."""
        numbers, at = np.empty((outcome.scenarios, self.width)), 0
        for rows, readers in self._tables:
            starts = {name: at + column * rows.count for column, name in enumerate(rows.table.numbers)}
            for reader in readers:
                for name, values in reader(outcome).items():
                    start = starts.pop(name)
                    numbers[:, start : start + rows.count] = values.reshape(outcome.scenarios, rows.count)
            if starts:
                raise LookupError(f"no reader returns {', '.join(starts)} of the table {rows.table.name}")
            at += rows.width
        return numbers

    def split(self, numbers: Floats) -> Iterator[tuple[StageRows, Floats]]:
        """Yield every table with its numbers, S x columns x rows, from what `read` gave."""
        at = 0
        for rows in self.rows:
            part = numbers[:, at : at + rows.width]
            yield rows, part.reshape(len(numbers), len(rows.table.numbers), rows.count)
            at += rows.width


def _by_entity(lp: StageLp, ids: EntityIds) -> Iterator[tuple[ResultTable, tuple[Ints, ...], tuple[Reader, ...]]]:
    plan = lp.plan
    hydros, buses = _int32(ids.hydros), _int32(ids.buses)
    yield HYDROS, (hydros,), (read_water, read_hydro_power, read_hydro_slacks)
    yield HYDRO_BUS_GENERATION, (hydros[plan.pair_hydro], buses[plan.pair_bus]), (read_hydro_bus_generation,)
    if plan.has_commitments:
        yield ANTICIPATED_THERMALS, (_int32(ids.thermals),), (read_anticipated_thermals,)
    else:
        yield THERMALS, (_int32(ids.thermals),), (read_thermals,)
    yield BUSES, (buses,), (read_buses,)
    yield EXCHANGES, (_int32(ids.lines),), (read_exchanges,)
    yield NON_CONTROLLABLES, (_int32(ids.non_controllables),), (read_non_controllables,)
    yield CONTRACTS, (_int32(ids.contracts),), (read_contracts,)
    yield PUMPING_STATIONS, (_int32(ids.pumping_stations),), (read_pumping_stations,)


def _int32(ids: tuple[int, ...]) -> Ints:
    return np.array(ids, np.int32)


class TableLayout:
    """The positions of a table's rows among the numbers of each stage."""

    def __init__(self, first: StageRows) -> None:
        self.names = first.table.numbers
        self.parts: list[tuple[int, int, int]] = []  # stage, where its rows begin among a scenario's numbers, how many
        self._ids: dict[str, list[Ints]] = {name: [] for name in ("stage_id", "block_id", *first.table.ids)}

    def add(self, stage: int, stage_id: int, at: int, rows: StageRows) -> None:
        """Append the rows of one more stage; `at`: where they begin among a scenario's numbers."""
        self.parts.append((stage, at, rows.count))
        for name, columns in self._ids.items():
            columns.append(np.full(rows.count, stage_id, np.int32) if name == "stage_id" else rows.ids[name])

    @property
    def rows(self) -> int:
        """Rows of one scenario, over all stages."""
        return sum(count for _, _, count in self.parts)

    @property
    def id_names(self) -> tuple[str, ...]:
        """Columns that are the same in every scenario."""
        return tuple(self._ids)

    def ids(self, name: str) -> Ints:
        """Return an id column of one scenario's rows, over all stages."""
        return np.concatenate(self._ids[name])


def table_layouts(extractors: tuple[StageExtractor, ...]) -> dict[str, TableLayout]:
    """Return the layouts by table, in the order in which tables first occur."""
    layouts: dict[str, TableLayout] = {}
    for stage, extractor in enumerate(extractors):
        at = 0
        for rows in extractor.rows:
            layouts.setdefault(rows.table.name, TableLayout(rows)).add(stage, extractor.stage_id, at, rows)
            at += rows.width
    return layouts
