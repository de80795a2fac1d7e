"""Tables of a simulation: plain numbers.

Rows are ordered by scenario, stage, entity and block. Ids are int32 (null: ABSENT_ID), numbers float64.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields

import numpy as np

from cobre.core.arrays import HM3_PER_M3S_HOUR, Floats, Indices, Ints
from cobre.core.case import ABSENT_ID, System
from cobre.core.stage_data import COMMITMENT, StateSlot
from cobre.records import dataclass
from cobre.sddp.lp.build import StageLp
from cobre.sddp.lp.lp_builder import ABSENT
from cobre.sddp.scenarios import StageBatch
from cobre.solver.batches import Realisations

# Decisions and duals of one stage in some scenarios, in plain units and $.


@dataclass(frozen=True, slots=True)
class StageOutcome:
    """S scenarios. Decisions and prices have a last column of zeros, which the index ABSENT (-1) picks."""

    lp: StageLp
    decisions: Floats  # S x (columns + 1)
    prices: Floats  # S x (rows + 1): $ for one more unit on the right side
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
            prices=_with_zero(batch.dual[own] * (program.row_scale * cost_scale)),
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
        return self.prices[:, rows]

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
    """Return rows for every entity in every block of a stage."""
    count = len(entity_ids[0])
    ids = {name: np.repeat(column, num_blocks) for name, column in zip(format.ids, entity_ids, strict=True)}
    return StageRows(format, {"block_id": np.tile(np.arange(num_blocks, dtype=np.int32), count), **ids})


# Thermal plants, buses, lines, sources, contracts and pumping stations.

# From the outcome of a stage to arrays, S x entities x K, of some or all columns of a table.
ColumnsByName = dict[str, Floats]
Reader = Callable[[StageOutcome], ColumnsByName]

THERMALS = ResultTable("thermals", ("thermal_id",), ("generation_mw", "generation_mwh", "generation_cost"))

BUSES = ResultTable(
    "buses",
    ("bus_id",),
    ("load_mw", "load_mwh", "deficit_mw", "deficit_mwh", "excess_mw", "excess_mwh", "spot_price"),
)

EXCHANGES = ResultTable(
    "exchanges",
    ("line_id",),
    (
        "direct_flow_mw",
        "reverse_flow_mw",
        "net_flow_mw",
        "net_flow_mwh",
        "losses_mw",
        "losses_mwh",
        "exchange_cost",
    ),
)

NON_CONTROLLABLES = ResultTable(
    "non_controllables",
    ("non_controllable_id",),
    ("generation_mw", "generation_mwh", "available_mw", "curtailment_mw", "curtailment_mwh", "curtailment_cost"),
)

CONTRACTS = ResultTable("contracts", ("contract_id",), ("power_mw", "energy_mwh", "price_per_mwh", "total_cost"))

PUMPING_STATIONS = ResultTable(
    "pumping_stations",
    ("pumping_station_id",),
    ("pumped_flow_m3s", "pumped_volume_hm3", "power_consumption_mw", "energy_consumption_mwh"),
)


def read_thermals(outcome: StageOutcome) -> ColumnsByName:
    """Return power, energy and generation cost of thermal plants by block."""
    plan = outcome.lp.plan
    power = outcome.values(outcome.lp.columns.thermal)
    energy = power * plan.hours
    return {"generation_mw": power, "generation_mwh": energy, "generation_cost": energy * plan.data.thermal.cost}


def read_buses(outcome: StageOutcome) -> ColumnsByName:
    """Return load, deficit, excess, and the marginal cost of energy, $/MWh."""
    plan, columns = outcome.lp.plan, outcome.lp.columns
    load = outcome.load[:, :, None] * plan.data.bus.load_factor
    deficit = running_sum(np.moveaxis(outcome.values(columns.deficit), 2, 3))
    excess = outcome.values(columns.excess)
    return {
        "load_mw": load,
        "load_mwh": load * plan.hours,
        "deficit_mw": deficit,
        "deficit_mwh": deficit * plan.hours,
        "excess_mw": excess,
        "excess_mwh": excess * plan.hours,
        "spot_price": outcome.duals(outcome.lp.power.balance) / plan.hours,
    }


def read_exchanges(outcome: StageOutcome) -> ColumnsByName:
    """Return flows as they enter a line, and losses as the LP counts them."""
    plan, columns, line = outcome.lp.plan, outcome.lp.columns, outcome.lp.plan.data.line
    direct, reverse = outcome.values(columns.direct), outcome.values(columns.reverse)
    net, both = direct - reverse, direct + reverse
    lost = both * line.loss_fraction[:, None]
    return {
        "direct_flow_mw": direct,
        "reverse_flow_mw": reverse,
        "net_flow_mw": net,
        "net_flow_mwh": net * plan.hours,
        "losses_mw": lost,
        "losses_mwh": lost * plan.hours,
        "exchange_cost": both * (line.exchange_cost[:, None] * plan.hours),
    }


def read_non_controllables(outcome: StageOutcome) -> ColumnsByName:
    """Return generation and availability of sources."""
    plan, source = outcome.lp.plan, outcome.lp.plan.data.source
    power = outcome.values(outcome.lp.columns.source)
    available = available_mw(outcome)
    curtailed = available - power
    return {
        "generation_mw": power,
        "generation_mwh": power * plan.hours,
        "available_mw": available,
        "curtailment_mw": curtailed,
        "curtailment_mwh": curtailed * plan.hours,
        "curtailment_cost": curtailed * (source.curtailment_cost[:, None] * plan.hours),
    }


def available_mw(outcome: StageOutcome) -> Floats:
    """Return S x R x K; 0 for sources that do not exist in the stage."""
    source = outcome.lp.plan.data.source
    available = np.where(source.is_active, source.available_mw, 0.0)[:, None] * source.factor
    return outcome.availability[:, :, None] * available


def read_contracts(outcome: StageOutcome) -> ColumnsByName:
    """Return power bought or sold; a negative cost is revenue."""
    plan = outcome.lp.plan
    power = outcome.values(outcome.lp.columns.contract)
    energy, price = power * plan.hours, plan.data.contract.price
    return {
        "power_mw": power,
        "energy_mwh": energy,
        "price_per_mwh": np.broadcast_to(price, power.shape),
        "total_cost": energy * price,
    }


def read_pumping_stations(outcome: StageOutcome) -> ColumnsByName:
    """Return pumped flow and power consumption of pumping stations by block."""
    plan = outcome.lp.plan
    flow = outcome.values(outcome.lp.columns.pumped)
    power = flow * plan.pumping_consumption[:, None]
    return {
        "pumped_flow_m3s": flow,
        "pumped_volume_hm3": flow * (HM3_PER_M3S_HOUR * plan.hours),
        "power_consumption_mw": power,
        "energy_consumption_mwh": power * plan.hours,
    }


# Thermal power that is decided ahead: what was committed, what is decided, what one more MW would be worth.

# Numbers that only some rows have: NaN elsewhere.
AHEAD = ("anticipated_committed_mw", "anticipated_decision_mw", "commitment_value_per_mw")
ANTICIPATED_THERMALS = ResultTable(THERMALS.name, THERMALS.ids, (*THERMALS.numbers, *AHEAD))
LANES = ResultTable("anticipated_lanes", ("thermal_id", "delivery_date"), ("deposited_decision_mw",))


def read_anticipated_thermals(outcome: StageOutcome) -> ColumnsByName:
    """Add deliveries of earlier decisions, and decisions for later stages, to the columns of all thermal plants."""
    plan = outcome.lp.plan
    is_committed = plan.data.commitment.is_committed
    columns = read_thermals(outcome)
    columns["generation_cost"] = np.where(is_committed[:, None], 0.0, columns["generation_cost"])
    by_plant = {
        "anticipated_committed_mw": _committed(outcome),
        "anticipated_decision_mw": _decided(outcome),
        "commitment_value_per_mw": np.where(is_committed, 0.0 - outcome.duals(outcome.lp.deliveries), np.nan),
    }
    shape = columns["generation_mw"].shape
    return columns | {name: np.broadcast_to(values[:, :, None], shape) for name, values in by_plant.items()}


def lane_rows(lp: StageLp, thermal_ids: Ints) -> StageRows:
    """Return a row for each decision that the thermals table has no column for: several at once, or after the study."""
    lanes = _lanes(lp)
    ids = [thermal_ids[lp.plan.layout.decided_of(COMMITMENT)[lane].entity] for lane in lanes]
    days = [int(lp.plan.data.commitment.delivery_date[lane].item().strftime("%Y%m%d")) for lane in lanes]
    block = np.full(len(lanes), ABSENT_ID, np.int32)
    return StageRows(
        LANES, {"block_id": block, "thermal_id": np.array(ids, np.int32), "delivery_date": np.array(days, np.int32)}
    )


def read_lanes(outcome: StageOutcome) -> ColumnsByName:
    """Return the power that is committed for later stages, MW, in the order of `lane_rows`."""
    return {"deposited_decision_mw": outcome.values(outcome.lp.columns.commitment[_lanes(outcome.lp)])}


def _lanes(lp: StageLp) -> list[int]:
    shown = _shown(lp)
    return [lane for lane in np.flatnonzero(lp.plan.data.commitment.is_decided).tolist() if lane not in shown]


def _shown(lp: StageLp) -> list[int]:
    """Return decisions within the study of plants that have a single one."""
    numbers, slots = lp.plan.data.commitment, lp.plan.layout.decided_of(COMMITMENT)
    inside = [lane for lane in np.flatnonzero(numbers.is_decided).tolist() if not numbers.is_after_study[lane]]
    owners = [slots[lane].entity for lane in inside]
    return [lane for lane, owner in zip(inside, owners, strict=True) if owners.count(owner) == 1]


def _committed(outcome: StageOutcome) -> Floats:
    """Return S x J: commitments of earlier stages for this one; 0 for plants that are dispatched normally."""
    plan = outcome.lp.plan
    values = np.full((outcome.scenarios, len(plan.data.commitment.is_committed)), np.nan)
    slots = (*plan.layout.decided, *plan.layout.passed)
    for plant in {slot.entity for slot in slots if slot.kind == COMMITMENT}:
        component = plan.state_index.component_of(StateSlot(COMMITMENT, plant, 1))
        values[:, plant] = outcome.state[:, component] if plan.data.commitment.is_committed[plant] else 0.0
    return values


def _decided(outcome: StageOutcome) -> Floats:
    plan = outcome.lp.plan
    values = np.full((outcome.scenarios, len(plan.data.commitment.is_committed)), np.nan)
    for lane in _shown(outcome.lp):
        values[:, plan.layout.decided_of(COMMITMENT)[lane].entity] = outcome.values(outcome.lp.columns.commitment[lane])
    return values


# Costs of a stage by component; the components add up to the immediate cost.

# The decisions behind every component, by their names among the LP's columns.
DECISIONS: Mapping[str, tuple[str, ...]] = {
    "thermal_cost": ("thermal",),
    "contract_cost": ("contract",),
    "deficit_cost": ("deficit",),
    "excess_cost": ("excess",),
    "storage_violation_cost": ("storage_below",),
    "filling_target_cost": ("filling_below",),
    "outflow_violation_below_cost": ("outflow_below",),
    "outflow_violation_above_cost": ("outflow_above",),
    "turbined_violation_cost": ("turbined_below", "group_turbined_below"),
    "generation_violation_cost": ("generation_below", "group_generation_below"),
    "evaporation_violation_cost": ("evaporation_less", "evaporation_more"),
    "withdrawal_violation_cost": ("withdrawal_less", "withdrawal_more"),
    "inflow_penalty_cost": ("inflow_slack",),
    "spillage_cost": ("spilled",),
    "diversion_cost": ("diverted",),
    "turbined_cost": ("turbined",),
    "exchange_cost": ("direct", "reverse"),
}

# A source is paid for what it generates: for all that is available, less what is curtailed.
SOURCE_COMPONENTS = ("non_controllable_reward", "curtailment_cost")
COMPONENTS = (*DECISIONS, "generic_violation_cost", *SOURCE_COMPONENTS)

HYDRO_VIOLATIONS = (
    "outflow_violation_below_cost",
    "outflow_violation_above_cost",
    "turbined_violation_cost",
    "generation_violation_cost",
    "evaporation_violation_cost",
    "withdrawal_violation_cost",
)

COSTS = ResultTable(
    "costs",
    (),
    ("total_cost", "immediate_cost", "future_cost", "discount_factor", *COMPONENTS, "hydro_violation_cost"),
)

# Only where a study has thermal plants that decide ahead.
ANTICIPATED_COST = "anticipated_thermal_cost"
COSTS_AHEAD = ResultTable(COSTS.name, COSTS.ids, (*COSTS.numbers, ANTICIPATED_COST))


class CostReader:
    """Knows which column of a stage's LP belongs to which component."""

    def __init__(self, lp: StageLp, discount_factor: float) -> None:
        self._discount_factor = discount_factor
        self._cost = lp.cost
        self._columns = {name: _present(lp, kinds) for name, kinds in DECISIONS.items()}
        self._columns["generic_violation_cost"] = _without_name(lp)
        self.format = COSTS
        if lp.plan.has_commitments:
            self.format = COSTS_AHEAD
            self._columns[ANTICIPATED_COST] = _present(lp, ("commitment",))

    def read(self, outcome: StageOutcome) -> ColumnsByName:
        """Return the columns of the cost table, S numbers each."""
        components = {name: self._sum(outcome, columns) for name, columns in self._columns.items()}
        components |= _source_costs(outcome)
        return components | {
            "total_cost": outcome.total_cost,
            "immediate_cost": outcome.total_cost - outcome.future_cost,
            "future_cost": outcome.future_cost,
            "discount_factor": np.full(outcome.scenarios, self._discount_factor),
            "hydro_violation_cost": running_sum(np.stack([components[name] for name in HYDRO_VIOLATIONS], axis=1)),
        }

    def _sum(self, outcome: StageOutcome, columns: Indices) -> Floats:
        return running_sum(outcome.decisions[:, columns] * self._cost[columns])


