"""Quantities of a comparison: by stage and entity in each scenario, then means and their paired differences.

Arrays have a row for each stage and a last one for the horizon, a column for each entity and a last one for the system.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cobre.comparison.runs import ComparedRun, Match, NotComparableError, common_scenarios, match_entities, match_stages
from cobre.core.arrays import HM3_PER_M3S_HOUR, Floats
from cobre.core.confidence import student_quantile
from cobre.io.output.results import Columns
from cobre.records import dataclass
from cobre.runs.labels import CONTROLLED, COST_COMPONENTS, ID_COLUMNS, KINDS_BY_ID
from cobre.text import money


@dataclass(frozen=True, slots=True)
class ComparedQuantity:
    """A column of a table of the simulation, and its aggregation.

    blocks, entities, stages: how to aggregate blocks to a stage, entities to the system (`load`: weighted by the energy
    of the load; `common`: the mean over entities that both studies have), and stages to the horizon (`hours`: weighted
    by hours). Values are multiplied by `factor`, and by the hours of the block if `is_rate`.
    """

    title: str
    unit: str
    table: str
    column: str
    blocks: Literal["sum", "last", "hours"]
    entities: Literal["sum", "load", "common"]
    stages: Literal["sum", "last", "hours"]
    factor: float = 1.0
    is_rate: bool = False

    @property
    def id_column(self) -> str:
        """The column with the ids of the entities."""
        return ID_COLUMNS[self.table]

    @property
    def entity_kind(self) -> str:
        """The kind of the entities, such as `lines` for the table `exchanges`."""
        return KINDS_BY_ID[self.id_column]


def _energy(title: str, table: str, column: str = "generation_mwh") -> ComparedQuantity:
    return ComparedQuantity(title, "GWh", table, column, "sum", "sum", "sum", factor=1e-3)


COST = "cost"
CONTROLLED_COST = "controlled_cost"

COMPARED_QUANTITIES: Mapping[str, ComparedQuantity] = {
    "marginal_cost": ComparedQuantity(
        "Marginal cost of energy", "$/MWh", "buses", "spot_price", "hours", "load", "hours"
    ),
    "hydro_generation": _energy("Hydro generation", "hydros"),
    "thermal_generation": _energy("Thermal generation", "thermals"),
    "non_controllable_generation": _energy("Wind and solar generation", "non_controllables"),
    "contracts": _energy("Contracts (imports less exports)", "contracts", "energy_mwh"),
    "deficit": _energy("Deficit", "buses", "deficit_mwh"),
    "load": _energy("Load", "buses", "load_mwh"),
    "curtailment": _energy("Curtailment", "non_controllables", "curtailment_mwh"),
    "exchange": ComparedQuantity(
        "Net flow on lines", "GWh", "exchanges", "net_flow_mwh", "sum", "sum", "sum", factor=1e-3
    ),
    "inflow": ComparedQuantity("Natural inflow", "m³/s", "hydros", "incremental_inflow_m3s", "last", "sum", "hours"),
    "storage": ComparedQuantity("Storage at the end", "hm³", "hydros", "storage_final_hm3", "last", "sum", "last"),
    "spillage": ComparedQuantity(
        "Spillage",
        "hm³",
        "hydros",
        "spillage_m3s",
        "sum",
        "sum",
        "sum",
        factor=HM3_PER_M3S_HOUR,
        is_rate=True,
    ),
    "water_value": ComparedQuantity("Water value", "$/hm³", "hydros", "water_value_per_hm3", "last", "common", "hours"),
}

NOT_OF_THE_SYSTEM = frozenset({"exchange"})
"""Quantities without a value for the system: a sum of line flows has no meaning."""


def title_of(key: str) -> str:
    """Return the title of a quantity, or of the cost."""
    costs = {COST: "Cost", CONTROLLED_COST: f"Cost, {CONTROLLED}"}
    return costs[key] if key in costs else COMPARED_QUANTITIES[key].title


def unit_of(key: str) -> str:
    """Return the unit of a quantity, or of the cost."""
    return "$" if key in (COST, CONTROLLED_COST) else COMPARED_QUANTITIES[key].unit


Positions = NDArray[np.intp]

BlockHours = Mapping[tuple[int, int], float]

COST_COLUMNS = ("stage_id", "immediate_cost", "discount_factor")


@dataclass(frozen=True, slots=True)
class StudyAxes:
    """The axes of one study's arrays: ids of the common stages (None: not in this study), and hours."""

    stages: Sequence[int | None]
    stage_hours: Floats
    block_hours: BlockHours


