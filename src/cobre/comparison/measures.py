"""Arrays by stage and entity from the rows of one scenario; the last row is the horizon, the last column the system."""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cobre.comparison.runs import ComparedRun
from cobre.core.arrays import HM3_PER_M3S_HOUR, Floats
from cobre.io.output.results import Columns
from cobre.records import dataclass
from cobre.runs.formatting import CONTROLLED

# The compared quantities: columns of the simulation's tables, and their aggregation by stage, entity and study.


@dataclass(frozen=True, slots=True)
class ComparedQuantity:
    """A column of a table, and its aggregation.

    blocks, entities, stages: how to aggregate blocks to a stage, entities to the system (`load`: weighted by the energy
    of the load; `common`: the mean over entities that both studies have), and stages to the horizon (`hours`: weighted
    by hours). Values are multiplied by `factor`, and by the hours of the block if `is_rate`.
    """

    title: str
    unit: str
    table: str
    kind: str
    entity: str
    number: str
    blocks: Literal["sum", "last", "hours"]
    entities: Literal["sum", "load", "common"]
    stages: Literal["sum", "last", "hours"]
    factor: float = 1.0
    is_rate: bool = False


def _energy(title: str, table: str, entity: str, number: str = "generation_mwh") -> ComparedQuantity:
    return ComparedQuantity(title, "GWh", table, table, entity, number, "sum", "sum", "sum", factor=1e-3)


COST = "cost"

CONTROLLED_COST = "controlled_cost"

QUANTITIES: Mapping[str, ComparedQuantity] = {
    "marginal_cost": ComparedQuantity(
        "Marginal cost of energy", "$/MWh", "buses", "buses", "bus_id", "spot_price", "hours", "load", "hours"
    ),
    "hydro_generation": _energy("Hydro generation", "hydros", "hydro_id"),
    "thermal_generation": _energy("Thermal generation", "thermals", "thermal_id"),
    "non_controllable_generation": _energy("Wind and solar generation", "non_controllables", "non_controllable_id"),
    "contracts": _energy("Contracts (imports less exports)", "contracts", "contract_id", "energy_mwh"),
    "deficit": _energy("Deficit", "buses", "bus_id", "deficit_mwh"),
    "load": _energy("Load", "buses", "bus_id", "load_mwh"),
    "curtailment": _energy("Curtailment", "non_controllables", "non_controllable_id", "curtailment_mwh"),
    "exchange": ComparedQuantity(
        "Net flow on lines", "GWh", "exchanges", "lines", "line_id", "net_flow_mwh", "sum", "sum", "sum", factor=1e-3
    ),
    "inflow": ComparedQuantity(
        "Natural inflow", "m³/s", "hydros", "hydros", "hydro_id", "incremental_inflow_m3s", "last", "sum", "hours"
    ),
    "storage": ComparedQuantity(
        "Storage at the end", "hm³", "hydros", "hydros", "hydro_id", "storage_final_hm3", "last", "sum", "last"
    ),
    "spillage": ComparedQuantity(
        "Spillage",
        "hm³",
        "hydros",
        "hydros",
        "hydro_id",
        "spillage_m3s",
        "sum",
        "sum",
        "sum",
        factor=HM3_PER_M3S_HOUR,
        is_rate=True,
    ),
    "water_value": ComparedQuantity(
        "Water value", "$/hm³", "hydros", "hydros", "hydro_id", "water_value_per_hm3", "last", "common", "hours"
    ),
}

NOT_OF_THE_SYSTEM = frozenset({"exchange"})

"""Quantities without a value for the system: a sum of line flows has no meaning."""


def title_of(key: str) -> str:
    """The title of a quantity, or of the cost."""
    costs = {COST: "Cost", CONTROLLED_COST: f"Cost, {CONTROLLED}"}
    return costs[key] if key in costs else QUANTITIES[key].title