def _present(lp: StageLp, kinds: tuple[str, ...]) -> Indices:
    parts: list[Indices] = [getattr(lp.columns, kind).reshape(-1) for kind in kinds]
    index: Indices = np.concatenate(parts)
    present: Indices = index[index != ABSENT]
    return present


def _without_name(lp: StageLp) -> Indices:
    """Return the columns that belong to no kind: slacks of users' constraints."""
    is_known = np.zeros(len(lp.cost), bool)
    is_known[_present(lp, tuple(field.name for field in fields(lp.columns)))] = True
    return np.flatnonzero(~is_known)


def _source_costs(outcome: StageOutcome) -> ColumnsByName:
    plan, source = outcome.lp.plan, outcome.lp.plan.data.source
    price = source.curtailment_cost[:, None] * plan.hours
    available = available_mw(outcome)
    curtailed = available - outcome.values(outcome.lp.columns.source)
    flat = (outcome.scenarios, -1)
    return {
        "non_controllable_reward": 0.0 - running_sum((available * price).reshape(flat)),
        "curtailment_cost": running_sum((curtailed * price).reshape(flat)),
    }


# Constraints that users wrote: by how much they are violated, and what that costs.

VIOLATIONS = ResultTable("violations/generic", ("constraint_id",), ("slack_value", "slack_cost"))


def violation_rows(lp: StageLp) -> StageRows:
    """Return a row for each row of a constraint; without a block where it is about the whole stage."""
    rows = lp.plan.data.generic_rows
    ids = {
        "block_id": np.array([ABSENT_ID if row.block is None else row.block for row in rows], np.int32),
        "constraint_id": np.array([row.constraint_id for row in rows], np.int32),
    }
    return StageRows(VIOLATIONS, ids)


def read_violations(outcome: StageOutcome) -> ColumnsByName:
    """Return the distance of a constraint from its bound; with two bounds, negative if it exceeds the upper one."""
    slacks = outcome.lp.generic_slacks
    both = outcome.values(slacks)
    rows = outcome.lp.plan.data.generic_rows
    sign = np.array([-1.0 if np.isfinite(row.lower) else 1.0 for row in rows])
    price = np.append(outcome.lp.cost, 0.0)[slacks]
    cost = both * price
    return {"slack_value": both[:, :, 0] + sign * both[:, :, 1], "slack_cost": cost[:, :, 0] + cost[:, :, 1]}