class EntityMeasure:
    """The quantities of one table in one study."""

    def __init__(
        self, keys: Sequence[str], axes: StudyAxes, entities: Sequence[int | None], is_common: NDArray[np.bool_]
    ):
        self._quantities = {key: COMPARED_QUANTITIES[key] for key in keys}
        self._axes = axes
        self._entities = entities
        self._is_common = is_common
        self._shape = (len(axes.stages), len(entities))
        self._row_index: _RowIndex | None = None

    @property
    def columns(self) -> list[str]:
        """The columns of the table that these quantities need."""
        first = next(iter(self._quantities.values()))
        numbers = [quantity.column for quantity in self._quantities.values()]
        weights = ["load_mwh"] if any(quantity.entities == "load" for quantity in self._quantities.values()) else []
        return list(dict.fromkeys(["stage_id", "block_id", first.id_column, *numbers, *weights]))

    def arrays(self, rows: Columns) -> dict[str, Floats]:
        """Return one scenario's arrays by quantity: (stages and the horizon) x (entities and the system)."""
        row_index = self._index_rows(rows)
        return {key: self._with_totals(key, quantity, rows, row_index) for key, quantity in self._quantities.items()}

    def _index_rows(self, rows: Columns) -> "_RowIndex":
        """Return the index of the rows, which is rebuilt only if they differ from those of the previous scenario."""
        entity = next(iter(self._quantities.values())).id_column
        ids = [rows["stage_id"], rows[entity], rows["block_id"]]
        if self._row_index is None or not self._row_index.matches(ids):
            self._row_index = _RowIndex(ids, self._axes, self._entities)
        return self._row_index

    def _with_totals(self, key: str, quantity: ComparedQuantity, rows: Columns, row_index: "_RowIndex") -> Floats:
        values = self._by_stage(quantity, rows[quantity.column], row_index)
        extended = np.full((self._shape[0] + 1, self._shape[1] + 1), np.nan)
        extended[:-1, :-1] = values
        if key not in NOT_OF_THE_SYSTEM:
            extended[:-1, -1] = self._of_system(quantity, values, rows, row_index)
        extended[-1] = over_stages(quantity.stages, extended[:-1], self._axes.stage_hours)
        return extended

    def _by_stage(self, quantity: ComparedQuantity, numbers: NDArray[np.float64], row_index: "_RowIndex") -> Floats:
        values = np.full(self._shape[0] * self._shape[1], np.nan)
        if quantity.blocks == "last":
            values[row_index.cells] = numbers[row_index.rows] * quantity.factor
        elif quantity.blocks == "hours":
            hours = row_index.sum_by_cell(row_index.hours)
            with np.errstate(invalid="ignore", divide="ignore"):
                values = np.where(
                    row_index.is_there, row_index.sum_by_cell(numbers[row_index.rows] * row_index.hours) / hours, np.nan
                )
        else:
            weights = row_index.hours * quantity.factor if quantity.is_rate else quantity.factor
            values = np.where(row_index.is_there, row_index.sum_by_cell(numbers[row_index.rows] * weights), np.nan)
        return values.reshape(self._shape)

    def _of_system(self, quantity: ComparedQuantity, values: Floats, rows: Columns, row_index: "_RowIndex") -> Floats:
        if quantity.entities == "sum":
            return np.asarray(np.nansum(values, axis=1))
        if quantity.entities == "load":
            weights = row_index.sum_by_cell(rows["load_mwh"][row_index.rows]).reshape(self._shape)
        else:
            weights = np.broadcast_to(self._is_common.astype(float), self._shape)
        weights = np.where(np.isnan(values), 0.0, weights)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.nansum(values * weights, axis=1) / weights.sum(axis=1))


class CostMeasure:
    """The cost of each stage and its components, in $ discounted to the first stage; 0 if not in the study."""

    def __init__(self, axes: StudyAxes, components: Sequence[str], known: Sequence[str]) -> None:
        self._axes = axes
        self._components = components
        self.columns = [*COST_COLUMNS, *(name for name in components if name in known)]

    def arrays(self, rows: Columns) -> Floats:
        """Return one scenario's costs: (stages and the horizon) x (cost components and the total)."""
        stage = positions(rows["stage_id"], self._axes.stages)
        is_present = stage >= 0
        extended = np.zeros((len(self._axes.stages) + 1, len(self._components) + 1))
        for column, name in enumerate((*self._components, "immediate_cost")):
            if name not in rows:
                continue
            numbers = rows[name] * rows["discount_factor"]
            extended[:-1, column] = np.bincount(stage[is_present], numbers[is_present], len(self._axes.stages))
        extended[-1] = extended[:-1].sum(axis=0)
        return extended