def unit_of(key: str) -> str:
    """The unit of a quantity, or of the cost."""
    return "$" if key in (COST, CONTROLLED_COST) else QUANTITIES[key].unit


Positions = NDArray[np.intp]

BlockHours = Mapping[tuple[int, int], float]

COST_COLUMNS = ("stage_id", "immediate_cost", "discount_factor")


@dataclass(frozen=True, slots=True)
class Frame:
    """The axes of one study's arrays: ids of the common stages (None: not in this study), and hours."""

    stages: Sequence[int | None]
    stage_hours: Floats
    block_hours: BlockHours


class EntityMeasure:
    """The quantities of one table in one study."""

    def __init__(self, keys: Sequence[str], frame: Frame, entities: Sequence[int | None], is_common: NDArray[np.bool_]):
        self._quantities = {key: QUANTITIES[key] for key in keys}
        self._frame = frame
        self._entities = entities
        self._is_common = is_common
        self._shape = (len(frame.stages), len(entities))
        self._row_index: _RowIndex | None = None

    @property
    def columns(self) -> list[str]:
        """The columns of the table that these quantities need."""
        first = next(iter(self._quantities.values()))
        numbers = [quantity.number for quantity in self._quantities.values()]
        weights = ["load_mwh"] if any(quantity.entities == "load" for quantity in self._quantities.values()) else []
        return list(dict.fromkeys(["stage_id", "block_id", first.entity, *numbers, *weights]))

    def arrays(self, rows: Columns) -> dict[str, Floats]:
        """By quantity, for one scenario: an array (stages and the horizon) x (entities and the system)."""
        row_index = self._aligned(rows)
        return {key: self._with_ends(key, quantity, rows, row_index) for key, quantity in self._quantities.items()}

    def _aligned(self, rows: Columns) -> "_RowIndex":
        """The index of the rows, built again only if the rows of a scenario differ from those of the one before."""
        entity = next(iter(self._quantities.values())).entity
        ids = [rows["stage_id"], rows[entity], rows["block_id"]]
        if self._row_index is None or not self._row_index.are_of(ids):
            self._row_index = _RowIndex(ids, self._frame, self._entities)
        return self._row_index

    def _with_ends(self, key: str, quantity: ComparedQuantity, rows: Columns, row_index: "_RowIndex") -> Floats:
        values = self._by_stage(quantity, rows[quantity.number], row_index)
        extended = np.full((self._shape[0] + 1, self._shape[1] + 1), np.nan)
        extended[:-1, :-1] = values
        if key not in NOT_OF_THE_SYSTEM:
            extended[:-1, -1] = self._of_system(quantity, values, rows, row_index)
        extended[-1] = over_stages(quantity.stages, extended[:-1], self._frame.stage_hours)
        return extended

    def _by_stage(self, quantity: ComparedQuantity, numbers: NDArray[np.float64], row_index: "_RowIndex") -> Floats:
        found = np.full(self._shape[0] * self._shape[1], np.nan)
        if quantity.blocks == "last":
            found[row_index.cells] = numbers[row_index.rows] * quantity.factor
        elif quantity.blocks == "hours":
            hours = row_index.added(row_index.hours)
            with np.errstate(invalid="ignore", divide="ignore"):
                found = np.where(
                    row_index.is_there, row_index.added(numbers[row_index.rows] * row_index.hours) / hours, np.nan
                )
        else:
            weights = row_index.hours * quantity.factor if quantity.is_rate else quantity.factor
            found = np.where(row_index.is_there, row_index.added(numbers[row_index.rows] * weights), np.nan)
        return found.reshape(self._shape)

    def _of_system(self, quantity: ComparedQuantity, values: Floats, rows: Columns, row_index: "_RowIndex") -> Floats:
        if quantity.entities == "sum":
            return np.asarray(np.nansum(values, axis=1))
        if quantity.entities == "load":
            weights = row_index.added(rows["load_mwh"][row_index.rows]).reshape(self._shape)
        else:
            weights = np.broadcast_to(self._is_common.astype(float), self._shape)
        weights = np.where(np.isnan(values), 0.0, weights)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.nansum(values * weights, axis=1) / weights.sum(axis=1))