class _RowIndex:
    """The cell of each row of a scenario in the arrays; rows of other stages or entities are left out."""

    def __init__(self, ids: list[NDArray[np.int32]], axes: StudyAxes, entities: Sequence[int | None]) -> None:
        self._ids = ids
        stage, entity = positions(ids[0], axes.stages), positions(ids[1], entities)
        self.rows = np.flatnonzero((stage >= 0) & (entity >= 0))
        self.cells = stage[self.rows] * len(entities) + entity[self.rows]
        self._size = len(axes.stages) * len(entities)
        self.is_there = np.bincount(self.cells, minlength=self._size) > 0
        pairs = zip(ids[0][self.rows].tolist(), ids[2][self.rows].tolist(), strict=True)
        self.hours = np.array([axes.block_hours.get(pair, 1.0) for pair in pairs])

    def matches(self, ids: list[NDArray[np.int32]]) -> bool:
        return all(np.array_equal(previous, current) for previous, current in zip(self._ids, ids, strict=True))

    def sum_by_cell(self, by_row: Floats) -> Floats:
        return np.bincount(self.cells, by_row, self._size).astype(np.float64)


def over_stages(aggregation: str, values: Floats, hours: Floats) -> Floats:
    """Aggregate stages (rows): `last`, `sum`, or the mean weighted by hours. NaN (not in service) is left out."""
    if aggregation == "last":
        return np.asarray(values[-1])
    is_present = ~np.isnan(values)
    if aggregation == "sum":
        return np.where(is_present.any(axis=0), np.nansum(values, axis=0), np.nan)
    weights = np.where(is_present, hours[:, None], 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.nansum(values * weights, axis=0) / weights.sum(axis=0))


def positions(ids: NDArray[np.int32], expected: Sequence[int | None]) -> Positions:
    """Return the index of each id in `wanted`; -1 for other ids."""
    pairs = sorted((id_, index) for index, id_ in enumerate(expected) if id_ is not None)
    if not pairs:
        return np.full(len(ids), -1)
    expected_ids, indices = np.array([id_ for id_, _ in pairs]), np.array([index for _, index in pairs])
    nearest = np.minimum(np.searchsorted(expected_ids, ids), len(expected_ids) - 1)
    return np.where(expected_ids[nearest] == ids, indices[nearest], -1)


def block_hours_of(run: ComparedRun) -> dict[tuple[int, int], float]:
    """Return hours by stage and block, from power and energy of loads; blocks without load are left out."""
    rows = run.first_scenario("buses", ["stage_id", "block_id", "load_mw", "load_mwh"])
    hours: dict[tuple[int, int], float] = {}
    columns = (rows[name].tolist() for name in ("stage_id", "block_id", "load_mw", "load_mwh"))
    for stage, block, power, energy in zip(*columns, strict=True):
        if power > 0:
            hours[stage, block] = energy / power
    return hours


# Means of two studies over common scenarios, and the confidence interval of their difference. Both studies are read
# scenario by scenario, table by table.

CONFIDENCE = 0.95


class PairedMeans:
    """Running means of arrays of both studies and of their difference; no scenario is kept.

    The variance is that of the paired differences (Welford's algorithm). It is valid for scenarios that are drawn
    independently of each other, whether or not both studies see the same inflows; with the same inflows it is much
    smaller.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.count = 0
        self.a: Floats = np.zeros(shape)
        self.b: Floats = np.zeros(shape)
        self.difference: Floats = np.zeros(shape)
        self._squares: Floats = np.zeros(shape)

    def add(self, a: Floats, b: Floats) -> None:
        """Add one scenario. Where either value is NaN, the means stay NaN."""
        self.count += 1
        self.a += (a - self.a) / self.count
        self.b += (b - self.b) / self.count
        difference = b - a
        deviation = difference - self.difference
        self.difference += deviation / self.count
        self._squares += deviation * (difference - self.difference)

    @property
    def half_width(self) -> Floats:
        """Half width of the 95 % confidence interval of the difference, by Student's t; NaN for a single scenario."""
        if self.count < 2:
            return np.full(self.difference.shape, np.nan)
        standard_error = np.sqrt(np.maximum(self._squares, 0.0) / (self.count - 1) / self.count)
        half_width: Floats = student_quantile(CONFIDENCE, self.count - 1) * standard_error
        return half_width


def is_certain(difference: float, half_width: float) -> bool:
    """Return whether the confidence interval of the difference excludes 0."""
    return math.isfinite(half_width) and abs(difference) > half_width


SAME_MEAN_TOLERANCE = 1e-9
"""Relative difference up to which two means count as equal."""


@dataclass(frozen=True, slots=True)
class QuantityMeans:
    """A quantity: means by stage and the horizon (rows) x entities and the system (columns)."""

    entities: Sequence[Match]
    means: PairedMeans


@dataclass(frozen=True, slots=True)
class ComparedMeans:
    """Common stages and scenarios of two studies, and every quantity over them. notes: limits of the comparison."""

    stages: Sequence[Match]
    scenarios: int
    has_same_inflows: bool | None
    quantities: Mapping[str, QuantityMeans]
    notes: tuple[str, ...]


def compare_means(a: ComparedRun, b: ComparedRun) -> ComparedMeans:
    """Compare means of both studies over common scenarios and stages. Raises NotComparableError."""
    stages, left_out = _stages(a, b)
    axes_of_both = tuple(_axes(run, [getattr(stage, side) for stage in stages]) for run, side in ((a, "a"), (b, "b")))
    quantities = {COST: _costs(a, b, axes_of_both)}
    for table in dict.fromkeys(quantity.table for quantity in COMPARED_QUANTITIES.values()):
        quantities |= _entities(a, b, table, axes_of_both)
    if not left_out and (controlled := _controlled_costs(a, b, axes_of_both)) is not None:
        quantities[CONTROLLED_COST] = controlled
    ordered = {key: quantities[key] for key in (COST, CONTROLLED_COST, *COMPARED_QUANTITIES) if key in quantities}
    count = ordered[COST].means.count
    notes = (*left_out, *_notes(a, b, ordered[COST], is_whole=not left_out))
    return ComparedMeans(stages, count, _has_same_inflows(ordered), ordered, notes)


def _stages(a: ComparedRun, b: ComparedRun) -> tuple[list[Match], list[str]]:
    ids = [_ids(run, "costs", "stage_id") for run in (a, b)]
    stages = match_stages(a, b, *ids)
    if not stages:
        spans = [run.study.stage_labels(stage_ids) for run, stage_ids in zip((a, b), ids, strict=True)]
        spans_text = " and ".join(
            f"{run.name} has {span[0]} to {span[-1]}" for run, span in zip((a, b), spans, strict=True)
        )
        raise NotComparableError(f"the two studies have no common stages: {spans_text}")
    counts = [len(stage_ids) - len(stages) for stage_ids in ids]
    clauses = [f"{count} stages are in {name} only" for count, name in zip(counts, "AB", strict=True) if count]
    note = [f"{' and '.join(clauses)}: totals are over the {len(stages)} stages that both have"] if clauses else []
    return stages, note


def _ids(run: ComparedRun, table: str, column: str) -> list[int]:
    """Return distinct ids of one scenario's rows, in order of appearance."""
    return [int(id_) for id_ in dict.fromkeys(run.first_scenario(table, [column])[column].tolist())]


def _axes(run: ComparedRun, stages: Sequence[int]) -> StudyAxes:
    hours_by_block = block_hours_of(run)
    stage_hours = run.study.hours(stages) or [
        sum(value for (stage, _), value in hours_by_block.items() if stage == id_) or 1.0 for id_ in stages
    ]
    return StudyAxes(stages, np.array(stage_hours), hours_by_block)


def _costs(a: ComparedRun, b: ComparedRun, axes_of_both: Sequence[StudyAxes]) -> QuantityMeans:
    columns_of_both = [run.columns("costs") for run in (a, b)]
    components = [name for name in COST_COMPONENTS if any(name in names for names in columns_of_both)]
    measures = [CostMeasure(axes, components, names) for axes, names in zip(axes_of_both, columns_of_both, strict=True)]
    means = PairedMeans((len(axes_of_both[0].stages) + 1, len(components) + 1))
    for _, first, second in common_scenarios(
        *(run.scenarios("costs", m.columns) for run, m in zip((a, b), measures, strict=True))
    ):
        means.add(measures[0].arrays(first), measures[1].arrays(second))
    if not means.count:
        raise NotComparableError("the two studies have no common scenarios: simulate scenarios with the same ids")
    return QuantityMeans([Match(0, 0, COST_COMPONENTS[name]) for name in components], means)