class CostMeasure:
    """The cost of each stage and its components, in $ discounted to the first stage; 0 if not in the study."""

    def __init__(self, frame: Frame, components: Sequence[str], known: Sequence[str]) -> None:
        self._frame = frame
        self._components = components
        self.columns = [*COST_COLUMNS, *(name for name in components if name in known)]

    def arrays(self, rows: Columns) -> Floats:
        """For one scenario: (stages and the horizon) x (cost components and the total)."""
        stage = positions(rows["stage_id"], self._frame.stages)
        is_there = stage >= 0
        extended = np.zeros((len(self._frame.stages) + 1, len(self._components) + 1))
        for column, name in enumerate((*self._components, "immediate_cost")):
            if name not in rows:
                continue
            numbers = rows[name] * rows["discount_factor"]
            extended[:-1, column] = np.bincount(stage[is_there], numbers[is_there], len(self._frame.stages))
        extended[-1] = extended[:-1].sum(axis=0)
        return extended


class _RowIndex:
    """The cell of each row of a scenario in the array; rows that are not compared are left out."""

    def __init__(self, ids: list[NDArray[np.int32]], frame: Frame, entities: Sequence[int | None]) -> None:
        self._ids = ids
        stage, entity = positions(ids[0], frame.stages), positions(ids[1], entities)
        self.rows = np.flatnonzero((stage >= 0) & (entity >= 0))
        self.cells = stage[self.rows] * len(entities) + entity[self.rows]
        self._size = len(frame.stages) * len(entities)
        self.is_there = np.bincount(self.cells, minlength=self._size) > 0
        pairs = zip(ids[0][self.rows].tolist(), ids[2][self.rows].tolist(), strict=True)
        self.hours = np.array([frame.block_hours.get(pair, 1.0) for pair in pairs])

    def are_of(self, ids: list[NDArray[np.int32]]) -> bool:
        return all(np.array_equal(mine, its) for mine, its in zip(self._ids, ids, strict=True))

    def added(self, by_row: Floats) -> Floats:
        return np.bincount(self.cells, by_row, self._size).astype(np.float64)


def over_stages(aggregation: str, values: Floats, hours: Floats) -> Floats:
    """Aggregate stages (rows): `last`, `sum`, or the mean weighted by hours. NaN (not in service) is left out."""
    if aggregation == "last":
        return np.asarray(values[-1])
    is_there = ~np.isnan(values)
    if aggregation == "sum":
        return np.where(is_there.any(axis=0), np.nansum(values, axis=0), np.nan)
    weights = np.where(is_there, hours[:, None], 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.nansum(values * weights, axis=0) / weights.sum(axis=0))


def positions(ids: NDArray[np.int32], wanted: Sequence[int | None]) -> Positions:
    """The index of each id among those that are wanted; -1 for others."""
    pairs = sorted((id_, index) for index, id_ in enumerate(wanted) if id_ is not None)
    if not pairs:
        return np.full(len(ids), -1)
    known, indices = np.array([id_ for id_, _ in pairs]), np.array([index for _, index in pairs])
    at = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    return np.where(known[at] == ids, indices[at], -1)


def block_hours_of(run: ComparedRun) -> dict[tuple[int, int], float]:
    """Hours by stage and block, from power and energy of loads; blocks without any load are missing."""
    rows = run.first_scenario("buses", ["stage_id", "block_id", "load_mw", "load_mwh"])
    found: dict[tuple[int, int], float] = {}
    columns = (rows[name].tolist() for name in ("stage_id", "block_id", "load_mw", "load_mwh"))
    for stage, block, power, energy in zip(*columns, strict=True):
        if power > 0:
            found[stage, block] = energy / power
    return found