def _controlled_costs(a: ComparedRun, b: ComparedRun, axes_of_both: Sequence[StudyAxes]) -> QuantityMeans | None:
    """Compare costs of whole scenarios controlled for the openings drawn; None if one study has none."""
    if not all(run.has("scenario_costs", ["scenario_id", "controlled_cost"]) for run in (a, b)):
        return None
    means = PairedMeans((len(axes_of_both[0].stages) + 1, 1))
    for _, first, second in common_scenarios(*(run.scenarios("scenario_costs", ["controlled_cost"]) for run in (a, b))):
        # Only the cost of the horizon is controlled, not those of stages.
        means.add(*(_last_row(means.a.shape, rows["controlled_cost"][0]) for rows in (first, second)))
    return QuantityMeans([], means) if means.count else None


def _last_row(shape: tuple[int, ...], value: float) -> Floats:
    values = np.full(shape, np.nan)
    values[-1] = value
    return values


def _entities(
    a: ComparedRun, b: ComparedRun, table: str, axes_of_both: Sequence[StudyAxes]
) -> dict[str, QuantityMeans]:
    keys = [
        key
        for key, quantity in COMPARED_QUANTITIES.items()
        if quantity.table == table and all(run.has(table, [quantity.id_column, quantity.column]) for run in (a, b))
    ]
    if not keys:
        return {}
    quantity = COMPARED_QUANTITIES[keys[0]]
    ids = [_ids(run, table, quantity.id_column) for run in (a, b)]
    entities = match_entities(a, b, quantity.entity_kind, *ids)
    is_common = np.array([entity.present_in == "both" for entity in entities], bool)
    sides = ([entity.a for entity in entities], [entity.b for entity in entities])
    measures = [EntityMeasure(keys, axes, side, is_common) for axes, side in zip(axes_of_both, sides, strict=True)]
    means = _means(a, b, table, measures, (len(axes_of_both[0].stages) + 1, len(entities) + 1))
    return {key: QuantityMeans(entities, means[key]) for key in keys}


def _means(
    a: ComparedRun, b: ComparedRun, table: str, measures: Sequence[EntityMeasure], shape: tuple[int, int]
) -> dict[str, PairedMeans]:
    means: dict[str, PairedMeans] = {}
    readers = [run.scenarios(table, measure.columns) for run, measure in zip((a, b), measures, strict=True)]
    for _, first, second in common_scenarios(*readers):
        values = measures[0].arrays(first), measures[1].arrays(second)
        for key in values[0]:
            means.setdefault(key, PairedMeans(shape)).add(values[0][key], values[1][key])
    return means


def _has_same_inflows(quantities: Mapping[str, QuantityMeans]) -> bool | None:
    """Return whether common plants have the same inflow in every scenario and stage; None if no plant is common."""
    inflows = quantities.get("inflow")
    if inflows is None or not any(entity.present_in == "both" for entity in inflows.entities):
        return None
    is_common = np.array([entity.present_in == "both" for entity in inflows.entities], bool)
    statistics: list[NDArray[np.float64]] = [inflows.means.difference, inflows.means.half_width]
    return all(not np.nan_to_num(values[:-1, :-1][:, is_common]).any() for values in statistics)


def _notes(a: ComparedRun, b: ComparedRun, cost: QuantityMeans, *, is_whole: bool) -> list[str]:
    """Explain where the mean over common scenarios differs from the mean in a run's summary."""
    common_means = [float(means[-1, -1]) for means in (cost.means.a, cost.means.b)]
    return [
        f"the mean cost of {name} over the {cost.means.count} common scenarios is not that of all its scenarios "
        f"({money(run.mean_cost)} $)"
        for run, name, mean in zip((a, b), "AB", common_means, strict=True)
        if is_whole
        and run.mean_cost is not None
        and abs(mean - run.mean_cost) > SAME_MEAN_TOLERANCE * max(1.0, abs(mean))
    ]
